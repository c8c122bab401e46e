"""Makes the files beside it. See README.md for how to run it."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
OPSETS = [helper.make_opsetid("", 17)]
FLOAT = TensorProto.FLOAT


def save(graph, name):
    model = helper.make_model(graph, opset_imports=OPSETS, producer_name="make.py", ir_version=8)
    onnx.checker.check_model(model)
    (HERE / name).write_bytes(model.SerializeToString(deterministic=True))


def linear():
    """A layer whose weight is also listed as a graph input, as old exporters do."""
    weight = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    bias = numpy_helper.from_array(np.zeros(3, np.float16), "b16")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Cast", ["b16"], ["b"], to=FLOAT),
        helper.make_node("Add", ["xw", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [
            helper.make_tensor_value_info("x", FLOAT, ["batch", 2]),
            helper.make_tensor_value_info("w", FLOAT, [2, 3]),
        ],
        [helper.make_tensor_value_info("y", FLOAT, ["batch", 3])],
        [weight, bias],
    )
    model = helper.make_model(graph, opset_imports=OPSETS, producer_name="make.py", producer_version="1", ir_version=8)
    helper.set_model_props(model, {"purpose": "test"})
    onnx.checker.check_model(model)
    (HERE / "linear.onnx").write_bytes(model.SerializeToString(deterministic=True))


def branches():
    """If with a Loop in one branch: operators two subgraphs deep."""
    step = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Mul", ["v", "x"], ["next"]),
        ],
        "step",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, None),
        ],
    )
    three = helper.make_tensor("three", TensorProto.INT64, [], [3])
    yes = helper.make_graph(
        [
            helper.make_node("Constant", [], ["n"], value=three),
            helper.make_node("Loop", ["n", "", "x"], ["yes"], body=step),
        ],
        "yes",
        [],
        [helper.make_tensor_value_info("yes", FLOAT, None)],
    )
    no = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["no"])], "no", [], [helper.make_tensor_value_info("no", FLOAT, None)]
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)],
        "branches",
        [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", FLOAT, [None, 4])],
        [helper.make_tensor_value_info("y", FLOAT, [None, 4])],
    )
    save(graph, "branches.onnx")


def external():
    """Two tensors in one file beside the model."""
    arrays = {"w": np.arange(8, dtype=np.float32), "v": np.ones(8, np.int64)}
    tensors = [numpy_helper.from_array(a, n) for n, a in arrays.items()]
    offset = 0
    with open(HERE / "external.bin", "wb") as data:
        for t in tensors:
            raw = bytes(t.raw_data)
            data.write(raw)
            onnx.external_data_helper.set_external_data(t, "external.bin", offset, len(raw))
            t.ClearField("raw_data")
            offset += len(raw)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "v"], ["g"]), helper.make_node("Add", ["g", "x"], ["y"])],
        "external",
        [helper.make_tensor_value_info("x", FLOAT, [8])],
        [helper.make_tensor_value_info("y", FLOAT, [8])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=OPSETS, producer_name="make.py", ir_version=8)
    (HERE / "external.onnx").write_bytes(model.SerializeToString(deterministic=True))
    onnx.checker.check_model(str(HERE / "external.onnx"))


def functions():
    """A function of the model's own, an operator of nobody's, and a sequence."""
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    graph = helper.make_graph(
        [
            helper.make_node("Twice", ["x"], ["t"], domain="mine"),
            helper.make_node("Stranger", ["t"], ["s"], domain="acme"),
            helper.make_node("Gelu", ["s"], ["g"], domain="com.microsoft"),
            helper.make_node("SequenceConstruct", ["g"], ["y"]),
        ],
        "functions",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [1])],
        [helper.make_tensor_sequence_value_info("y", TensorProto.BFLOAT16, None)],
    )
    opsets = OPSETS + [helper.make_opsetid(d, 1) for d in ("mine", "acme", "com.microsoft")]
    model = helper.make_model(graph, opset_imports=opsets, functions=[twice], producer_name="make.py", ir_version=8)
    onnx.checker.check_model(model, check_custom_domain=False)
    (HERE / "functions.onnx").write_bytes(model.SerializeToString(deterministic=True))


linear()
branches()
external()
functions()
