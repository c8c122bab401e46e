"""Half-quadratic quantization of 4-bit weights: Badri and Shaji, Half-Quadratic Quantization of
Large Machine Learning Models, 2023.

A block w becomes scale * (code - zero), codes from 0 to 15. The scale is that of the block's
range, and zero, a real number, minimizes the sum of |e|^p over the errors e, p < 1, which
cares for the many small weights more than for the few large ones. An auxiliary variable v
that stands for e splits the problem, sum of |v|^p + beta/2 (v - e)^2, into two that have closed
forms, solved in turn while beta grows: v = sign(e) max(|e| - |e|^(p-1)/beta, 0), and zero = the
mean of code - (w - v)/scale.

Errors are counted in steps of the scale here, so that beta means the same for all blocks.
With p = 3/4 powers are square roots, which every processor rounds alike.
"""

import numpy

LEVELS = 16
STEPS = 20
BETA, GROWTH = 3.0, 1.1


def solve(weights, block_size):
    """Codes [K, N], scales and zeros [blocks, N] of weights [K, N], in blocks along K, the last
    of which may be shorter. Scales and zeros have the type of the weights."""
    codes = numpy.empty(weights.shape, numpy.uint8)
    count = -(-weights.shape[0] // block_size)
    scales = numpy.empty((count, weights.shape[1]), weights.dtype)
    zeros = numpy.empty_like(scales)
    for i in range(count):
        rows = slice(i * block_size, (i + 1) * block_size)
        codes[rows], scales[i], zeros[i] = solve_block(weights[rows])
    return codes, scales, zeros


def solve_block(rows):
    """The same for one block of each column."""

    def stored(x):  # as it will be read
        return x.astype(rows.dtype).astype(numpy.float32)

    w = rows.astype(numpy.float32)
    scale = stored((w.max(0) - w.min(0)) / (LEVELS - 1))
    scale[scale == 0] = 1
    w /= scale
    zero, beta = stored(-w.min(0)), numpy.float32(BETA)
    best, least = zero, numpy.full(zero.shape, numpy.inf, numpy.float32)
    for _ in range(STEPS):
        code = nearest(w, zero)
        e = w - (code - zero)
        size = numpy.abs(e)
        root = numpy.sqrt(numpy.sqrt(size))
        cost = (root * root * root).sum(0)
        best, least = numpy.where(cost < least, zero, best), numpy.minimum(cost, least)
        v = numpy.copysign(numpy.maximum(size - 1 / (beta * numpy.maximum(root, numpy.float32(1e-9))), 0), e)
        zero = stored((code - (w - v)).mean(0))
        beta *= numpy.float32(GROWTH)
    return nearest(w, best).astype(numpy.uint8), scale, best


def nearest(w, zero):
    return numpy.clip(numpy.rint(w + zero), 0, LEVELS - 1)

