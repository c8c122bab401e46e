"""Operators of ONNX in terms of JAX, or of numpy for inputs that are known (onnx.ai/onnx/operators)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from protocol import Refused

OPERATORS = {}


class Node:
    """A node that is translated: its attributes, and the array module that computes it."""

    def __init__(self, kind, attributes, opset, outputs, xp):
        self.kind, self.attributes, self.opset, self.outputs, self.xp = kind, attributes, opset, outputs, xp

    def get(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def axes(self, given, position):
        """Axes as an attribute, or as an input from some operator set on; None for none."""
        if "axes" in self.attributes:
            return [int(a) for a in self.attributes["axes"]]
        return [int(a) for a in known(given[position]).reshape(-1)] if len(given) > position and given[position] is not None else None


def apply(kind, given, attributes, opset, outputs):
    """The outputs of a node."""
    host = all(g is None or isinstance(g, np.ndarray) for g in given)
    made = OPERATORS[kind](Node(kind, attributes, opset, outputs, np if host else jnp), *given)
    return made if isinstance(made, (list, tuple)) else (made,)


def operator(*names):
    def add(f):
        OPERATORS.update(dict.fromkeys(names, f))
        return f

    return add


def known(value):
    """The value of an input that has to be known while JAX traces."""
    if not isinstance(value, np.ndarray):
        raise Refused("unsupported_op", "a shape, an axis or a size is computed from inputs: XLA wants it known")
    return value


def device(value):
    """The value for JAX; of a shape with open dimensions, an array of what they are in a run."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return jnp.stack([jnp.asarray(v, jnp.int64) for v in value.reshape(-1)]).reshape(value.shape) if value.size else jnp.zeros(value.shape, jnp.int64)
    return jnp.asarray(value)


def shaped(sizes):
    """A shape as a known array."""
    sizes = list(sizes)
    return np.array(sizes, np.int64 if all(isinstance(s, int) for s in sizes) else object)


def simple(**functions):
    for name, f in functions.items():
        OPERATORS[name] = lambda n, *given, _f=f: _f(*(given if n.xp is np else map(device, given)))


def both(**names):
    """Operators that numpy and JAX have under one name."""
    for name, attribute in names.items():
        OPERATORS[name] = lambda n, *given, _a=attribute: getattr(n.xp, _a)(*(given if n.xp is np else map(device, given)))


both(
    Add="add", Sub="subtract", Mul="multiply", Pow="power", Neg="negative", Abs="abs", Sqrt="sqrt", Exp="exp", Log="log", Tanh="tanh", Sign="sign",
    Floor="floor", Ceil="ceil", Round="round", Reciprocal="reciprocal", Sin="sin", Cos="cos", Not="logical_not", And="logical_and", Or="logical_or",
    Xor="logical_xor", Equal="equal", Less="less", LessOrEqual="less_equal", Greater="greater", GreaterOrEqual="greater_equal", Where="where",
    MatMul="matmul", IsNaN="isnan",
)
simple(
    Erf=lambda x: jax.scipy.special.erf(x), Sigmoid=lambda x: jax.nn.sigmoid(x), Relu=lambda x: jnp.maximum(x, 0), Softplus=lambda x: jax.nn.softplus(x),
    Softsign=lambda x: x / (1 + jnp.abs(x)), HardSwish=lambda x: x * jnp.clip(x / 6 + 0.5, 0, 1), Mish=lambda x: x * jnp.tanh(jax.nn.softplus(x)),
    Identity=lambda x: x, GlobalAveragePool=lambda x: jnp.mean(x, tuple(range(2, x.ndim)), keepdims=True),
    GlobalMaxPool=lambda x: jnp.max(x, tuple(range(2, x.ndim)), keepdims=True),
)


@operator("Div")
def divide(n, a, b):
    if n.xp is np:
        return a // b if a.dtype == object or a.dtype.kind in "iu" else a / b
    return lax.div(*jnp.broadcast_arrays(device(a), device(b))) if device(a).dtype.kind in "iu" else jnp.divide(device(a), device(b))


@operator("Min", "Max", "Sum", "Mean")
def several(n, first, *more):
    f = {"Min": n.xp.minimum, "Max": n.xp.maximum}.get(n.kind, n.xp.add)
    for other in more:
        first = f(first, other)
    return first / (1 + len(more)) if n.kind == "Mean" else first


@operator("Mod")
def modulo(n, a, b):
    return (n.xp.fmod if n.get("fmod", 0) else n.xp.mod)(a, b)


