"""Operations of StableHLO in terms of ONNX (openxla.org/stablehlo/spec)."""

import numpy as np
from protocol import Refused

OPERATORS = {}


def operation(*names):
    def add(f):
        OPERATORS.update(dict.fromkeys(names, f))
        return f

    return add


def numbers(op, name, default=()):
    """An attribute that is a list of integers."""
    from jaxlib.mlir import ir

    return [int(i) for i in ir.DenseI64ArrayAttr(op.attributes[name])] if name in op.attributes else list(default)


def number(op, name, default=None):
    from jaxlib.mlir import ir

    return ir.IntegerAttr(op.attributes[name]).value if name in op.attributes else default


def type_of(value):
    from jaxlib.mlir import ir

    return ir.RankedTensorType(value.type)


def sizes_of(value):
    """The sizes of a value; -1 for an open one."""
    t = type_of(value)
    return [-1 if t.is_dynamic_dim(i) else t.get_dim_size(i) for i in range(t.rank)]


DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
          "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64"}


def dtype_of(value):
    said = str(type_of(value).element_type)
    if said not in DTYPES:
        raise Refused("unsupported_op", f"no translation to ONNX for tensors of {said}")
    return np.dtype(DTYPES[said])


def plain(**kinds):
    """Operations that ONNX has as an operator."""
    for name, kind in kinds.items():
        OPERATORS[name] = lambda e, op, _k=kind: e.elementwise(op, lambda *x: e.node(_k, *x))


plain(
    add="Add", subtract="Sub", multiply="Mul", divide="Div", power="Pow", negate="Neg", abs="Abs", sign="Sign", floor="Floor", ceil="Ceil",
    exponential="Exp", log="Log", tanh="Tanh", logistic="Sigmoid", sqrt="Sqrt", cosine="Cos", sine="Sin", tan="Tan", round_nearest_even="Round",
)
COMPOSITES = {
    "chlo.erf": lambda e, x, _: e.node("Erf", x),
    "chlo.erfc": lambda e, x, dtype: e.node("Sub", e.constant(1, dtype), e.node("Erf", x)),
}


@operation("maximum", "minimum", "and", "or", "xor", "not")
def logical(e, op):
    kind, boolean = op.name.removeprefix("stablehlo."), dtype_of(op.results[0]) == bool
    name = {"maximum": "Or" if boolean else "Max", "minimum": "And" if boolean else "Min", "and": "And", "or": "Or", "xor": "Xor", "not": "Not"}[kind]
    if not boolean and name in ("And", "Or", "Xor", "Not"):
        raise Refused("unsupported_op", f"no translation to ONNX for {op.name} of integers", op=op.name)
    e.elementwise(op, lambda *x: e.node(name, *x))


@operation("rsqrt", "log_plus_one", "exponential_minus_one", "remainder", "is_finite", "cbrt")
def composed(e, op):
    dtype = dtype_of(op.operands[0])

    def emit(x, *more):
        one = e.constant(1, dtype)
        match op.name.removeprefix("stablehlo."):
            case "rsqrt":
                return e.node("Reciprocal", e.node("Sqrt", x))
            case "log_plus_one":
                return e.node("Log", e.node("Add", x, one))
            case "exponential_minus_one":
                return e.node("Sub", e.node("Exp", x), one)
            case "remainder":
                return e.node("Mod", x, *more, fmod=1)
            case "cbrt":
                return e.node("Mul", e.node("Sign", x), e.node("Pow", e.node("Abs", x), e.constant(1 / 3, dtype)))
        return e.node("Not", e.node("Or", e.node("IsNaN", x), e.node("IsInf", x)))

    e.elementwise(op, emit)


@operation("compare")
def compare(e, op):
    word = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    kind = {"EQ": "Equal", "NE": "Equal", "LT": "Less", "LE": "LessOrEqual", "GT": "Greater", "GE": "GreaterOrEqual"}[word]
    if dtype_of(op.operands[0]) == bool and kind != "Equal":
        raise Refused("unsupported_op", "no translation to ONNX for an order of booleans", op=op.name)
    e.elementwise(op, lambda a, b: e.node("Not", e.node(kind, a, b)) if word == "NE" else e.node(kind, a, b))


