"""Writes what BenchmarkHarness runs beside digits: harness.py FOLDER, with onnx and numpy.

A network of 14 convolutions with residual branches on images of 3x64x64: a few milliseconds a case.
"""

import json
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = 40

folder = sys.argv[1]
random = np.random.RandomState(0)
nodes, weights = [], []


def conv(x, name, into, out, stride=1):
    values = random.normal(size=(out, into, 3, 3)) * (2 / into / 9) ** 0.5
    weights.append(numpy_helper.from_array(values.astype("float32"), name + "_w"))
    nodes.append(helper.make_node("Conv", [x, name + "_w"], [name], pads=[1] * 4, kernel_shape=[3, 3], strides=[stride] * 2))
    nodes.append(helper.make_node("Relu", [name], [name + "_relu"]))
    return name + "_relu"


x, width = conv("x", "first", 3, 32, 2), 32
for n in range(4):
    branch = conv(conv(x, f"a{n}", width, width), f"b{n}", width, width)
    nodes.append(helper.make_node("Add", [x, branch], [f"sum{n}"]))
    x, width = conv(f"sum{n}", f"down{n}", width, min(2 * width, 128), 2), min(2 * width, 128)
nodes.append(helper.make_node("GlobalAveragePool", [x], ["pooled"]))
nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
weights.append(numpy_helper.from_array(random.normal(size=(width, 10)).astype("float32") / 4, "dense_w"))
nodes.append(helper.make_node("MatMul", ["flat", "dense_w"], ["logits"]))
value = helper.make_tensor_value_info
graph = helper.make_graph(nodes, "convolutions", [value("x", TensorProto.FLOAT, ["batch", 3, 64, 64])],
                          [value("logits", TensorProto.FLOAT, ["batch", 10])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, folder + "/convolutions.onnx")

cases = random.normal(size=(CASES, 3, 64, 64)).astype("<f4")
header = json.dumps({"x": {"dtype": "F32", "shape": cases.shape, "data_offsets": [0, cases.nbytes]}}).encode()
with open(folder + "/cases.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header + cases.tobytes())
