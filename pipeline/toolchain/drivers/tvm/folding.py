"""Makes constants of what a graph computes of shapes that are known. TVM's importer wants to know shapes, and computes none."""

from graphs import nodes_of


def fold_shapes(model):
    """The model without the nodes that compute of nothing but known shapes and constants."""
    import onnx

    while True:
        model = onnx.shape_inference.infer_shapes(model)
        found = computed(model)
        if not found:
            return model
        replace(model, found)


def computed(model):
    """The values that follow from shapes that are known, by name."""
    import numpy
    from onnx import numpy_helper

    constants, sizes, found = {i.name: i for i in model.graph.initializer}, known_sizes(model), {}
    for node in model.graph.node:
        if node.op_type == "Shape" and node.input[0] in sizes:
            places = {a.name: a.i for a in node.attribute}
            found[node.output[0]] = numpy.array(sizes[node.input[0]][places.get("start", 0) : places.get("end")], "int64")
        elif any(name in found for name in node.input) and all(not name or name in found or name in constants for name in node.input) and plain(node):
            given = {name: found[name] if name in found else numpy_helper.to_array(constants[name]) for name in node.input if name}
            found.update(zip(node.output, evaluated(model, node, given)))
    return found


def plain(node):
    """Whether a node computes the same every time, with nothing but its inputs."""
    drawn = node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial", "Dropout")
    return node.domain in ("", "ai.onnx") and not drawn and not any(a.HasField("g") or a.graphs for a in node.attribute)


def known_sizes(model):
    """The shapes of tensors of which every size is known, by name."""
    import onnx

    values = {v.name: v.type.tensor_type for v in [*model.graph.input, *model.graph.value_info] if v.type.tensor_type.HasField("shape")}
    sizes = {name: [d.dim_value for d in t.shape.dim] for name, t in values.items() if all(d.HasField("dim_value") for d in t.shape.dim)}
    return {**sizes, **{i.name: list(i.dims) for i in model.graph.initializer}}


def evaluated(model, node, given):
    """What a node gives for inputs that are known."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in given.items()]
    graph = helper.make_graph([node], "one", inputs, [helper.make_empty_tensor_value_info(name) for name in node.output if name])
    made = iter(ReferenceEvaluator(helper.make_model(graph, opset_imports=model.opset_import)).run(None, given))
    return [next(made) if name else None for name in node.output]


def replace(model, found):
    """Makes values constants of the graph, and leaves out the nodes and constants that nothing needs then."""
    from onnx import numpy_helper

    graph = model.graph
    nodes = [node for node in graph.node if not any(name in found for name in node.output)]
    del graph.node[:]
    graph.node.extend(nodes)
    needed = {name for node in nodes_of(graph) for name in node.input} | {o.name for o in graph.output}
    constants = [i for i in graph.initializer if i.name in needed]
    constants += [numpy_helper.from_array(value, name) for name, value in found.items() if name in needed]
    del graph.initializer[:]
    graph.initializer.extend(constants)
