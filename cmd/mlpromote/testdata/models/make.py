"""Makes the ONNX files beside this script: python3 make.py, with onnx and numpy of the
digits example's training.

unshaped.onnx  the digits network whose output has no shape, with two nodes that do nothing
stuck.onnx     an output whose rank only the data says
late.onnx      an operator set that is not out yet
"""

import pathlib

import onnx
from onnx import TensorProto, helper

here = pathlib.Path(__file__).resolve().parent


def save(model, name):
    (here / name).write_bytes(model.SerializeToString(deterministic=True))


def unshaped():
    model = onnx.load(here / "../../../../examples/digits/digits.onnx")
    graph = model.graph
    last = graph.node[-1]
    result = last.output[0]
    last.output[0] = "inner"
    graph.node.append(helper.make_node("Identity", ["inner"], ["same"], "pass"))
    graph.node.append(helper.make_node("Identity", ["same"], [result], "pass_again"))
    graph.output[0].type.tensor_type.ClearField("shape")
    save(model, "unshaped.onnx")


def small(nodes, inputs, output, opset):
    graph = helper.make_graph(nodes, "small", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
shape = helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"])
no_rank = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
reshape = helper.make_node("Reshape", ["x", "shape"], ["z"], "anyhow")
relu = helper.make_node("Relu", ["z"], ["y"], "last")

unshaped()
save(small([reshape, relu], [x, shape], no_rank, 17), "stuck.onnx")
save(small([helper.make_node("Relu", ["x"], ["y"])], [x], helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4]), 27), "late.onnx")
