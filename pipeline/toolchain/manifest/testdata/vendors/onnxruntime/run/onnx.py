"""Stands in for onnx where engines run: what the stand-in of a compiler left has one node, EPContext, and any other file none that onnx could read."""


class node:
    op_type = "EPContext"


class graph:
    node = [node]


class Model:
    pass


def load(path):
    with open(path, "rb") as f:
        content = f.read()
    if not content.startswith(b"of a stand-in"):
        raise ValueError("this is no ONNX")
    made = Model()
    made.graph = graph() if b"of a plain model" not in content else plain()
    return made


class plain:
    class relu:
        op_type = "Relu"

    node = [node, relu]
