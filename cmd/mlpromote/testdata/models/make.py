"""Makes the ONNX files beside this script: python3 make.py, with onnx and numpy of the
digits example's training.

unshaped.onnx  the digits network whose output has no shape, with two nodes that do nothing
stuck.onnx     an output whose rank only the data says
late.onnx      an operator set that is not out yet
halved.onnx    a dense layer behind an operator that only a library has (operators/halve.c)
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


def halved():
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], [(i % 5 - 2) / 4 for i in range(12)])
    nodes = [helper.make_node("Halve", ["x"], ["h"], "halve", domain="mlpromote.test"), helper.make_node("MatMul", ["h", "w"], ["y"], "dense")]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph(nodes, "small", [x], [y], [weight])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mlpromote.test", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "halved.onnx")


halved()
