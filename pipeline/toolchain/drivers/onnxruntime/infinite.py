"""Infinite constants, which no scale can span, such as the start of a maximum."""

# Operators that give what they get in another shape.
MOVES = ("Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Tile", "Transpose", "Unsqueeze")


def touching(tensors):
    """The names of the nodes of prepared.onnx that take or make one of these tensors. Gives names to such nodes where they have none:
    the quantizer takes them by name."""
    import onnx

    model = onnx.load("prepared.onnx")
    found = [node for node in model.graph.node if tensors.intersection((*node.input, *node.output))]
    for i, node in enumerate(found):
        node.name = node.name or f"infinite_of_model_{i}"
    if found:
        onnx.save(model, "prepared.onnx")
    return [node.name for node in found]


def leave_infinite():
    """The tensors of prepared.onnx that are infinite constants, and the names of the nodes that take or make them, which are to
    stay."""
    import onnx

    model = onnx.load("prepared.onnx")
    found = constants(model.graph)
    for node in model.graph.node:  # in the order of their inputs
        if node.op_type in MOVES and node.input[0] in found:
            found.update(node.output)
    return found, touching(found)


def constants(graph):
    """The names of constants with infinite elements."""
    found = {tensor.name for tensor in graph.initializer if infinite(tensor)}
    for node in graph.node:
        if node.op_type in ("Constant", "ConstantOfShape") and any(a.name == "value" and infinite(a.t) for a in node.attribute):
            found.update(node.output)
    return found


def infinite(tensor):
    """Whether a tensor of floats has an infinite element."""
    import numpy
    import onnx

    if tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
        return False
    return bool(numpy.isinf(onnx.numpy_helper.to_array(tensor)).any())
