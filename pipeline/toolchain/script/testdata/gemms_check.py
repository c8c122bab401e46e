"""Stands in for the driver in a test. Quantizes a model with products as torch.onnx writes them: Gemm whose weights are turned, of which two
share theirs, two are in branches of an If with weights of one name, and one has a factor; and a MatMul. The result has, for each way:
the names of products that are still of floats, and the signal to noise ratio of the outputs."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy
import onnx
import onnxruntime
import sensitivity
from quantizing import quantize
from graphs import nodes_of
from onnx import TensorProto, helper, numpy_helper

# As on every processor without VNNI, whose products of 8 bits would saturate.
WAYS = {
    "dynamic": {"method": "dynamic-int8", "reduce_range": True},
    "dynamic but three": {"method": "dynamic-int8", "reduce_range": True, "exclude_nodes": ["first", "third", "yes"]},
    "dynamic Gemm": {"method": "dynamic-int8", "reduce_range": True, "op_types": ["Gemm"]},
    "dynamic MatMul": {"method": "dynamic-int8", "reduce_range": True, "op_types": ["MatMul"]},
    "int4": {"method": "weights-int4", "block_size": 16, "format": "qoperator"},
    "int4 but three": {"method": "weights-int4", "block_size": 16, "exclude_nodes": ["first", "third", "yes"]},
}
rng = numpy.random.default_rng(7)


def weights(name, *shape):
    return numpy_helper.from_array((rng.standard_normal(shape) / 4).astype(numpy.float32), name)


def node(op, inputs, output, name, **attributes):
    return helper.make_node(op, inputs.split(), [output], name=name, **attributes)


def branch(name):
    made = node("Gemm", "c inner b", f"{name}_out", name, transB=1)
    return helper.make_graph([made], name, [], [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [None, 16])], [weights("inner", 16, 16)])


def model():
    graph = helper.make_graph(
        [
            node("Gemm", "x w b", "a", "first", transB=1), node("Gemm", "a w b", "c", "second", transB=1),
            node("ReduceSum", "c", "s", "sum", keepdims=0), node("Greater", "s zero", "g", "greater"),
            node("If", "g", "i", "if", then_branch=branch("yes"), else_branch=branch("no")),
            node("Gemm", "i v", "d", "third"), node("Gemm", "d f b", "e", "factor", alpha=0.5), node("MatMul", "e u", "y", "product"),
        ], "gemms",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 16])],
        [weights("w", 16, 16), weights("v", 16, 16), weights("f", 16, 16), weights("u", 16, 16), weights("b", 16), numpy_helper.from_array(numpy.float32(0), "zero")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def outputs(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    cases = numpy.random.default_rng(1).standard_normal((40, 1, 16)).astype(numpy.float32)
    return [session.run(None, {"x": case}) for case in cases]


request = json.load(sys.stdin)
onnx.save(model(), "gemms.onnx")
result = {}
for way, options in WAYS.items():
    job = {"inputs": [{"role": "model", "name": "model.onnx", "path": "gemms.onnx"}], "out_dir": os.getcwd(), "options": options}
    quantize(job)
    nodes = list(nodes_of(onnx.load("model.onnx").graph))
    dequantized = {n.output[0] for n in nodes if n.op_type == "DequantizeLinear"}
    left = sorted(n.name for n in nodes if n.op_type in ("Gemm", "MatMul") and n.input[1] not in dequantized)
    result[way] = {"left": left, "snr": sensitivity.snr(outputs("gemms.onnx"), outputs("model.onnx"))}
with open(request["response_path"], "w") as f:
    json.dump({"protocol": request["protocol"], "id": request["id"], "ok": True, "result": result}, f)
