"""The layers of a graph that have constant weights: what compression changes."""

from graphs import check_names, nodes_of
from protocol import Refused

DEFAULT_DOMAINS = ("", "ai.onnx")


class Cannot(Exception):
    """A layer stays as it is, and why."""


class Layer:
    """A node with constant weights. inner is the axis of the weights that is summed over, outer the one of the results."""

    def __init__(self, node, weights, inner, outer):
        self.node, self.weights, self.inner, self.outer = node, weights, inner, outer


class Graph:
    """A model's graph with its constants as arrays, by name, and who reads what."""

    def __init__(self, model):
        import onnx

        self.model, self.graph = model, model.graph
        tidy(model)
        self.tensors = {i.name: i for i in self.graph.initializer}
        self.outputs = {o.name for o in self.graph.output}
        self.floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
        self.index()

    def index(self):
        """Finds the readers of every value: (node, place) in the graph itself, and which values subgraphs read."""
        self.readers, self.nested = {}, set()
        for node in self.graph.node:
            for place, name in enumerate(node.input):
                self.readers.setdefault(name, []).append((node, place))
            for attribute in node.attribute:
                for inner in (attribute.g, *attribute.graphs):
                    self.nested.update(name for n in nodes_of(inner) for name in n.input)
                    self.nested.update(o.name for o in inner.output)

    def constant(self, name):
        """The array of a constant, or None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.tensors[name]) if name in self.tensors else None

    def floating(self, name):
        return name in self.tensors and self.tensors[name].data_type in self.floats

    def own(self, name):
        """The array of a constant that one node reads, and nothing else."""
        if len(self.readers.get(name, [])) != 1 or name in self.nested or name in self.outputs:
            raise Cannot(f"{name!r} is shared with other nodes")
        return self.constant(name)

    def set(self, name, array):
        """Gives a constant, new or known, another array."""
        import numpy
        from onnx import numpy_helper

        array = numpy.ascontiguousarray(array)
        tensor = numpy_helper.from_array(array, name)
        if name in self.tensors:
            self.tensors[name].CopyFrom(tensor)
        else:
            self.graph.initializer.append(tensor)
            self.tensors[name] = self.graph.initializer[-1]

    def drop(self, name):
        self.graph.initializer.remove(self.tensors.pop(name))

    def counts(self):
        """How many numbers the floating-point constants have, and how many of them are zero."""
        parameters = zeros = 0
        for name in filter(self.floating, self.tensors):
            array = self.constant(name)
            parameters, zeros = parameters + array.size, zeros + int((array == 0).sum())
        return {"parameters": parameters, "zeros": zeros}


def tidy(model):
    """Leaves one form of constants: initializers that are no inputs. Their defaults could not be replaced before either, since
    nothing here gives an input that has one."""
    graph = model.graph
    lifted = [n for n in graph.node if n.op_type == "Constant" and n.domain in DEFAULT_DOMAINS and len(n.attribute) == 1 and n.attribute[0].name == "value"]
    for node in lifted:
        tensor = graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
        graph.node.remove(node)
    initialized = {i.name for i in graph.initializer}
    inputs = [v for v in graph.input if v.name not in initialized]
    if lifted or len(inputs) < len(graph.input):
        del graph.input[:]
        graph.input.extend(inputs)
        model.ir_version = max(model.ir_version, 4)  # the first in which initializers need not be inputs
    for i, node in enumerate(graph.node):
        node.name = node.name or f"{node.op_type}_{i}"


def attribute(node, name, default):
    import onnx

    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def places(node, ranks):
    """Where a node of this type has weights: (input, inner axis, outer axis). ranks has the ranks of constants."""
    if node.domain not in DEFAULT_DOMAINS:
        return
    if node.op_type == "Conv":
        yield 1, 1, 0
    elif node.op_type == "ConvTranspose":
        yield 1, 0, 1
    elif node.op_type == "Gemm":
        yield (1, 1, 0) if attribute(node, "transB", 0) else (1, 0, 1)
        yield (0, 0, 1) if attribute(node, "transA", 0) else (0, 1, 0)
    elif node.op_type == "MatMul":
        for place in (1, 0):
            rank = ranks(node.input[place])
            if rank >= 2:
                yield (1, rank - 2, rank - 1) if place == 1 else (0, rank - 1, rank - 2)


def layers_of(graph, options):
    """The layers that an option asks for, and those that stay, with why: [{node, operator, why}]."""
    check_names(options["exclude"], graph.model)
    names = {node.name for node in graph.graph.node}
    for name in options["nodes"]:
        if name not in names:
            raise Refused("bad_input", f"nodes: the model has no node {name!r}")

    def rank(name):
        return len(graph.tensors[name].dims) if name in graph.tensors else -1

    found, kept = [], []
    for node in graph.graph.node:
        for place, inner, outer in places(node, rank):
            if place >= len(node.input) or node.input[place] not in graph.tensors:
                continue
            if node.name in options["exclude"] or options["nodes"] and node.name not in options["nodes"]:
                continue
            name = node.input[place]
            if not graph.floating(name):
                kept.append(why(node, "its weights are no float32, float16 or float64"))
                continue
            found.append(Layer(node, name, inner, outer))
            break
    known = {layer.node.name for layer in found} | {k["node"] for k in kept}
    for name in options["nodes"]:
        if name not in known and name not in options["exclude"]:
            raise Refused("unsupported_op", f"nodes: {name!r} has no constant weights: want a Conv, Gemm or MatMul that has")
    return found, kept


def why(node, reason):
    return {"node": node.name, "operator": node.op_type, "why": reason}


def each(graph, options, change):
    """Changes one layer after the other: change takes the layer, and returns what it says of it or raises Cannot. Returns
    what changed and what stayed. A node that the option names has to change."""
    found, kept = layers_of(graph, options)
    changed = []
    for layer in found:
        try:
            said = change(layer)
        except Cannot as e:
            kept.append(why(layer.node, str(e)))
            continue
        changed.append({"node": layer.node.name, "operator": layer.node.op_type, **said})
    stayed = {k["node"]: k["why"] for k in kept}
    for name in options["nodes"]:
        if name in stayed:
            raise Refused("unsupported_op", f"node {name!r} cannot be compressed so: {stayed[name]}")
    if not changed:
        first = "; ".join(f"{k['node']}: {k['why']}" for k in kept[:3])
        raise Refused("unsupported_op", "no layer of the model can be compressed so" + (f": {first}" if first else ": none has constant weights"))
    return changed, kept
