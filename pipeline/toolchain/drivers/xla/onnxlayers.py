"""Layers of ONNX in terms of JAX: products, convolutions, pools, norms, and numbers of 8 bits."""

import math

import jax.numpy as jnp
from jax import lax
from onnxoperators import device, operator
from protocol import Refused

SPATIAL = "DHW"


@operator("Gemm")
def gemm(n, a, b, c=None):
    a, b = (device(v).T if n.get(t, 0) else device(v) for v, t in ((a, "transA"), (b, "transB")))
    made = jnp.matmul(a, b)
    if n.get("alpha", 1.0) != 1:
        made = made * jnp.asarray(n.get("alpha"), made.dtype)
    return made if c is None else made + device(c) * jnp.asarray(n.get("beta", 1.0), made.dtype)


def padding(n, sizes, kernel, strides, dilations):
    """(before, after) for each spatial dimension."""
    auto, count = n.get("auto_pad", "NOTSET"), len(kernel)
    if auto == "NOTSET":
        pads = n.get("pads") or [0] * 2 * count
        return list(zip(pads[:count], pads[count:]))
    if auto == "VALID":
        return [(0, 0)] * count
    pads = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations):
        total = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if auto == "SAME_UPPER" else (more, less))
    return pads


@operator("Conv")
def convolve(n, x, w, b=None):
    x, w = device(x), device(w)
    count = x.ndim - 2
    strides, dilations = n.get("strides") or [1] * count, n.get("dilations") or [1] * count
    pads, letters = padding(n, x.shape[2:], w.shape[2:], strides, dilations), SPATIAL[-count:]
    made = lax.conv_general_dilated(x, w, strides, pads, rhs_dilation=dilations, feature_group_count=n.get("group", 1),
                                    dimension_numbers=("NC" + letters, "OI" + letters, "NC" + letters))
    return made if b is None else made + device(b).reshape((1, -1, *[1] * count))


