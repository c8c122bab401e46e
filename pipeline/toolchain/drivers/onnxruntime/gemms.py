"""Gemm as MatMul and Add: what quantizes the weights of products knows them as MatMul."""

from blocks import Names
from graphs import nodes_of


def split(model, excluded):
    """Makes MatMul and Add of each Gemm with constant weights whose name is not excluded. The MatMul has the name of the Gemm: the quantizer
    does the same under other names, and finds none of those that it is given."""
    turned = set()  # the names of weights that are there with their axes exchanged
    split_graph(model.graph, [], excluded, turned, Names(model.graph))
    if turned:
        model.ir_version = max(model.ir_version, 4)  # the first in which initializers need not be inputs
        forget(model.graph, turned)


def split_graph(graph, outer, excluded, turned, names):
    """Splits those in the graph and in those within it. outer has the graphs around it, each with {weights: the same turned}."""
    graphs, made = [*outer, (graph, {})], []
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                split_graph(inner, graphs, excluded, turned, names)
        weights = constant(node.input[1], graphs) if plain(node) and node.name not in excluded else None
        made += [node] if weights is None else parts(node, weights, turned, names)
    del graph.node[:]
    graph.node.extend(made)


def plain(node):
    """Whether a node is x W + b, or that with the axes of W exchanged."""
    from onnx import helper

    usual = {"alpha": 1, "beta": 1, "transA": 0}
    return node.op_type == "Gemm" and node.domain in ("", "ai.onnx") and all(
        helper.get_attribute_value(a) == usual[a.name] for a in node.attribute if a.name in usual)


def constant(name, graphs):
    """The weights of this name, and the graph that has them; None where they are no constant of floats."""
    from onnx import TensorProto

    for graph, turned in reversed(graphs):
        for tensor in graph.initializer:
            if tensor.name == name:
                return (tensor, graph, turned) if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16) else None
    return None


def parts(node, weights, turned, names):
    from onnx import helper, numpy_helper

    tensor, graph, known = weights
    name = tensor.name
    if any(a.name == "transB" and a.i for a in node.attribute):
        turned.add(name)
        if name not in known:
            known[name] = names.new(name + "_turned")
            graph.initializer.append(numpy_helper.from_array(numpy_helper.to_array(tensor).T.copy(), known[name]))
        name = known[name]
    if len(node.input) < 3 or not node.input[2]:
        return [helper.make_node("MatMul", [node.input[0], name], node.output, name=node.name)]
    product = names.new(node.output[0] + "_product")
    return [
        helper.make_node("MatMul", [node.input[0], name], [product], name=node.name),
        helper.make_node("Add", [product, node.input[2]], node.output, name=node.name and node.name + "_Add"),
    ]


def forget(graph, names):
    """Takes those constants of these names out, in this graph and in those within it, that nothing reads any more."""
    nodes = list(nodes_of(graph))
    read = {name for node in nodes for name in node.input}
    for each in (graph, *(g for node in nodes for a in node.attribute for g in (a.g, *a.graphs))):
        gone = names - read - {o.name for o in each.output}
        for field in (each.initializer, each.input):
            kept = [v for v in field if v.name not in gone]
            if len(kept) < len(field):
                del field[:]
                field.extend(kept)
