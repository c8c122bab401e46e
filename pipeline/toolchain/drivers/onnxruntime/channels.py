"""Structured pruning: whole channels of convolutions and neurons of matrix products are removed, with what belongs to them in
the nodes behind, up to the layer that sums over them. Those go first that add the least: the square of their weights, scaled as
batch normalization does, times the square of the weights that read them. Of equal ones the first do.

Removing a channel whose weights and biases are all zero changes nothing. So whatever makes something else of zeros than zeros
ends the chain, and the layer stays whole."""

import math

from layers import DEFAULT_DOMAINS, Cannot, attribute
from sparse import part

# Operators that work on each number by itself and make zero of zero.
KEEP_ZERO = {"Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Tanh", "Gelu", "Mish", "HardSwish", "Swish", "Softsign", "Abs", "Neg", "Sign", "Sqrt",
             "ThresholdedRelu", "Identity", "Dropout", "Erf", "Sin", "Round", "Floor", "Ceil", "Shrink"}
# Operators that work on each channel of an image by itself.
POOLS = {"MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}
IMAGE, ROWS, LAST = "image", "rows", "last"  # channels are axis 1 of an image, of a matrix, or the last axis of anything


class Chain:
    """The way from a layer to the one that sums over its channels. cuts are what the channels are in constants: (name, axis, how
    many numbers in a row belong to a channel)."""

    def __init__(self, graph, layer):
        self.graph, self.layer = graph, layer
        self.weights = graph.own(layer.weights).astype("float64")
        self.channels = self.weights.shape[layer.outer]
        self.cuts = [(layer.weights, layer.outer, 1)]
        self.groups, self.shapes = [], []  # depthwise convolutions, and constants that name the number of columns
        self.square = sums(self.weights, layer.outer)
        self.scale, self.shift = [1.0] * self.channels, [0.0] * self.channels
        self.spread = False  # an image was made a row: several numbers belong to a channel
        self.start()
        self.follow()

    def start(self):
        node = self.layer.node
        self.form = {"Conv": IMAGE, "Gemm": ROWS, "MatMul": LAST}.get(node.op_type)
        if self.form is None or node.input[1] != self.layer.weights or self.weights.ndim < 2:
            raise Cannot(f"{node.op_type} with weights in this place is not pruned by channels")
        if self.form == IMAGE and attribute(node, "group", 1) != 1:
            raise Cannot("it is a convolution in groups")
        if self.form == LAST and self.weights.ndim != 2:
            raise Cannot(f"its weights have {self.weights.ndim} dimensions")
        if len(node.input) > 2 and node.input[2]:
            if self.form == IMAGE:
                self.bias(self.vector(node.input[2]))
            else:
                self.per_channel(node.input[2], self.bias)
        self.value = node.output[0]

    def follow(self):
        while True:
            if self.value in self.graph.outputs:
                raise Cannot(f"its channels are the output {self.value!r} of the model")
            readers = self.graph.readers.get(self.value, [])
            if len(readers) != 1 or self.value in self.graph.nested:
                names = [n.name for n, _ in readers] + ["a subgraph"] * (self.value in self.graph.nested)
                raise Cannot(f"its channels are read by {' and '.join(names) or 'nothing'}: want one node that goes on with them")
            node, place = readers[0]
            if self.ends(node, place):
                return
            self.step(node, place)
            self.value = node.output[0]

    def ends(self, node, place):
        """Reports whether the node sums over the channels."""
        names = {"Conv": IMAGE, "ConvTranspose": IMAGE, "Gemm": ROWS, "MatMul": LAST}
        kind = names.get(node.op_type)
        if kind is None or node.domain not in DEFAULT_DOMAINS or attribute(node, "group", 1) != 1:
            return False
        fits = kind == self.form or node.op_type == "MatMul" and self.form == ROWS
        if place != 0 or not fits or attribute(node, "transA", 0):
            raise self.stops(node)
        weights = self.graph.own(node.input[1])
        if weights is None or kind != IMAGE and weights.ndim != 2:
            raise self.stops(node)
        inner = {"Conv": 1, "ConvTranspose": 0}.get(node.op_type, 1 if attribute(node, "transB", 0) else 0)
        size = weights.shape[inner]
        if size % self.channels or size != self.channels and not self.spread:
            raise Cannot(f"{node.name} sums over {size} numbers, and there are {self.channels} channels")
        width = size // self.channels
        self.cuts.append((node.input[1], inner, width))
        for shape in self.shapes:
            columns = int(self.graph.constant(shape)[1])
            if columns != size:
                raise Cannot(f"{shape!r} asks for {columns} columns, and {node.name} sums over {size}")
        read = sums(weights.astype("float64"), inner)
        self.read = [math.fsum(read[i * width : (i + 1) * width]) for i in range(self.channels)]
        self.end = node.name
        return True

    def step(self, node, place):
        if node.domain not in DEFAULT_DOMAINS:
            raise self.stops(node)
        op = node.op_type
        if op in KEEP_ZERO and place == 0 and not any(o and o in self.graph.readers for o in node.output[1:]):
            return
        if op in POOLS and self.form == IMAGE and not any(o and o in self.graph.readers for o in node.output[1:]):
            return
        follow = {"Clip": self.clip, "BatchNormalization": self.normalize, "Add": self.combine, "Sub": self.combine, "Mul": self.combine, "Div": self.combine,
                  "PRelu": self.slope, "Flatten": self.flatten, "Reshape": self.reshape, "Squeeze": self.squeeze, "ReduceMean": self.squeeze, "Conv": self.depthwise}.get(op)
        if follow is None:
            raise self.stops(node)
        follow(node, place)

    def stops(self, node):
        return Cannot(f"{node.op_type} {node.name} behind it cannot go without some of its channels")

    def clip(self, node, place):
        least, most = (self.graph.constant(name) if name else None for name in (*node.input[1:], "", "")[:2])
        given = [name for name in node.input[1:] if name and name not in self.graph.tensors]
        if place or given or attribute(node, "min", 0.0) > 0 or attribute(node, "max", 0.0) < 0 or least is not None and least > 0 or most is not None and most < 0:
            raise self.stops(node)

    def normalize(self, node, place):
        if place or self.form == LAST or attribute(node, "training_mode", 0):
            raise self.stops(node)
        names = list(node.input[1:5])
        if len(set(names)) != 4:
            raise self.stops(node)
        gain, offset, mean, variance = (self.vector(name) for name in names)
        epsilon = attribute(node, "epsilon", 1e-5)
        factors = [g / math.sqrt(v + epsilon) if v + epsilon > 0 else 0.0 for g, v in zip(gain, variance)]
        self.shift = [(s - m) * f + o for s, m, f, o in zip(self.shift, mean, factors, offset)]
        self.scale = [s * f for s, f in zip(self.scale, factors)]

    def combine(self, node, place):
        """A constant for each channel is added or multiplied: the other input."""
        other = node.input[1 - place]
        if other not in self.graph.tensors or node.op_type in ("Sub", "Div") and place != 0:
            raise self.stops(node)
        array = self.graph.constant(other)
        if node.op_type in ("Mul", "Div") and array.size == 1:
            {"Mul": self.factor, "Div": self.divisor}[node.op_type]([float(array.reshape(-1)[0])] * self.channels)
            return
        self.per_channel(other, {"Add": self.bias, "Sub": self.bias, "Mul": self.factor, "Div": self.divisor}[node.op_type])

    def slope(self, node, place):
        if place or node.input[1] not in self.graph.tensors:
            raise self.stops(node)
        if self.graph.constant(node.input[1]).size != 1:
            self.per_channel(node.input[1], lambda values: None)

    def per_channel(self, name, use):
        """Cuts a constant that is added to, or multiplied with, every channel by numpy's rules."""
        array = self.graph.own(name)
        axis = self.axis(array.ndim) if array is not None else -1
        if self.spread or axis < 0 or array.shape[axis] != self.channels or array.size != self.channels:
            raise Cannot(f"{name!r} is no constant with one number for each of its {self.channels} channels")
        self.cuts.append((name, axis, 1))
        use([float(v) for v in array.reshape(-1)])

    def axis(self, rank):
        """The axis of the channels in a constant of a rank, counted as numpy broadcasts it."""
        if self.form != IMAGE:
            return rank - 1
        return rank - (self.weights.ndim - 1)

    def bias(self, values):
        self.shift = [s + v for s, v in zip(self.shift, values)]

    def factor(self, values):
        self.scale = [s * v for s, v in zip(self.scale, values)]
        self.shift = [s * v for s, v in zip(self.shift, values)]

    def divisor(self, values):
        if any(v == 0 for v in values):
            raise Cannot("its channels are divided by zero")
        self.factor([1 / v for v in values])

    def vector(self, name):
        array = self.graph.own(name)
        if array is None or array.shape != (self.channels,):
            raise Cannot(f"{name!r} is no constant with one number for each of its {self.channels} channels")
        self.cuts.append((name, 0, 1))
        return [float(v) for v in array]

    def flatten(self, node, place):
        if self.form == LAST or attribute(node, "axis", 1) != 1:
            raise self.stops(node)
        self.spread, self.form = self.spread or self.form == IMAGE, ROWS

    def reshape(self, node, place):
        """To one row for each case, whatever the number of columns is called."""
        shape = self.graph.constant(node.input[1])
        if place or self.form == LAST or shape is None or shape.shape != (2,) or shape[1] == 0:
            raise self.stops(node)
        if shape[1] > 0:
            self.graph.own(node.input[1])
            self.shapes.append(node.input[1])
        self.spread, self.form = self.spread or self.form == IMAGE, ROWS

    def squeeze(self, node, place):
        """The places of an image are left out or become their mean."""
        axes = attribute(node, "axes", None)
        if len(node.input) > 1 and node.input[1]:
            given = self.graph.constant(node.input[1])
            axes = None if given is None else [int(a) for a in given]
        rank = self.weights.ndim
        places = set(range(2, rank))
        if place or self.form != IMAGE or axes is None or {a % rank for a in axes} != places:
            raise self.stops(node)
        if node.op_type == "Squeeze" or not attribute(node, "keepdims", 1):
            self.form = ROWS

    def depthwise(self, node, place):
        """A convolution of each channel by itself: one in as many groups as there are channels."""
        weights = self.graph.own(node.input[1]) if node.input[1] in self.graph.tensors else None
        if place or self.form != IMAGE or weights is None or attribute(node, "group", 1) != self.channels or weights.shape[:2] != (self.channels, 1):
            raise self.stops(node)
        self.cuts.append((node.input[1], 0, 1))
        self.groups.append(node)
        weights = weights.astype("float64")
        norms = [math.sqrt(s) for s in sums(weights, 0)]
        self.scale = [s * n for s, n in zip(self.scale, norms)]
        self.shift = [s * math.fsum(w.reshape(-1).tolist()) for s, w in zip(self.shift, weights)]
        if len(node.input) > 2 and node.input[2]:
            self.bias(self.vector(node.input[2]))

    def scores(self):
        return [(w * s * s + b * b) * r for w, s, b, r in zip(self.square, self.scale, self.shift, self.read)]


def sums(array, axis):
    """The sum of squares for each index along the axis, rounded once: it is the same on every processor."""
    import numpy

    rows = numpy.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    return [math.fsum((row * row).tolist()) for row in rows]


def remove(graph, layer, options):
    import numpy

    chain = Chain(graph, layer)
    count = min(part(options["amount"], chain.channels), chain.channels - 1)
    if count == 0:
        raise Cannot(f"the amount of its {chain.channels} channels is less than one, or all that it has")
    scores = numpy.array(chain.scores())
    kept = numpy.sort(numpy.argsort(scores, kind="stable")[count:])
    before = after = 0
    for name, axis, width in chain.cuts:
        array = graph.constant(name)
        places = (kept[:, None] * width + numpy.arange(width)).reshape(-1)
        cut = numpy.take(array, places, axis=axis)
        before, after = before + array.size, after + cut.size
        graph.set(name, cut)
    for node in chain.groups:
        next(a for a in node.attribute if a.name == "group").i = len(kept)
    last = chain.cuts[-1]
    for name in chain.shapes:
        shape = graph.constant(name).copy()
        shape[1] = len(kept) * last[2]
        graph.set(name, shape)
    return {"parameters": {"before": before, "after": after}, "channels": {"before": chain.channels, "after": len(kept)}, "with": chain.end}
