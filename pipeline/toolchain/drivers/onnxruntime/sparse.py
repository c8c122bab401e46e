"""Pruning that leaves shapes as they are: the smallest weights become zero. Of equal ones the first do."""

import math

from layers import Cannot

GROUP, ALLOWED = 4, 2  # of every 4 weights along the inner axis at most 2 are not zero


def unstructured(graph, layer, options):
    import numpy

    unshared(graph, layer)
    weights = graph.constant(layer.weights).copy()
    count = part(options["amount"], weights.size)
    if count == 0:
        raise Cannot(f"the amount of its {weights.size} weights is less than one")
    flat = weights.reshape(-1)
    flat[numpy.argsort(numpy.abs(flat), kind="stable")[:count]] = 0
    return replaced(graph, layer, weights)


def in_fours(graph, layer, _options):
    import numpy

    unshared(graph, layer)
    weights = graph.constant(layer.weights)
    size = weights.shape[layer.inner]
    if size % GROUP:
        raise Cannot(f"{size} weights are summed, which is no multiple of {GROUP}")
    fours = numpy.moveaxis(weights, layer.inner, -1)
    shape = fours.shape
    fours = fours.reshape(-1, GROUP).copy()
    smallest = numpy.argsort(numpy.abs(fours), axis=1, kind="stable")[:, : GROUP - ALLOWED]
    numpy.put_along_axis(fours, smallest, 0, axis=1)
    return replaced(graph, layer, numpy.moveaxis(fours.reshape(shape), -1, layer.inner))


def unshared(graph, layer):
    """Refuses weights that another node reads too: it might sum them along another axis, and would be pruned twice."""
    graph.own(layer.weights)


def part(amount, of):
    """So many of these: rounded down, and not by what a decimal fraction loses in binary."""
    return math.floor(amount * of + 1e-6)


def replaced(graph, layer, weights):
    was = graph.constant(layer.weights)
    before = int((was == 0).sum())
    graph.set(layer.weights, weights)
    return {"parameters": {"before": was.size, "after": weights.size}, "zeros": {"before": before, "after": int((weights == 0).sum())}}
