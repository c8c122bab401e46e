"""Makes the sample: a model of three layers, another with other biases, eight cases, and the outputs that numpy computes of the first. Run it here with onnx and numpy."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(3)
shapes = {"w1": (4, 4), "b1": (4,), "w2": (4, 8), "b2": (8,), "w3": (3, 8), "b3": (3,)}
weights = {name: rng.integers(-3, 4, size=shape).astype(np.float32) for name, shape in shapes.items()}
nodes = [  # a square weight, a transposed one, and biases in both forms
    helper.make_node("Gemm", ["x", "w1", "b1"], ["a1"]), helper.make_node("Relu", ["a1"], ["r1"]),
    helper.make_node("MatMul", ["r1", "w2"], ["m2"]), helper.make_node("Add", ["m2", "b2"], ["a2"]), helper.make_node("Relu", ["a2"], ["r2"]),
    helper.make_node("Gemm", ["r2", "w3", "b3"], ["y"], transB=1),
]
graph = helper.make_graph(
    nodes, "sample", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])], [numpy_helper.from_array(w, name) for name, w in weights.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "model.onnx")
graph.initializer[5].CopyFrom(numpy_helper.from_array(weights["b3"] + 1, "b3"))
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "other.onnx")
x = rng.integers(-4, 5, size=(8, 4)).astype(np.float32) / 2
hidden = np.maximum(np.maximum(x @ weights["w1"] + weights["b1"], 0) @ weights["w2"] + weights["b2"], 0)
y = (hidden @ weights["w3"].T + weights["b3"]).astype(np.float32)
for name, values, path in [("x", x, "cases.safetensors"), ("y", y, "want.safetensors")]:
    header = json.dumps({name: {"dtype": "F32", "shape": list(values.shape), "data_offsets": [0, values.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header + values.tobytes())
