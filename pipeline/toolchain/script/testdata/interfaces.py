"""Makes models with inputs and outputs of kinds that are less common, cases for them, and what they give: interfaces.py DRIVERS, in
the folder where it runs. For each: NAME.onnx, NAME-cases.safetensors, NAME-want.safetensors."""

import os
import sys

sys.path.insert(0, os.path.join(sys.argv[1], "common"))

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from tensors import write_shard

FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
NEAR_ONE = 1 + 1e-12  # which is 1 in float32


def model(name, nodes, inputs, outputs, cases, want, **constants):
    def values(of):
        return [helper.make_tensor_value_info(n, dtype, shape) for n, (dtype, shape) in of.items()]

    graph = helper.make_graph(nodes, name, values(inputs), values(outputs), [numpy_helper.from_array(v, n) for n, v in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, f"{name}.onnx")
    write_shard(os.path.join(".", f"{name}-cases.safetensors"), cases)
    write_shard(os.path.join(".", f"{name}-want.safetensors"), want)


x = numpy.arange(1, 13, dtype="float32").reshape(4, 3) / 8
t = numpy.array([1, 2, 4, 8], "float32")
node = helper.make_node

model("scalar", [node("Mul", ["x", "t"], ["y"])], {"x": (FLOAT, ["batch", 3]), "t": (FLOAT, [])}, {"y": (FLOAT, ["batch", 3])},
      {"x": x, "t": t}, {"y": x * t[:, None]})
model("double-output", [node("Cast", ["x"], ["d"], to=DOUBLE), node("Mul", ["d", "w"], ["y"])], {"x": (FLOAT, ["batch", 3])}, {"y": (DOUBLE, ["batch", 3])},
      {"x": x}, {"y": x.astype("float64") * NEAR_ONE}, w=numpy.float64(NEAR_ONE))
double = x.astype("float64")
model("double", [node("MatMul", ["x", "w"], ["m"]), node("Exp", ["m"], ["y"])], {"x": (DOUBLE, ["batch", 3])}, {"y": (DOUBLE, ["batch", 3])},
      {"x": double}, {"y": numpy.exp(double * NEAR_ONE)}, w=numpy.eye(3) * NEAR_ONE)
model("double-tanh", [node("Tanh", ["x"], ["y"])], {"x": (DOUBLE, ["batch", 3])}, {"y": (DOUBLE, ["batch", 3])}, {"x": double}, {"y": numpy.tanh(double)})
model("shape", [node("Neg", ["x"], ["y"]), node("Shape", ["x"], ["size"]), node("Gather", ["size", "one"], ["width"])],
      {"x": (FLOAT, ["batch", 3])}, {"y": (FLOAT, ["batch", 3]), "size": (INT64, [2]), "width": (INT64, [])},
      {"x": x}, {"y": -x, "size": numpy.array([[1, 3]] * 4), "width": numpy.array([3] * 4)}, one=numpy.int64(1))
model("shape-alone", [node("Shape", ["x"], ["size"])], {"x": (FLOAT, ["batch", 3])}, {"size": (INT64, [2])}, {"x": x}, {"size": numpy.array([[1, 3]] * 4)})
# A table cut to the length of the input, in front of a reshape that takes two sizes from what it reshapes.
places = x.repeat(2, 1)
model("places", [node("Shape", ["x"], ["size"]), node("Gather", ["size", "second"], ["length"]), node("Slice", ["table", "first", "length", "first"], ["cut"]),
                 node("Add", ["x", "cut"], ["a"]), node("Reshape", ["a", "to"], ["y"])],
      {"x": (FLOAT, [1, 6])}, {"y": (FLOAT, [1, 2, 3])},
      {"x": places}, {"y": (places + numpy.arange(6, dtype="float32")).reshape(4, 2, 3)},
      table=numpy.arange(9, dtype="float32"), first=numpy.array([0]), second=numpy.array([1]), to=numpy.array([0, 2, -1]))