@operator("ConvTranspose")
def transposed(n, x, w, b=None):
    x, w = device(x), device(w)
    count, groups = x.ndim - 2, n.get("group", 1)
    if n.get("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in n.attributes:
        raise Refused("unsupported_op", "ConvTranspose with auto_pad or output_shape", op=n.kind)
    strides, dilations, more = (n.get(k) or [d] * count for k, d in (("strides", 1), ("dilations", 1), ("output_padding", 0)))
    pads, letters = padding(n, x.shape[2:], w.shape[2:], strides, dilations), SPATIAL[-count:]
    sizes = w.shape[2:]
    # The kernel, turned round, goes over an input with strides - 1 zeros between its elements.
    w = jnp.flip(w, tuple(range(2, w.ndim)))
    w = w.reshape((groups, w.shape[0] // groups, w.shape[1], *sizes)).swapaxes(1, 2).reshape((-1, w.shape[0] // groups, *sizes))
    reach = [(k - 1) * d for k, d in zip(sizes, dilations)]
    made = lax.conv_general_dilated(x, w, [1] * count, [(r - p, r - q + m) for r, (p, q), m in zip(reach, pads, more)], lhs_dilation=strides,
                                    rhs_dilation=dilations, feature_group_count=groups, dimension_numbers=("NC" + letters, "OI" + letters, "NC" + letters))
    return made if b is None else made + device(b).reshape((1, -1, *[1] * count))


@operator("MaxPool", "AveragePool")
def pool(n, x):
    x, kernel = device(x), n.get("kernel_shape")
    count = len(kernel)
    if n.outputs > 1:
        raise Refused("unsupported_op", "MaxPool with indices", op=n.kind)
    strides, dilations = n.get("strides") or [1] * count, n.get("dilations") or [1] * count
    pads = padding(n, x.shape[2:], kernel, strides, dilations)
    extra = [0] * count
    if n.get("ceil_mode", 0):  # more behind the end, unless a window would begin there
        for i, (size, k) in enumerate(zip(x.shape[2:], kernel)):
            span = size + sum(pads[i]) - (k - 1) * dilations[i] - 1
            steps = -(-span // strides[i])
            if steps * strides[i] >= size + pads[i][0]:
                steps -= 1
            extra[i] = max(steps * strides[i] - span, 0)
    wide = [(0, 0), (0, 0), *((p, q + e) for (p, q), e in zip(pads, extra))]

    def window(value, start, f):
        return lax.reduce_window(value, start, f, (1, 1, *kernel), (1, 1, *strides), wide, window_dilation=(1, 1, *dilations))

    if n.kind == "MaxPool":
        least = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
        return window(x, jnp.asarray(least, x.dtype), lax.max)
    total = window(x, jnp.asarray(0, x.dtype), lax.add)
    if not any(map(any, wide)):
        return total / math.prod(kernel)
    ones = jnp.ones((1, 1, *x.shape[2:]), x.dtype)
    if n.get("count_include_pad", 0):  # what is only there to make the last window whole never counts
        ones = jnp.pad(ones, [(0, 0), (0, 0), *pads], constant_values=1)
        wide = [(0, 0), (0, 0), *((0, e) for e in extra)]
    return total / window(ones, jnp.asarray(0, x.dtype), lax.add)


@operator("BatchNormalization")
def batch_norm(n, x, scale, bias, mean, variance):
    x, shape = device(x), (1, -1, *[1] * (x.ndim - 2))
    scale, bias, mean, variance = (device(v).reshape(shape) for v in (scale, bias, mean, variance))
    return (x - mean) / jnp.sqrt(variance + jnp.asarray(n.get("epsilon", 1e-5), x.dtype)) * scale + bias


@operator("LayerNormalization", "InstanceNormalization", "RMSNormalization")
def norm(n, x, scale, bias=None):
    x, scale = device(x), device(scale)
    if n.kind == "InstanceNormalization":
        axes, shape = tuple(range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
        scale, bias = scale.reshape(shape), device(bias).reshape(shape)
    else:
        axes = tuple(range(n.get("axis", -1) % x.ndim, x.ndim))
    if n.kind != "RMSNormalization":
        x = x - jnp.mean(x, axes, keepdims=True)
    made = x / jnp.sqrt(jnp.mean(x * x, axes, keepdims=True) + jnp.asarray(n.get("epsilon", 1e-5), x.dtype)) * scale
    if n.outputs > 1:
        raise Refused("unsupported_op", f"{n.kind} with more than one output", op=n.kind)
    return made if bias is None else made + device(bias)


def along(n, value, x):
    """A scale or a zero point for each element: one for all, one for each of an axis, or one for each block of it."""
    value, axis, block = device(value), n.get("axis", 1), n.get("block_size", 0)
    if value.ndim == 0 or value.size == 1:
        return value.reshape(())
    if block:
        return lax.slice_in_dim(jnp.repeat(value, block, axis), 0, x.shape[axis], axis=axis)
    shape = [1] * x.ndim
    shape[axis % x.ndim] = -1
    return value.reshape(shape)


@operator("QuantizeLinear")
def quantize(n, x, scale, zero=None):
    x = device(x)
    dtype = jnp.uint8 if zero is None else zero.dtype
    if dtype not in (jnp.uint8, jnp.int8, jnp.uint16, jnp.int16):
        raise Refused("unsupported_op", f"QuantizeLinear to {dtype}", op=n.kind)
    made = jnp.round(x / along(n, scale, x))
    if zero is not None:
        made = made + along(n, zero, x).astype(made.dtype)
    return jnp.clip(made, jnp.iinfo(dtype).min, jnp.iinfo(dtype).max).astype(dtype)


@operator("DequantizeLinear")
def dequantize(n, x, scale, zero=None):
    x = device(x)
    made = x.astype(jnp.int32)
    if zero is not None:
        made = made - along(n, zero, x).astype(jnp.int32)
    return made.astype(scale.dtype) * along(n, scale, x)


@operator("DynamicQuantizeLinear")
def quantize_dynamic(_n, x):
    x = device(x)
    low, high = jnp.minimum(jnp.min(x), 0), jnp.maximum(jnp.max(x), 0)
    scale = (high - low) / 255
    zero = jnp.clip(jnp.round(-low / scale), 0, 255)
    return jnp.clip(jnp.round(x / scale) + zero, 0, 255).astype(jnp.uint8), scale, zero.astype(jnp.uint8)


@operator("MatMulInteger")
def matmul_integer(n, a, b, a_zero=None, b_zero=None):
    a, b = (device(v).astype(jnp.int32) for v in (a, b))
    if a_zero is not None:
        zero = device(a_zero).astype(jnp.int32)
        a = a - (zero[..., None] if zero.ndim == 1 and zero.size > 1 else zero.reshape(()) if zero.size == 1 else zero)
    if b_zero is not None:
        b = b - device(b_zero).astype(jnp.int32)
    return jnp.matmul(a, b)


@operator("ConvInteger")
def convolve_integer(n, x, w, x_zero=None, w_zero=None):
    x, w = (device(v).astype(jnp.int32) for v in (x, w))
    if x_zero is not None:
        x = x - device(x_zero).astype(jnp.int32)
    if w_zero is not None:
        zero = device(w_zero).astype(jnp.int32)
        w = w - (zero.reshape((-1, *[1] * (w.ndim - 1))) if zero.size > 1 else zero.reshape(()))
    return convolve(n, x, w)
