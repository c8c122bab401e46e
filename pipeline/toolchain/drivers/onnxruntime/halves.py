"""Half precision, by onnxruntime.transformers."""

from graphs import check_names, graph_inputs, load, one_thread
from protocol import Refused, inputs_of, model_of, write
from tensors import cases

TRIED_CASES = 16  # of the calibration, on which tolerances are held


def halve(request, options):
    source = model_of(request)
    kept = list(options["exclude_nodes"])
    check_names(kept, named(load(source)))
    if options["rtol"] or options["atol"]:
        kept += too_coarse(request, source, options)
    model = converted(source, kept)
    import onnx

    halved = sum(i.data_type == onnx.TensorProto.FLOAT16 for i in model.graph.initializer)
    if halved == 0:
        raise Refused("unsupported_op", "the model has no float32 weights that could be made float16" + (", within these tolerances" if kept else ""))
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"halved": halved, "kept": sorted(kept)}


def converted(source, kept):
    """The model in half precision but for the nodes of these names."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = named(load(source))
    model = convert_float_to_float16(model, keep_io_types=True, node_block_list=kept)
    sort_nodes(model.graph)
    if kept:
        drop_round_trips(model.graph)
    onnx.checker.check_model(model)
    return model


def named(model):
    """Every node under a name, since nodes are kept by name."""
    for i, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{i}"
    return model


def too_coarse(request, source, options):
    """The nodes that stay float32 so that the outputs keep the tolerances: the shortest
    tail of the graph that does, then, in order, what of it can be halved after all."""
    shards = inputs_of(request, "calibration")
    if not shards:
        raise Refused("bad_input", "rtol and atol are held on calibration: inputs of role calibration")
    one_thread()
    model = load(source)
    feeds = []
    for feed in cases(shards, graph_inputs(model)):
        feeds.append(feed)
        if len(feeds) == TRIED_CASES:
            break
    want = outputs(model, feeds)
    nodes = [n.name for n in named(load(source)).graph.node if n.op_type != "Constant"]

    def keeps(kept):
        return close(want, outputs(converted(source, kept), feeds), options)

    if keeps([]):
        return []
    if not keeps(nodes):
        raise Refused("bad_input", "no mixture keeps these tolerances: rounding inputs and outputs alone exceeds them")
    first, last = 0, len(nodes)  # nodes[first:] kept is enough; nodes[last:] is not
    while last - first > 1:
        middle = (first + last) // 2
        if keeps(nodes[middle:]):
            first = middle
        else:
            last = middle
    kept = nodes[first:]
    for chunk in (max(len(kept) // 4, 1), 1) if len(kept) <= 64 else (max(len(kept) // 8, 1),):
        i = 0
        while i < len(kept):
            fewer = kept[:i] + kept[i + chunk :]
            if keeps(fewer):
                kept = fewer
            else:
                i += chunk
    return kept


def outputs(model, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed) for feed in feeds]


def close(want, got, options):
    import numpy

    return all(
        numpy.allclose(g, w, rtol=options["rtol"], atol=options["atol"], equal_nan=True)
        for wants, gots in zip(want, got)
        for w, g in zip(wants, gots)
    )


def drop_round_trips(graph):
    """Joins neighbours that stayed float32: the converter leads what passes between them
    through float16 and back, which would round it all the same."""
    from onnx import TensorProto

    def casts(kind):
        return {n.output[0]: n for n in graph.node if n.op_type == "Cast" and n.attribute[0].i == kind}

    down, finals = casts(TensorProto.FLOAT16), {o.name for o in graph.output}
    made = {o for n in graph.node for o in n.output}
    joined, gone = {}, set()
    for name, up in casts(TensorProto.FLOAT).items():
        if up.input[0] not in down:
            continue
        source = down[up.input[0]].input[0]
        if name not in finals:
            joined[name] = source
        elif source in made and source not in finals:
            joined[source] = name  # an output of the graph keeps its name
        else:
            continue
        gone.add(name)
    nodes = [n for n in graph.node if not (n.op_type == "Cast" and gone & set(n.output))]
    for node in nodes:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = joined.get(name, name)
    used = finals.union(*(needs(n) for n in nodes))
    left = [n for n in nodes if n.op_type != "Cast" or used & set(n.output)]
    del graph.node[:]
    graph.node.extend(left)


def sort_nodes(graph):
    """Puts every node after those that it needs, else in the order that there is, and
    drops what says the same twice: the converter appends its casts at the end, one for
    every use."""
    nodes, made = [], set()
    for node in graph.node:
        outputs = {o for o in node.output if o}
        if not (node.op_type == "Cast" and outputs <= made):
            nodes.append(node)
        made |= outputs
    waiting = {o for node in nodes for o in node.output if o}
    done = []
    while nodes:
        later = []
        for node in nodes:
            if any(name in waiting for name in needs(node)):
                later.append(node)
                continue
            done.append(node)
            waiting.difference_update(node.output)
        if len(later) == len(nodes):
            raise Refused("bad_input", f"node {later[0].name!r} needs its own result")
        nodes = later
    del graph.node[:]
    graph.node.extend(done)


def needs(node):
    """The names that a node reads, those of its subgraphs included."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from needs(inner)
