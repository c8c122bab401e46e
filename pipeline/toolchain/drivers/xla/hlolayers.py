"""Products, convolutions, pools and look-ups of StableHLO in terms of ONNX."""

import math
import re

from hlooperators import body, dtype_of, number, numbers, operation, sizes_of, starts
from protocol import Refused


def turned(e, name, order):
    return name if order == sorted(order) else e.node("Transpose", name, perm=order)


@operation("dot_general")
def dot(e, op):
    from jaxlib.mlir.dialects import stablehlo

    d = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    sides = []
    for value, batch, contract in (
        (op.operands[0], d.lhs_batching_dimensions, d.lhs_contracting_dimensions),
        (op.operands[1], d.rhs_batching_dimensions, d.rhs_contracting_dimensions),
    ):
        batch, contract = list(batch), list(contract)
        free = [i for i in range(len(sizes_of(value))) if i not in batch and i not in contract]
        sides.append((value, batch, free, contract))
    made = product(e, sides)
    want = sizes_of(op.results[0])
    if len(sides[0][2]) != 1 or len(sides[1][2]) != 1:  # dimensions that were put together, or are not there
        if want.count(-1) > 1:
            raise Refused("unsupported_op", "no translation to ONNX for a product with several open dimensions", op=op.name)
        made = e.node("Reshape", made, e.constant(want, "int64"))
    from onnx import helper

    out, into = dtype_of(op.results[0]), dtype_of(op.operands[0])
    e.keep(op, made if out == into else e.node("Cast", made, to=helper.np_dtype_to_tensor_dtype(out)))


def product(e, sides):
    """[batch, rows, inner] times [batch, inner, columns], with one dimension for each but batch."""
    names = []
    for side, (value, batch, free, contract) in enumerate(sides):
        sizes = sizes_of(value)
        order = [*batch, *free, *contract] if side == 0 else [*batch, *contract, *free]
        name = turned(e, e.whole(value), order)
        if len(free) != 1 or len(contract) != 1:
            rows, inner = (math.prod(sizes[i] for i in some) if all(sizes[i] >= 0 for i in some) else -1 for some in (free, contract))
            shape = [*(sizes[i] if sizes[i] >= 0 else 0 for i in batch), *((rows, inner) if side == 0 else (inner, rows))]
            if shape.count(-1) > 1:
                raise Refused("unsupported_op", "no translation to ONNX for a product over several open dimensions", op="stablehlo.dot_general")
            name = e.node("Reshape", name, e.constant(shape, "int64"))
        names.append(name)
    return e.node("MatMul", *names)


@operation("convolution")
def convolve(e, op):
    from jaxlib.mlir.dialects import stablehlo

    d = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    count = len(d.input_spatial_dimensions)
    strides, dilations, spread = (numbers(op, n, [1] * count) for n in ("window_strides", "rhs_dilation", "lhs_dilation"))
    pads = [int(n) for n in re.findall(r"-?\d+", str(op.attributes["padding"]).split(":")[0])] if "padding" in op.attributes else []
    pads = pads * (2 * count) if len(pads) == 1 else pads or [0] * (2 * count)
    if spread != [1] * count or number(op, "batch_group_count", 1) != 1 or min(pads) < 0 or "true" in str(op.attributes["window_reversal"] if "window_reversal" in op.attributes else ""):
        raise Refused("unsupported_op", "no translation to ONNX for a convolution that is transposed, turned round, or in groups of the batch", op=op.name)
    x = turned(e, e.whole(op.operands[0]), [d.input_batch_dimension, d.input_feature_dimension, *d.input_spatial_dimensions])
    w = turned(e, e.whole(op.operands[1]), [d.kernel_output_feature_dimension, d.kernel_input_feature_dimension, *d.kernel_spatial_dimensions])
    made = e.node("Conv", x, w, strides=strides, dilations=dilations, pads=pads[::2] + pads[1::2], group=number(op, "feature_group_count", 1))
    order = [d.output_batch_dimension, d.output_feature_dimension, *d.output_spatial_dimensions]
    e.keep(op, turned(e, made, [order.index(i) for i in range(len(order))]))


