"""Low-rank factorization: one layer becomes two, whose weights are the largest singular values of its own."""

from layers import Cannot, attribute

MOST = 1 << 13  # of the smaller side: beyond, a decomposition takes longer than a build should


def factorize(graph, layer, options):
    node = layer.node
    if node.input[1] != layer.weights:
        raise Cannot("its weights are the left side of the product")
    weights = graph.own(layer.weights)
    if node.op_type == "Conv":
        matrix = of_convolution(node, weights)
    elif node.op_type in ("Gemm", "MatMul") and weights.ndim == 2:
        matrix = weights if layer.inner == 0 else weights.T
    else:
        raise Cannot(f"{node.op_type} with weights of {weights.ndim} dimensions is no product of a matrix")
    inner, outer = matrix.shape
    if min(inner, outer) > MOST:
        raise Cannot(f"its weights are {inner} by {outer}: want at most {MOST} on one side")
    left, right = factors(matrix, options)
    rank = left.shape[1]
    if rank * (inner + outer) >= inner * outer:
        raise Cannot(f"{said(options)} takes {rank} of {min(inner, outer)} singular values, which makes it no smaller")
    names = [f"{layer.weights}_rank{rank}_{side}" for side in ("in", "out")]
    if any(n in graph.tensors or n in graph.readers for n in names):
        raise Cannot(f"the graph has a value {names[0]!r} already")
    split(graph, node, names, left.astype(weights.dtype), right.astype(weights.dtype))
    return {"parameters": {"before": weights.size, "after": rank * (inner + outer)}, "rank": rank}


def said(options):
    return f"rank {options['rank']}" if options["rank"] else f"energy {options['energy']:.6g}"


def of_convolution(node, weights):
    if attribute(node, "group", 1) != 1:
        raise Cannot("it is a convolution in groups")
    if any(size != 1 for size in weights.shape[2:]):
        raise Cannot("its kernel is larger than 1x1")
    return weights.reshape(weights.shape[:2]).T


def factors(matrix, options):
    """matrix, about, as a product of two: computed in double precision. The component of each left vector that is largest is
    positive, so that signs do not depend on the algorithm."""
    import numpy

    if not numpy.isfinite(matrix).all():
        raise Cannot("its weights are not all finite")
    u, s, v = numpy.linalg.svd(matrix.astype(numpy.float64), full_matrices=False)
    rank = options["rank"]
    if not rank:
        energy = numpy.cumsum(s**2)
        rank = 1 if energy[-1] == 0 else int(numpy.searchsorted(energy, options["energy"] * energy[-1] * (1 - 1e-12))) + 1
    rank = min(rank, len(s))
    u, s, v = u[:, :rank], s[:rank], v[:rank]
    signs = numpy.where(u[numpy.argmax(numpy.abs(u), axis=0), numpy.arange(rank)] < 0, -1.0, 1.0)
    root = numpy.sqrt(s)
    return u * (signs * root), v * (signs * root)[:, None]


def split(graph, node, names, left, right):
    """Puts two nodes in the place of one. Both have a name that is told from that of the one."""
    import onnx

    between = names[0] + "_product"
    first, second = onnx.NodeProto(), onnx.NodeProto()
    first.CopyFrom(node)
    second.CopyFrom(node)
    first.name, second.name = node.name + "/in", node.name + "/out"
    del first.input[2:]
    first.input[1], second.input[1] = names
    first.output[0] = second.input[0] = between
    if node.op_type == "Conv":
        kernel = (1,) * (len(graph.tensors[node.input[1]].dims) - 2)
        left, right = (side.T.reshape(*side.T.shape, *kernel) for side in (left, right))
        # Strides and padding are the first one's: without a bias it gives zeros for padding.
        kept = [a for a in second.attribute if a.name == "kernel_shape"]
        del second.attribute[:]
        second.attribute.extend(kept)
    elif node.op_type == "Gemm":
        drop(first, "alpha", "beta", "transB")
        drop(second, "transA", "transB")  # alpha and beta stay with the sum that they scale
    graph.set(names[0], left)
    graph.set(names[1], right)
    at = next(i for i, n in enumerate(graph.graph.node) if n.name == node.name and n.output[0] == node.output[0])
    gone = node.input[1]
    graph.graph.node.remove(graph.graph.node[at])
    graph.graph.node.insert(at, second)
    graph.graph.node.insert(at, first)
    graph.drop(gone)
    graph.index()


def drop(node, *names):
    kept = [a for a in node.attribute if a.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)
