"""What tf2onnx makes of a graph, finished, or the operators that stand in the way."""

from protocol import Refused

OPSET = 17  # which the compilers of all targets read
BATCH = "batch"


def converted(**source):
    """The model that tf2onnx makes of its arguments, which say where the graph is from."""
    from tf2onnx import convert

    numbered()
    try:
        # With operators that it has no translation for still in it: all can be named then.
        model, _ = convert._convert_common(opset=OPSET, continue_on_error=True, custom_op_handlers={"Erfc": (erfc, [])}, **source)
    except MemoryError:
        raise
    except Exception as e:  # whatever the translation of an operator stumbles upon
        raise Refused("unsupported_op", f"tf2onnx cannot convert this model: {first_line(e)}") from e
    missing = sorted({op for op in operators(model.graph)})
    if missing:
        raise Refused("unsupported_op", f"tf2onnx has no ONNX for {', '.join(missing[:8])}: leave it out of what is exported, or write it with other operators", op=missing[0])
    return finished(model)


def numbered():
    """Gives the nodes of tf2onnx the order in which they are made. It goes through sets of
    them, whose order is that of addresses in memory, and so differs between processes."""
    import itertools

    from tf2onnx.graph import Graph, Node

    for kind in (Node, Graph):
        numbers = itertools.count()

        def made(self, *args, _made=kind.__init__, _numbers=numbers, **options):
            self.number = next(_numbers)
            _made(self, *args, **options)

        kind.__init__, kind.__hash__ = made, lambda self: self.number


def erfc(graph, node, _name, _args):
    """1 - Erf, which ONNX has: Keras writes the activation gelu with Erfc."""
    import numpy
    from onnx.helper import tensor_dtype_to_np_dtype

    x = node.input[0]
    one = graph.make_const(node.name + "/one", numpy.array(1, tensor_dtype_to_np_dtype(graph.get_dtype(x))))
    erf = graph.make_node("Erf", [x], name=node.name + "/erf")
    node.type = "Sub"
    graph.replace_inputs(node, [one.output[0], erf.output[0]])


def operators(graph):
    """The types of nodes, here and in graphs inside, that ONNX does not have."""
    import onnx

    for node in graph.node:
        if not onnx.defs.has(node.op_type, node.domain):
            yield node.op_type.removeprefix("TFL_")
        for inner in inside(node):
            yield from operators(inner)


def inside(node):
    for a in node.attribute:
        if a.HasField("g"):
            yield a.g
        yield from a.graphs


def finished(model):
    """A name for the batch, none for other open dimensions, and no operator set too many."""
    import onnx

    for value in (*model.graph.input, *model.graph.output):
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                dim.Clear()
                if i == 0:
                    dim.dim_param = BATCH
    used = domains(model.graph)
    versions = {o.domain: o.version for o in model.opset_import if o.domain in used}
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(d, versions[d]) for d in sorted(versions))
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
        raise Refused("unsupported_op", f"what tf2onnx made of this model is not valid ONNX: {first_line(e)}") from None
    return model


def domains(graph):
    return {n.domain for n in graph.node} | {d for n in graph.node for g in inside(n) for d in domains(g)} | {""}


def renamed(graph, names):
    """Gives tensors other names, everywhere in a graph, in place."""
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for field in (node.input, node.output):
            field[:] = [names.get(name, name) for name in field]
        for inner in inside(node):
            renamed(inner, names)


def first_line(e):
    return next((line.strip() for line in str(e).splitlines() if line.strip()), type(e).__name__)[:300]