@operation("select")
def select(e, op):
    if not sizes_of(op.operands[0]) and sizes_of(op.results[0]):  # one condition for all
        e.keep(op, e.node("Where", *(e.whole(o) for o in op.operands)))
        return
    e.elementwise(op, lambda c, a, b: e.node("Where", c, a, b))


@operation("clamp")
def clamp(e, op):
    low, x, high = (e.whole(o) for o in op.operands)
    e.keep(op, e.node("Min", e.node("Max", x, low), high))


@operation("convert")
def convert(e, op):
    from onnx import helper

    to = helper.np_dtype_to_tensor_dtype(dtype_of(op.results[0]))
    e.elementwise(op, lambda x: e.node("Cast", x, to=to))


@operation("optimization_barrier", "custom_call")
def identity(e, op):
    """Of calls, those that exported lets pass: checks of shapes, and how arrays are spread."""
    e.scopes[-1].update((r, e.scopes[-1][o]) for r, o in zip(op.results, op.operands))


@operation("constant")
def constant(e, op):
    from jaxlib.mlir import ir

    attribute, result = op.attributes["value"], op.results[0]
    dtype, sizes = dtype_of(result), sizes_of(result)
    elements = ir.DenseElementsAttr(attribute)
    if elements.is_splat:
        said = elements.get_splat_value()
        one = (ir.FloatAttr(said) if dtype.kind == "f" else ir.BoolAttr(said) if dtype == bool else ir.IntegerAttr(said)).value
        e.put_off(op, e.constant(np.full([1] * len(sizes), one, dtype)), sizes or None)
        return
    dense = ir.DenseFPElementsAttr(attribute) if dtype.kind == "f" else ir.DenseIntElementsAttr(attribute)
    array = np.array([dense[i] for i in range(len(dense))], dtype) if dtype == bool else np.array(dense, dtype)
    e.keep(op, e.constant(array.reshape(sizes)))


@operation("iota", "dynamic_iota")
def iota(e, op):
    axis, dtype, sizes = number(op, "iota_dimension"), dtype_of(op.results[0]), sizes_of(op.results[0])
    shape = [1] * len(sizes)
    shape[axis] = -1
    if op.name.endswith("dynamic_iota"):
        from onnx import helper

        wanted = e.sizes(op.operands[0])
        count = e.node("Range", e.constant(0, "int64"), e.node("Gather", wanted, e.constant(axis, "int64")), e.constant(1, "int64"))
        name = e.node("Cast", e.node("Reshape", count, e.constant(shape, "int64")), to=helper.np_dtype_to_tensor_dtype(dtype))
        e.put_off(op, name, wanted)
        return
    e.put_off(op, e.constant(np.arange(sizes[axis], dtype=dtype).reshape(shape)), sizes)


@operation("get_dimension_size")
def dimension(e, op):
    size = e.node("Gather", e.node("Shape", e.whole(op.operands[0])), e.constant(number(op, "dimension"), "int64"))
    e.keep(op, e.node("Cast", size, to=6))


@operation("broadcast_in_dim", "dynamic_broadcast_in_dim")
def broadcast(e, op):
    dims, rank = numbers(op, "broadcast_dimensions"), len(sizes_of(op.results[0]))
    if dims != sorted(dims):
        raise Refused("unsupported_op", f"no translation to ONNX for {op.name} that turns dimensions", op=op.name)
    name, missing = e.whole(op.operands[0]), [d for d in range(rank) if d not in dims]
    if missing:
        name = e.node("Unsqueeze", name, e.constant(missing, "int64"))
    sizes = sizes_of(op.results[0])
    if op.name.endswith("dynamic_broadcast_in_dim"):
        e.put_off(op, name, e.sizes(op.operands[1]))
    elif [sizes[d] for d in dims] == sizes_of(op.operands[0]) and not missing:
        e.keep(op, name)
    else:
        e.put_off(op, name, sizes)


@operation("reshape", "dynamic_reshape")
def reshape(e, op):
    sizes = sizes_of(op.results[0])
    shape = e.sizes(op.operands[1]) if op.name.endswith("dynamic_reshape") and sizes.count(-1) > 1 else e.constant(sizes, "int64")
    e.keep(op, e.node("Reshape", e.whole(op.operands[0]), shape))


@operation("transpose")
def transpose(e, op):
    e.keep(op, e.node("Transpose", e.whole(op.operands[0]), perm=numbers(op, "permutation")))


