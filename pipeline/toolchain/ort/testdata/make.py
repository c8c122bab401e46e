"""Makes the models of the tests: python make.py, with onnx 1.23.1."""

import os

import numpy
import onnx
from onnx import TensorProto as T
from onnx import helper


def save(name, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="mlpromote")
    onnx.checker.check_model(model, full_check=True)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".onnx"), "wb") as f:
        f.write(model.SerializeToString(deterministic=True))


value, node = helper.make_tensor_value_info, helper.make_node

# Two inputs of different dtypes, no batch dimension; a vector and a scalar out.
save("unbatched",
     [node("Cast", ["n"], ["f"], to=T.FLOAT), node("Mul", ["x", "f"], ["scaled"]),
      node("ReduceSum", ["scaled"], ["sum"], keepdims=0)],
     [value("x", T.FLOAT, [3]), value("n", T.INT64, [])],
     [value("scaled", T.FLOAT, [3]), value("sum", T.FLOAT, [])])

# float16 and bool with a batch dimension.
save("half",
     [node("Add", ["h", "h"], ["twice"]), node("Not", ["b"], ["not"])],
     [value("h", T.FLOAT16, ["batch", 2]), value("b", T.BOOL, ["batch"])],
     [value("twice", T.FLOAT16, ["batch", 2]), value("not", T.BOOL, ["batch"])])

# As many rows out as there are nonzero elements in.
save("ragged", [node("NonZero", ["x"], ["at"])], [value("x", T.FLOAT, [4])], [value("at", T.INT64, [1, "n"])])

# A matrix in a file of its own.
weights = onnx.numpy_helper.from_array(numpy.arange(600, dtype=numpy.float32).reshape(20, 30) / 600, "w")
graph = helper.make_graph([node("MatMul", ["x", "w"], ["y"])], "external",
                          [value("x", T.FLOAT, ["batch", 20])], [value("y", T.FLOAT, ["batch", 30])], [weights])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="mlpromote")
os.chdir(os.path.dirname(os.path.abspath(__file__)))
if os.path.exists("external.data"):
    os.remove("external.data")
onnx.save_model(model, "external.onnx", save_as_external_data=True, location="external.data", size_threshold=0)

# An operator that no runtime has.
graph = helper.make_graph([node("Frobnicate", ["x"], ["y"], domain="example")], "alien",
                          [value("x", T.FLOAT, [1])], [value("y", T.FLOAT, [1])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("example", 1)], ir_version=8)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "alien.onnx"), "wb") as f:
    f.write(model.SerializeToString(deterministic=True))