@operator("LeakyRelu", "Elu", "Selu", "HardSigmoid", "Gelu", "PRelu")
def activation(n, x, slope=None):
    x = device(x)
    match n.kind:
        case "LeakyRelu":
            return jnp.where(x < 0, x * jnp.asarray(n.get("alpha", 0.01), x.dtype), x)
        case "PRelu":
            return jnp.where(x < 0, x * device(slope), x)
        case "HardSigmoid":
            return jnp.clip(x * jnp.asarray(n.get("alpha", 0.2), x.dtype) + jnp.asarray(n.get("beta", 0.5), x.dtype), 0, 1)
        case "Gelu":
            return jax.nn.gelu(x, approximate=n.get("approximate", "none") == "tanh")
        case "Selu":
            return jnp.asarray(n.get("gamma", 1.0507010221481323), x.dtype) * jax.nn.elu(x, n.get("alpha", 1.6732631921768188))
    return jax.nn.elu(x, n.get("alpha", 1.0))


@operator("Clip")
def clip(n, x, low=None, high=None):
    low, high = (n.get("min"), n.get("max")) if n.opset < 11 else (low, high)
    if low is not None:
        x = n.xp.maximum(x, n.xp.asarray(low, x.dtype))
    return x if high is None else n.xp.minimum(x, n.xp.asarray(high, x.dtype))


@operator("Cast", "CastLike")
def cast(n, x, like=None):
    import onnx

    dtype = like.dtype if n.kind == "CastLike" else onnx.helper.tensor_dtype_to_np_dtype(n.get("to"))
    if isinstance(x, np.ndarray) and x.dtype == object:
        return x if np.dtype(dtype).kind in "iu" else device(x).astype(dtype)
    return x.astype(dtype)


@operator("Constant")
def constant(n):
    from onnx import numpy_helper

    (name, value), = n.attributes.items()
    if name == "value":
        return numpy_helper.to_array(value)
    return np.array(value, {"value_float": np.float32, "value_floats": np.float32}.get(name, np.int64))


@operator("Shape")
def shape(n, x):
    return shaped(x.shape)[n.get("start", 0) : n.get("end")]


@operator("Size")
def size(_n, x):
    return np.array(math.prod(x.shape), np.int64 if all(isinstance(s, int) for s in x.shape) else object)


@operator("ConstantOfShape")
def filled(n, sizes):
    from onnx import numpy_helper

    value = numpy_helper.to_array(n.attributes["value"]) if "value" in n.attributes else np.zeros(1, np.float32)
    sizes = tuple(known(sizes).tolist())
    xp = np if all(isinstance(s, int) for s in sizes) else jnp
    return xp.full(sizes, value.reshape(()), value.dtype)


@operator("Range")
def counted(_n, start, limit, step):
    start, limit, step = (known(v).reshape(()) for v in (start, limit, step))
    if limit.dtype == object:
        return jnp.arange(int(start), limit.item(), int(step), dtype=jnp.int64)
    return np.arange(start, limit, step, dtype=start.dtype)


@operator("Dropout")
def dropout(n, x, *_):
    return [x, jnp.ones(x.shape, bool)][: n.outputs]


@operator("Reshape")
def reshape(n, x, sizes):
    sizes = [x.shape[i] if isinstance(s, int) and s == 0 and not n.get("allowzero", 0) else s for i, s in enumerate(known(sizes).tolist())]
    return x.reshape(tuple(sizes))


@operator("Flatten")
def flatten(n, x):
    axis = n.get("axis", 1) % (x.ndim + 1) if n.get("axis", 1) < 0 else n.get("axis", 1)
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Transpose")
def transpose(n, x):
    return n.xp.transpose(x, n.get("perm"))


@operator("Squeeze")
def squeeze(n, x, *axes):
    found = n.axes((x, *axes), 1)
    return n.xp.squeeze(x, None if found is None else tuple(found))


@operator("Unsqueeze")
def unsqueeze(n, x, *axes):
    found = n.axes((x, *axes), 1)
    return n.xp.expand_dims(x, tuple(a % (x.ndim + len(found)) for a in found))


@operator("Concat")
def concat(n, *parts):
    return n.xp.concatenate(parts if n.xp is np else [device(p) for p in parts], n.get("axis"))


