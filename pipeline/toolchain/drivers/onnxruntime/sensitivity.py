"""What each node costs when it is quantized: the costliest first, and layer by layer.

Leaving one node out of a quantized graph says little where two of them spoil the same
tensor; quantizing one node of a graph in full precision says what that node does.
"""

import math
import time

from protocol import Refused, inputs_of
from tensors import cases

TRIED_CASES = 32


def costs(request, options, inputs, types, make):
    """The result's part about sensitivity, or nothing where it is given no time. make(path,
    nodes) quantizes these nodes of prepared.onnx alone."""
    if not options["sensitivity"]:
        return {}
    feeds = tried(request, inputs)
    nodes = candidates(types, options["exclude_nodes"])
    want = outputs("prepared.onnx", feeds)
    found = []
    late = alarm(options["sensitivity"])
    for name, operator in nodes:
        if late():
            break
        make("one.onnx", [name])
        found.append({"node": name, "operator": operator, "snr_db": snr(want, outputs("one.onnx", feeds))})
    found.sort(key=lambda cost: (cost["snr_db"], cost["node"]))
    return {"sensitivity": {"snr_db": snr(want, outputs("quantized.onnx", feeds)), "nodes": found, "of": len(nodes)}}


def layers(request, options, inputs, types, make):
    """The result's part about layers, or nothing where it is given no time. For each node that can be
    quantized, in the order of the graph: the ratio when all before it and it are quantized, when it
    alone is, and when all but it are. Where the time runs out, later nodes lack some."""
    if not options["layers"]:
        return {}
    feeds = tried(request, inputs)
    nodes = in_order(candidates(types, options["exclude_nodes"]))
    want = outputs("prepared.onnx", feeds)
    names = [name for name, _ in nodes]
    found = [{"node": name, "operator": operator} for name, operator in nodes]
    late = alarm(options["layers"])

    def measure(key, chosen):
        for n, cost in enumerate(found):
            if late():
                return
            if which := chosen(n):
                make("one.onnx", which)
                cost[key] = snr(want, outputs("one.onnx", feeds))

    measure("cumulative_db", lambda n: names[: n + 1])
    measure("alone_db", lambda n: [names[n]])
    measure("without_db", lambda n: names[:n] + names[n + 1 :])
    return {"layers": {"snr_db": snr(want, outputs("quantized.onnx", feeds)), "nodes": found}}


def in_order(nodes):
    import onnx

    places = {n.name: i for i, n in enumerate(onnx.load("prepared.onnx").graph.node)}
    return sorted(nodes, key=lambda node: places[node[0]])


def alarm(seconds):
    """A function that says whether the time is over."""
    began = time.monotonic()
    return lambda: time.monotonic() - began > seconds


def tried(request, inputs):
    feeds = []
    for feed in cases(inputs_of(request, "cases"), inputs):
        feeds.append(feed)
        if len(feeds) == TRIED_CASES:
            break
    if not feeds:
        raise Refused("bad_input", "sensitivity is measured on cases: inputs of role cases")
    return feeds


def candidates(types, excluded):
    """The nodes that may be quantized, those with the most weights first."""
    import onnx

    graph = onnx.load("prepared.onnx").graph
    weights = {i.name: math.prod(i.dims) for i in graph.initializer}
    nodes = [n for n in graph.node if n.name and n.op_type in types and n.name not in excluded]
    nodes.sort(key=lambda n: -sum(weights.get(i, 0) for i in n.input))
    return [(n.name, n.op_type) for n in nodes]


def outputs(path, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed) for feed in feeds]


MOST = 200.0  # dB; what equal outputs are given, since JSON has no infinity


def snr(want, got):
    """10 log10 of the power of the outputs by that of the difference, over all cases."""
    import numpy

    signal = noise = 0.0
    for wants, gots in zip(want, got):
        for w, g in zip(wants, gots):
            w, g = numpy.asarray(w, numpy.float64), numpy.asarray(g, numpy.float64)
            signal += float(numpy.sum(w * w))
            noise += float(numpy.sum((w - g) ** 2))
    if not math.isfinite(noise):
        return -MOST
    if noise == 0:
        return MOST
    return max(-MOST, min(MOST, 10 * math.log10(signal / noise))) if signal else -MOST
