"""Products with weights whose zero points are real numbers.

MatMulNBits takes such zero points, and its kernel for CPUs then makes float32 of all weights
on every run; DequantizeLinear has integers alone. So zero points are rounded, and what that
leaves out is added: with d = scale (rounded zero - zero), x W = x R + s d, where R has the
rounded zero points, and s the sum of x over each block.
"""

import numpy
from graphs import nodes_of

SHAPE_IN_INPUT = 13  # the first operator set with the axes of ReduceSum, and the pads of Pad, among their inputs


class Names:
    """Names of tensors that a model does not have: torch.onnx calls products linear, linear_1, linear_2."""

    def __init__(self, graph):
        self.taken = {name for node in nodes_of(graph) for name in (*node.input, *node.output)} | {v.name for v in (*graph.input, *graph.initializer)}
        self.called = {}

    def new(self, wanted):
        """The wanted name, longer where it is taken."""
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted

    def same(self, wanted):
        """The same for all who want this name."""
        if wanted not in self.called:
            self.called[wanted] = self.new(wanted)
        return self.called[wanted]


def rounded(zeros):
    return numpy.clip(numpy.rint(zeros.astype(numpy.float32)), 0, 15).astype(numpy.uint8)


def pairs(codes):
    """4-bit codes as bytes, two to each along the last axis, the lower half first."""
    if codes.shape[-1] % 2:
        codes = numpy.concatenate([codes, numpy.zeros_like(codes[..., :1])], -1)
    return codes[..., 0::2] | codes[..., 1::2] << 4


def for_product(codes, scales, zeros, block_size):
    """Codes [K, N], scales and zeros [blocks, N] as MatMulNBits reads them: codes
    [N, blocks, block_size / 2], of a last block that is shorter the first ones."""
    padded = numpy.zeros((codes.shape[1], len(scales) * block_size), numpy.uint8)
    padded[:, : len(codes)] = codes.T
    return pairs(padded).reshape(len(padded), len(scales), -1), scales.T.copy(), pairs(rounded(zeros).T)


def for_dequantizing(codes, scales, zeros):
    """The same as DequantizeLinear reads them, along axis 0."""
    return pairs(codes.reshape(-1)), scales, pairs(rounded(zeros).reshape(-1))


def add_rest(nodes, x, prefix, graphs, names, rows, block_size, scales, zeros):
    """The nodes of a product with rounded zero points, and those that add the rest to its
    output. Constants go into graphs: the one with the weights, and the outermost, for those
    that other products may share. They are named after prefix; names has those that are free."""
    from onnx import helper, numpy_helper

    own, outermost = graphs
    count, made, out = len(scales), list(nodes), nodes[-1].output[0]
    nodes[-1].output[0] = product = names.new(f"{out}_rounded")

    def constant(graph, wanted, value):
        name = names.same(wanted)
        if all(i.name != name for i in graph.initializer):
            graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def integers(name, *values):
        return constant(outermost, f"mlpromote_{name}", numpy.array(values, numpy.int64))

    def node(kind, *inputs, to=None, **attributes):
        name = to or names.new(f"{out}_{len(made)}")
        made.append(helper.make_node(kind, inputs, [name], name=f"{name}_{kind}", **attributes))
        return name

    if rows % block_size:
        x = node("Reshape", x, integers(f"rows_{rows}", -1, rows))
        x = node("Pad", x, integers(f"pad_{count * block_size - rows}", 0, 0, 0, count * block_size - rows))
    x = node("Reshape", x, integers(f"blocks_{count}_{block_size}", -1, count, block_size))
    sums = node("ReduceSum", x, integers("last", 2), keepdims=0)
    rest = scales.astype(numpy.float32) * (rounded(zeros) - zeros.astype(numpy.float32))
    rest = node("MatMul", sums, constant(own, f"{prefix}_rest", rest.astype(scales.dtype)))
    rest = node("Reshape", rest, node("Shape", product))
    node("Add", product, rest, to=out)
    return made