@operation("reduce_window")
def pool(e, op):
    rank, kind, dtype = len(sizes_of(op.results[0])), body(op), dtype_of(op.results[0])
    kernel, strides, dilations, spread = (numbers(op, n, [1] * rank) for n in ("window_dimensions", "window_strides", "window_dilations", "base_dilations"))
    pads = [int(n) for n in re.findall(r"-?\d+", str(op.attributes["padding"]).split(":")[0])] if "padding" in op.attributes else [0]
    pads = pads * (2 * rank) if len(pads) == 1 else pads
    pads = list(zip(pads[::2], pads[1::2]))
    moving = [i for i in range(rank) if kernel[i] > 1 or strides[i] > 1 or any(pads[i])]
    still = [i for i in range(rank) if i not in moving]
    known = kind in ("maximum", "add") and starts(e, op, kind, dtype) and spread == [1] * rank and len(still) >= 2 and dtype.kind == "f"
    if not known or kind == "add" and any(dilations[i] > 1 for i in moving):
        raise Refused("unsupported_op", f"no translation to ONNX for windows of {rank} dimensions by {kind or 'several operations'}", op=op.name)
    if not moving:
        e.keep(op, e.whole(op.operands[0]))
        return
    order = [*still, *moving]
    if len(still) > 2:
        raise Refused("unsupported_op", f"no translation to ONNX for windows of {rank} dimensions that move in {len(moving)}", op=op.name)
    x = turned(e, e.whole(op.operands[0]), order)
    common = {"kernel_shape": [kernel[i] for i in moving], "strides": [strides[i] for i in moving], "pads": [pads[i][0] for i in moving] + [pads[i][1] for i in moving]}
    if kind == "maximum":
        made = e.node("MaxPool", x, dilations=[dilations[i] for i in moving], **common)
    else:
        made = e.node("Mul", e.node("AveragePool", x, count_include_pad=1, **common), e.constant(math.prod(kernel), dtype))
    e.keep(op, turned(e, made, [order.index(i) for i in range(rank)]))


@operation("gather", "dynamic_gather")
def gather(e, op):
    """Look-ups along one dimension, as indexing and take write them. StableHLO clamps positions."""
    from jaxlib.mlir.dialects import stablehlo

    d = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    table, indices = op.operands[0], op.operands[1]
    sizes, rank, last = sizes_of(table), len(sizes_of(indices)), d.index_vector_dim
    axis, offset, result = (list(d.start_index_map) or [0])[0], list(d.offset_dims), sizes_of(op.results[0])
    kept = [s for i, s in enumerate(sizes) if i != axis]
    whole = list(d.collapsed_slice_dims) == list(d.start_index_map) == [axis] and [result[i] for i in offset] == kept and sizes[axis] >= 0
    if not whole or last != rank - 1 or sizes_of(indices)[-1] != 1 or list(d.operand_batching_dims) or sorted(offset) != offset:
        raise Refused("unsupported_op", "no translation to ONNX for a gather that is no look-up along one dimension", op=op.name)
    batch = rank - 1
    want = [*range(axis), *range(axis + batch, batch + len(sizes) - 1)]
    where = e.node("Squeeze", e.whole(indices), e.constant([rank - 1], "int64"))
    dtype = dtype_of(indices)
    where = e.node("Min", e.node("Max", where, e.constant(0, dtype)), e.constant(sizes[axis] - 1, dtype))
    made = e.node("Gather", e.whole(table), e.node("Cast", where, to=7), axis=axis)
    if offset != want:  # the looked-up dimensions stand elsewhere
        others = [i for i in range(batch + len(offset)) if i not in offset]
        # Of the result, dimension i is that of made at source[i].
        source = {**dict(zip(others, range(axis, axis + batch))), **dict(zip(offset, want))}
        made = turned(e, made, [source[i] for i in range(len(source))])
    e.keep(op, made)
