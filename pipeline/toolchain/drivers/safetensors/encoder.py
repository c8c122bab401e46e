"""Transformer encoders (Vaswani et al. 2017) with learned positions and no mask: written once,
over operations that numpy computes in double precision and that become nodes of ONNX."""

from layers import BATCH, IR_VERSION, OPSET
from protocol import Refused

EPSILON = 1e-5
WORDS = ("positions", "mean", "relu", "tanh", "gelu", "softmax")
PARTS = ("norm1", "query", "key", "value", "out", "norm2", "up", "down")


class Encoder:
    """Layers in order: a name whose NAME.weight is [vocabulary, width] first; "positions",
    whose weight is added; blocks, names with NAME.query.weight and the rest of PARTS; names
    with a vector of weights, which normalize; dense layers [out, in]; and words."""

    dtype = "int64"

    def __init__(self, shape, names, weights, heads, norm):
        if len(shape) != 1 or shape[0] < 1 or not names or heads < 1:
            raise Refused("bad_input", "an encoder wants layers, heads, and input: [tokens]")
        self.shapes, self.names, self.weights, self.heads, self.norm = [shape], names, weights, heads, norm
        self.used = set()
        self.width = None  # of what comes out of the last layer
        self.plan = [self.step(i, name) for i, name in enumerate(names)]
        self.parameters = sum(int(weights[n].size) for n in self.used)

    def take(self, name, dims, optional=False):
        weight = self.weights.get(name)
        if weight is None and optional:
            return None
        if weight is None or weight.ndim != dims or weight.dtype.str != "<f4":
            found = "none" if weight is None else f"{weight.dtype} {list(weight.shape)}"
            raise Refused("unsupported_op", f"weight {name} is {found}: want float32 of {dims} dimensions; there are the words {', '.join(WORDS)}", op=name)
        self.used.add(name)
        return weight

    def affine(self, name):
        weight = self.take(name + ".weight", 2)
        bias = self.take(name + ".bias", 1, optional=True)
        if weight.shape[1] != self.width or bias is not None and bias.shape != weight.shape[:1]:
            raise Refused("bad_input", f"layer {name}: its weight is {list(weight.shape)}, and what comes in is {self.width} wide")
        self.width = weight.shape[0]
        return lambda ops, x: ops.dense(x, weight, bias, name)

    def normal(self, name):
        pair = [self.take(f"{name}.{part}", 1) for part in ("weight", "bias")]
        if any(w.shape != (self.width,) for w in pair):
            raise Refused("bad_input", f"layer {name}: its weights are {[list(w.shape) for w in pair]}, and what comes in is {self.width} wide")
        return lambda ops, x: ops.normalize(x, *pair, name)

    def step(self, i, name):
        if i == 0:
            table = self.take(name + ".weight", 2)
            self.width = table.shape[1]
            return lambda ops, x: ops.look_up(table, x, name)
        if name == "positions":
            table = self.take("positions.weight", 2)
            if table.shape[0] < self.shapes[0][0] or table.shape[1] != self.width:
                raise Refused("bad_input", f"positions.weight is {list(table.shape)}: want at least {self.shapes[0][0]} rows of {self.width}")
            return lambda ops, x: ops.add(x, ops.constant(table[: self.shapes[0][0]], name))
        if name in WORDS:
            return lambda ops, x: getattr(ops, name)(x)
        if name + ".query.weight" in self.weights:
            return self.block(name)
        vector = self.weights.get(name + ".weight")
        return self.normal(name) if vector is not None and vector.ndim == 1 else self.affine(name)

    def block(self, name):
        width = self.width
        if width % self.heads:
            raise Refused("bad_input", f"block {name} is {width} wide, which {self.heads} heads do not divide")
        part = {}
        for p in PARTS:
            if not p.startswith("norm") and p != "down":
                self.width = width
            part[p] = self.normal(f"{name}.{p}") if p.startswith("norm") else self.affine(f"{name}.{p}")
            if p in ("query", "key", "value", "out", "down") and self.width != width:
                raise Refused("bad_input", f"layer {name}.{p} is {self.width} wide: want {width}")

        def attend(ops, x):
            query, key, value = (ops.heads(part[p](ops, x), self.heads) for p in ("query", "key", "value"))
            scores = ops.softmax(ops.scale(ops.matmul(query, ops.turned(key)), (width // self.heads) ** -0.5))
            return part["out"](ops, ops.joined(ops.matmul(scores, value), width))

        def feed(ops, x):
            return part["down"](ops, ops.gelu(part["up"](ops, x)))

        def run(ops, x):
            for norm, inner in (("norm1", attend), ("norm2", feed)):
                x = ops.add(x, inner(ops, part[norm](ops, x))) if self.norm == "before" else part[norm](ops, ops.add(x, inner(ops, x)))
            return x

        return run

    def through(self, ops, x):
        for layer in self.plan:
            x = layer(ops, x)
        return x

    def forward(self, batch):
        return self.through(Numbers(), batch).astype("float32")

    def onnx(self):
        from onnx import TensorProto, helper

        ops = Nodes()
        last = self.through(ops, "input")
        ops.nodes[-1].output[0] = "output"
        # What comes out has the batch first, the tokens unless they were averaged, and a width.
        shape = [BATCH, *([] if "mean" in self.names else self.shapes[0]), self.width]
        del last
        ends = [helper.make_tensor_value_info("input", TensorProto.INT64, [BATCH, *self.shapes[0]]), helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(ops.nodes, "model", ends[:1], ends[1:], ops.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


class Numbers:
    """The operations on arrays, in double precision."""

    def constant(self, value, _name):
        return value.astype("float64")

    def look_up(self, table, x, _name):
        if x.min() < 0 or x.max() >= len(table):
            raise Refused("bad_input", f"a token is {int(x.min())} or {int(x.max())}: want 0 to {len(table) - 1}")
        return table.astype("float64")[x]

    def dense(self, x, weight, bias, _name):
        return x @ weight.astype("float64").T + (0 if bias is None else bias)

    def normalize(self, x, weight, bias, _name):
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / ((centred**2).mean(axis=-1, keepdims=True) + EPSILON) ** 0.5 * weight + bias

    def heads(self, x, n):
        return x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3)

    def joined(self, x, width):
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], width)

    def turned(self, x):
        return x.swapaxes(-1, -2)

    def matmul(self, a, b):
        return a @ b

    def add(self, a, b):
        return a + b

    def scale(self, x, factor):
        return x * factor

    def mean(self, x):
        return x.mean(axis=1)

    def relu(self, x):
        return x * (x > 0)

    def tanh(self, x):
        import numpy

        return numpy.tanh(x)

    def softmax(self, x):
        import numpy

        e = numpy.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def gelu(self, x):
        import math

        import numpy

        return x * 0.5 * (1 + numpy.vectorize(math.erf)(x / 2**0.5))


class Nodes:
    """The operations as nodes; arrays are the names of what comes out."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def node(self, operator, *inputs, **attributes):
        from onnx import helper

        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value, name):
        import numpy
        from onnx import numpy_helper

        name = f"{name}/{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name

    def number(self, value, dtype="float32"):
        import numpy

        return self.constant(numpy.array(value, dtype), "constant")

    def look_up(self, table, x, name):
        return self.node("Gather", self.constant(table, name), x)

    def dense(self, x, weight, bias, name):
        x = self.node("MatMul", x, self.constant(weight.T, name))
        return x if bias is None else self.add(x, self.constant(bias, name))

    def normalize(self, x, weight, bias, name):
        return self.node("LayerNormalization", x, self.constant(weight, name), self.constant(bias, name), epsilon=EPSILON)

    def heads(self, x, n):
        return self.node("Transpose", self.node("Reshape", x, self.number([0, 0, n, -1], "int64")), perm=[0, 2, 1, 3])

    def joined(self, x, width):
        return self.node("Reshape", self.node("Transpose", x, perm=[0, 2, 1, 3]), self.number([0, 0, width], "int64"))

    def turned(self, x):
        return self.node("Transpose", x, perm=[0, 1, 3, 2])

    def matmul(self, a, b):
        return self.node("MatMul", a, b)

    def add(self, a, b):
        return self.node("Add", a, b)

    def scale(self, x, factor):
        return self.node("Mul", x, self.number(factor))

    def mean(self, x):
        return self.node("ReduceMean", x, axes=[1], keepdims=0)

    def relu(self, x):
        return self.node("Relu", x)

    def tanh(self, x):
        return self.node("Tanh", x)

    def softmax(self, x):
        return self.node("Softmax", x, axis=-1)

    def gelu(self, x):
        half = self.node("Mul", x, self.number(0.5))
        return self.node("Mul", half, self.node("Add", self.node("Erf", self.node("Mul", x, self.number(0.5**0.5))), self.number(1)))