@operator("Split")
def split(n, x, sizes=None):
    axis, sizes = n.get("axis", 0), n.get("split") if sizes is None else known(sizes).tolist()
    if sizes is None:
        each = -(-x.shape[axis] // n.outputs)
        sizes = [each] * (n.outputs - 1) + [x.shape[axis] - each * (n.outputs - 1)]
    return n.xp.split(x, np.cumsum(sizes)[:-1].tolist(), axis)


@operator("Slice")
def cut(n, x, *given):
    if n.opset < 10:
        starts, ends, axes, steps = n.get("starts"), n.get("ends"), n.get("axes"), None
    else:
        starts, ends, axes, steps = ([*(known(g).tolist() if g is not None else None for g in given)] + [None] * 4)[:4]
    axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    where = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        end = None if isinstance(end, int) and (end > 1 << 30 or step < 0 and end < -(1 << 30)) else end
        where[axis] = slice(start, end, step)
    if not all(isinstance(v, int) for v in (*starts, *ends)):
        x = device(x)  # numpy does not cut at a size that is open
    return x[tuple(where)]


@operator("Gather")
def gather(n, x, indices):
    axis = n.get("axis", 0)
    if n.xp is np:
        return np.asarray(np.take(x, indices, axis), x.dtype)
    indices = device(indices)
    return jnp.take(device(x), jnp.where(indices < 0, indices + x.shape[axis], indices), axis, mode="clip")


@operator("GatherElements")
def gather_elements(n, x, indices):
    axis, indices = n.get("axis", 0), device(indices)
    return jnp.take_along_axis(device(x), jnp.where(indices < 0, indices + x.shape[axis], indices), axis, mode="clip")


@operator("Expand")
def expand(n, x, sizes):
    sizes = known(sizes).tolist()
    xp = np if n.xp is np and all(isinstance(s, int) for s in sizes) else jnp
    want = [1] * (x.ndim - len(sizes)) + sizes
    have = [1] * (len(want) - x.ndim) + list(x.shape)
    return xp.broadcast_to(x, tuple(h if isinstance(w, int) and w == 1 else w for h, w in zip(have, want)))


@operator("Tile")
def tile(n, x, repeats):
    return n.xp.tile(x, tuple(known(repeats).tolist()))


@operator("Trilu")
def triangle(n, x, k=None):
    k = 0 if k is None else int(known(k))
    return (n.xp.triu if n.get("upper", 1) else n.xp.tril)(x, k)


@operator("Pad")
def pad(n, x, pads=None, value=None, axes=None):
    pads, value = (n.get("pads"), n.get("value", 0.0)) if n.opset < 11 else (known(pads).tolist(), 0 if value is None else value)
    axes = [int(a) % x.ndim for a in known(axes)] if axes is not None else range(x.ndim)
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[i + len(pads) // 2])
    mode = n.get("mode", "constant")
    if mode == "constant":
        return lax.pad(device(x), jnp.asarray(value, x.dtype).reshape(()), [(a, b, 0) for a, b in widths])
    return jnp.pad(device(x), widths, {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}[mode])


@operator("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare")
def reduce(n, x, *axes):
    found = n.axes((x, *axes), 1)
    if found == [] or found is None and n.get("noop_with_empty_axes", 0):
        return x
    if n.kind in ("ReduceL2", "ReduceSumSquare"):
        x = x * x
    f = {"ReduceMean": n.xp.mean, "ReduceMax": n.xp.max, "ReduceMin": n.xp.min, "ReduceProd": n.xp.prod}.get(n.kind, n.xp.sum)
    made = n.xp.asarray(f(x, None if found is None else tuple(found), keepdims=bool(n.get("keepdims", 1))), x.dtype)
    return n.xp.sqrt(made) if n.kind == "ReduceL2" else made


@operator("ArgMax", "ArgMin")
def arg(n, x):
    x, axis = device(x), n.get("axis", 0)
    if n.get("select_last_index", 0):
        raise Refused("unsupported_op", f"{n.kind} with select_last_index", op=n.kind)
    return (jnp.argmax if n.kind == "ArgMax" else jnp.argmin)(x, axis, keepdims=bool(n.get("keepdims", 1))).astype(jnp.int64)


@operator("CumSum")
def cumulated(n, x, axis):
    if n.get("exclusive", 0) or n.get("reverse", 0):
        raise Refused("unsupported_op", "CumSum with exclusive or reverse", op=n.kind)
    return n.xp.cumsum(x, int(known(axis)), dtype=x.dtype)


@operator("Softmax", "LogSoftmax")
def softmax(n, x):
    x, f = device(x), jax.nn.softmax if n.kind == "Softmax" else jax.nn.log_softmax
    if n.opset >= 13:
        return f(x, n.get("axis", -1))
    axis = n.get("axis", 1) % x.ndim
    return f(x, tuple(range(axis, x.ndim)))


@operator("Einsum")
def einsum(n, *given):
    return jnp.einsum(n.get("equation"), *map(device, given))
