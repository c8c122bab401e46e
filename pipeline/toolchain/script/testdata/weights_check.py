"""Stands in for the driver in a test. Makes int4 weights of products whose weights have heavy
tails, and lets ONNX Runtime multiply the identity with them, which gives the weights that it
works with. The result has, for each model and way: how many products were quantized, the mean
of |error|^0.7, and how far the weights are from what codes, scales and zero points say."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import hqq
import numpy
import onnx
import onnxruntime
import weights
from onnx import helper, numpy_helper

WAYS = {
    "rtn": {"algorithm": "rtn", "format": "qoperator", "symmetric": True},
    "rtn qdq": {"algorithm": "rtn", "format": "qdq", "symmetric": True},
    "rtn asymmetric": {"algorithm": "rtn", "format": "qoperator", "symmetric": False},
    "hqq": {"algorithm": "hqq", "format": "qoperator", "symmetric": False},
    "hqq qdq": {"algorithm": "hqq", "format": "qdq", "symmetric": False},
}
PLAIN = [("MatMul", ["x", "w"], "y", {})]
TWICE = [("MatMul", ["x", "w"], "a", {}), ("MatMul", ["x", "w"], "b", {}), ("Max", ["a", "b"], "y", {})]
# The names that torch.onnx gives to products, and one that a constant of the first of them would get.
NUMBERED = [
    ("MatMul", ["x", "w"], "linear", {}), ("Identity", ["linear"], "linear_2", {}), ("Identity", ["linear_2"], "linear_rounded", {}),
    ("Identity", ["linear_rounded"], "w_rest", {}), ("Identity", ["w_rest"], "y", {}),
]  # fmt: skip
# The axes of ReduceMean are an input from operator set 18 on.
OLD = [("MatMul", ["x", "w"], "a", {}), ("ReduceMean", ["a"], "b", {"axes": [0]}), ("Sub", ["a", "b"], "c", {}), ("Add", ["c", "b"], "y", {})]
MODELS = {  # shape of the weights, block, type, operator set, nodes
    "whole blocks": ((256, 48), 32, numpy.float32, 17, PLAIN),
    "odd shape": ((70, 7), 32, numpy.float32, 17, PLAIN),
    "less than a block": ((5, 3), 16, numpy.float32, 17, PLAIN),
    "large blocks": ((300, 33), 256, numpy.float32, 21, PLAIN),
    "half precision": ((128, 16), 32, numpy.float16, 17, PLAIN),
    "leading dimension": ((1, 40, 6), 16, numpy.float32, 17, PLAIN),
    "shared": ((64, 24), 32, numpy.float32, 17, TWICE),
    "numbered names": ((64, 24), 32, numpy.float32, 17, NUMBERED),
    "old operators": ((64, 24), 32, numpy.float32, 11, OLD),
    "double": ((64, 24), 32, numpy.float64, 17, PLAIN),
    "integers": ((64, 24), 32, numpy.int32, 17, PLAIN),
}


def model(array, opset, nodes):
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    out = [*array.shape[:-2], None, array.shape[-1]]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in nodes], "g",
        [helper.make_tensor_value_info("x", kind, [None, array.shape[-2]])], [helper.make_tensor_value_info("y", kind, out)],
        [numpy_helper.from_array(array, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)


def run(made):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (x,) = session.get_inputs()
    identity = numpy.eye(x.shape[1], dtype={"tensor(float)": "f4", "tensor(float16)": "f2", "tensor(double)": "f8", "tensor(int32)": "i4"}[x.type])
    return session.run(None, {"x": identity})[0].astype(numpy.float64)


def said(array, block):
    """The weights as codes, scales and zero points say."""
    codes, scales, zeros = (a.astype(numpy.float64) for a in hqq.solve(array, block))
    blocks = numpy.arange(len(array)) // block
    return scales[blocks] * (codes - zeros[blocks])


def judge(array, block, opset, nodes, way):
    made, count = weights.quantized(model(array, opset, nodes), {**way, "block_size": block, "exclude_nodes": []})
    onnx.checker.check_model(made)
    got, array = run(made), array.reshape(array.shape[-2:])
    found = {"count": count, "cost": float((numpy.abs(got.reshape(array.shape) - array) ** 0.7).mean())}
    if way["algorithm"] == "hqq" and count:
        found["off"] = float(numpy.abs(got.reshape(array.shape) - said(array, block)).max() / numpy.abs(array).max())
    return found


request = json.load(sys.stdin)
result = {}
for name, (shape, block, dtype, opset, nodes) in MODELS.items():
    array = (numpy.random.default_rng(7).standard_t(3, shape)).astype(dtype)
    result[name] = {way: judge(array, block, opset, nodes, options) for way, options in WAYS.items()}
with open(request["response_path"], "w") as f:
    json.dump({"protocol": request["protocol"], "id": request["id"], "ok": True, "result": result}, f)