@operation("concatenate")
def concatenate(e, op):
    e.keep(op, e.node("Concat", *(e.whole(o) for o in op.operands), axis=number(op, "dimension")))


@operation("slice")
def cut(e, op):
    starts, ends, steps = (numbers(op, n) for n in ("start_indices", "limit_indices", "strides"))
    e.keep(op, e.node("Slice", e.whole(op.operands[0]), *(e.constant(v, "int64") for v in (starts, ends, list(range(len(starts))), steps))))


@operation("reverse")
def reverse(e, op):
    axes = numbers(op, "dimensions")
    e.keep(op, e.node("Slice", e.whole(op.operands[0]), *(e.constant(v, "int64") for v in ([-1] * len(axes), [-(1 << 62)] * len(axes), axes, [-1] * len(axes)))))


@operation("pad")
def pad(e, op):
    low, high, inside = (numbers(op, n) for n in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    if any(inside):
        raise Refused("unsupported_op", "no translation to ONNX for padding between elements", op=op.name)
    e.keep(op, e.node("Pad", e.whole(op.operands[0]), e.constant(low + high, "int64"), e.whole(op.operands[1])))


def body(op):
    """The one operation of a reduction, as StableHLO calls it, or ""."""
    inner = [o.operation for o in op.regions[0].blocks[0].operations]
    plain = len(inner) == 2 and len(op.results) == 1 and set(inner[0].operands) == set(op.regions[0].blocks[0].arguments)
    return inner[0].name.removeprefix("stablehlo.") if plain else ""


def starts(e, op, kind, dtype):
    """Whether a reduction starts with what changes nothing, so that ONNX needs not know it."""
    name, _ = e.scopes[-1][op.operands[len(op.operands) // 2]]
    found = [i for i in e.initializers if i.name == name]
    if not found:
        return False
    from onnx import numpy_helper

    limits = {"f": lambda: (-np.inf, np.inf), "b": lambda: (False, True)}.get(dtype.kind, lambda: (np.iinfo(dtype).min, np.iinfo(dtype).max))()
    want = {"add": 0, "multiply": 1, "maximum": limits[0], "minimum": limits[1], "or": False, "and": True}[kind]
    return bool((numpy_helper.to_array(found[0]) == want).all())


@operation("reduce")
def reduce(e, op):
    axes, dtype, kind = numbers(op, "dimensions"), dtype_of(op.results[0]), body(op)
    if len(op.results) == 2 and largest(e, op, axes):
        return
    name = {"add": "ReduceSum", "multiply": "ReduceProd", "maximum": "ReduceMax", "minimum": "ReduceMin", "or": "ReduceMax", "and": "ReduceMin"}.get(kind)
    if name is None or not starts(e, op, kind, dtype):
        raise Refused("unsupported_op", f"no translation to ONNX for a reduction by {kind or 'several operations'}, or with a start of its own", op=op.name)
    x = e.whole(op.operands[0])
    x = e.node("Cast", x, to=6) if dtype == bool else x
    made = e.node(name, x, e.constant(axes, "int64"), keepdims=0) if name == "ReduceSum" else e.node(name, x, axes=axes, keepdims=0)
    e.keep(op, e.node("Cast", made, to=9) if dtype == bool else made)


def largest(e, op, axes):
    """argmax and argmin, which JAX writes as a reduction of values and their positions."""
    from onnx import helper

    said = [str(o.attributes["comparison_direction"]) for o in op.regions[0].blocks[0].operations if o.operation.name == "stablehlo.compare"]
    words = {s.split()[-1].rstrip(">") for s in said}
    position = op.operands[1].owner.name if not hasattr(op.operands[1].owner, "arguments") else ""
    if len(axes) != 1 or not position.endswith(("iota", "broadcast_in_dim")) or not words & {"GT", "LT"} or words >= {"GT", "LT"} and "NE" not in words:
        return False
    first = said and said[0].split()[-1].rstrip(">")
    x = e.whole(op.operands[0])
    index = e.node("ArgMax" if first == "GT" else "ArgMin", x, axis=axes[0], keepdims=0)
    value = e.node("ReduceMax" if first == "GT" else "ReduceMin", x, axes=axes, keepdims=0)
    e.keep(op, value, e.node("Cast", index, to=helper.np_dtype_to_tensor_dtype(dtype_of(op.results[1]))))
    return True
