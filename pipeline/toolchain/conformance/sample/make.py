"""Makes the sample: a model of two layers, another with other biases, eight cases, and the outputs that numpy computes of the first. Run it here with onnx and numpy."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(3)
weights = [rng.integers(-3, 4, size=shape).astype(np.float32) for shape in [(4, 8), (8,), (8, 3), (3,)]]
names = ["w1", "b1", "w2", "b2"]
nodes = [
    helper.make_node("MatMul", ["x", "w1"], ["m1"]), helper.make_node("Add", ["m1", "b1"], ["a1"]), helper.make_node("Relu", ["a1"], ["r1"]),
    helper.make_node("MatMul", ["r1", "w2"], ["m2"]), helper.make_node("Add", ["m2", "b2"], ["y"]),
]
graph = helper.make_graph(
    nodes, "sample", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])], [numpy_helper.from_array(w, n) for w, n in zip(weights, names)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "model.onnx")
graph.initializer[3].CopyFrom(numpy_helper.from_array(weights[3] + 1, names[3]))
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "other.onnx")
x = rng.integers(-4, 5, size=(8, 4)).astype(np.float32) / 2
w1, b1, w2, b2 = weights
y = (np.maximum(x @ w1 + b1, 0) @ w2 + b2).astype(np.float32)
for name, values, path in [("x", x, "cases.safetensors"), ("y", y, "want.safetensors")]:
    header = json.dumps({name: {"dtype": "F32", "shape": list(values.shape), "data_offsets": [0, values.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header + values.tobytes())
