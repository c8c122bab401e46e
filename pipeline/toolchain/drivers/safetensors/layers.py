"""Networks of layers one after the other: as ONNX, and computed by numpy."""

from protocol import Refused

OPSET, IR_VERSION = 17, 8
BATCH = "batch"


class Network:
    dtype = "float32"

    def __init__(self, shape):
        self.shapes = [shape]  # of one case, before the first layer and after each
        self.layers = []  # (name, operator, attributes, weights, numpy function)
        self.used, self.parameters = set(), 0

    def add(self, name, operator, attributes, weights, function, shape):
        self.layers.append((name, operator, attributes, weights, function))
        self.shapes.append(shape)
        self.used |= set(weights)
        self.parameters += sum(int(w.size) for w in weights.values())

    def forward(self, batch):
        import numpy

        x = numpy.asarray(batch, numpy.float64)
        for _, _, _, weights, function in self.layers:
            x = function(x, *(numpy.asarray(w, numpy.float64) for w in weights.values()))
        return x.astype(numpy.float32)

    def onnx(self):
        import numpy
        from onnx import TensorProto, helper, numpy_helper

        nodes, initializers, last = [], [], "input"
        for i, (name, operator, attributes, weights, _) in enumerate(self.layers):
            result = "output" if i == len(self.layers) - 1 else f"{name}_{i}"
            nodes.append(helper.make_node(operator, [last, *weights], [result], f"{name}_{i}", **attributes))
            initializers += [numpy_helper.from_array(numpy.ascontiguousarray(w), n) for n, w in weights.items()]
            last = result
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [BATCH, *s]) for n, s in (("input", self.shapes[0]), ("output", self.shapes[-1]))]
        graph = helper.make_graph(nodes, "model", ends[:1], ends[1:], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def network(kind, shape, names, weights):
    """The network of these layers, every shape checked on the way."""
    if not names or not shape or any(n < 1 for n in shape) or len(shape) != (1 if kind == "mlp" else 3):
        raise Refused("bad_input", f"an {kind} wants layers, and input: {'[features]' if kind == 'mlp' else '[channels, height, width]'}")
    net = Network(list(shape))
    for name in names:
        if name in WORDS[kind]:
            word(net, name)
        elif name + ".weight" in weights:
            weighted(net, kind, name, weights)
        else:
            known = sorted({n.rpartition(".")[0] for n in weights})
            raise Refused("unsupported_op", f"layer {name!r} is no word of an {kind} ({', '.join(WORDS[kind])}), and the file has no {name}.weight: it has {', '.join(known[:16])}", op=name)
    return net


def weighted(net, kind, name, weights):
    weight, shape = weights[name + ".weight"], net.shapes[-1]
    mine = {n: weights[n] for n in (name + ".weight", name + ".bias") if n in weights}
    if any(w.dtype.str != "<f4" for w in mine.values()):
        raise Refused("bad_input", f"layer {name}: its weights are {', '.join(str(w.dtype) for w in mine.values())}: want float32")
    dense, conv = weight.ndim == 2 and len(shape) == 1, weight.ndim == 4 and kind == "cnn" and len(shape) == 3
    if not dense and not conv or weight.shape[1] != shape[0]:
        raise Refused("bad_input", f"layer {name}: its weight is {list(weight.shape)}, and what comes in is {shape}{'' if len(shape) == 1 else ': flatten comes before a dense layer'}")
    bias = mine.get(name + ".bias")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise Refused("bad_input", f"layer {name}: its bias is {list(bias.shape)}, and its weight {list(weight.shape)}")
    if dense:
        net.add(name, "Gemm", {"transB": 1}, mine, lambda x, w, b=0: x @ w.T + b, [weight.shape[0]])
        return
    height, width = weight.shape[2:]
    if height % 2 == 0 or width % 2 == 0:
        raise Refused("unsupported_op", f"layer {name}: a kernel of {height} x {width} cannot keep the size: want odd sizes", op=name)
    pads = [height // 2, width // 2]
    net.add(name, "Conv", {"kernel_shape": [height, width], "pads": pads + pads}, mine, convolve, [weight.shape[0], *shape[1:]])


def convolve(x, w, b=None):
    import numpy

    height, width = w.shape[2] // 2, w.shape[3] // 2
    padded = numpy.pad(x, ((0, 0), (0, 0), (height, height), (width, width)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    found = numpy.einsum("nchwij,ocij->nohw", windows, w)
    return found if b is None else found + b[:, None, None]


def relu(x):
    return x * (x > 0)


def tanh(x):
    import numpy

    return numpy.tanh(x)


def sigmoid(x):
    import numpy

    return 1 / (1 + numpy.exp(-x))


def softmax(x):
    import numpy

    e = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def pooled(x):
    n, c, h, w = x.shape
    return x[:, :, : h // 2 * 2, : w // 2 * 2].reshape(n, c, h // 2, 2, w // 2, 2)


# Each word with its ONNX operator, attributes, and function.
ACTIVATIONS = {"relu": ("Relu", {}, relu), "tanh": ("Tanh", {}, tanh), "sigmoid": ("Sigmoid", {}, sigmoid), "softmax": ("Softmax", {"axis": -1}, softmax)}
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
POOLS = {
    "maxpool": ("MaxPool", POOL, lambda x: pooled(x).max(axis=(3, 5))),
    "avgpool": ("AveragePool", POOL, lambda x: pooled(x).mean(axis=(3, 5))),
    "flatten": ("Flatten", {}, lambda x: x.reshape(len(x), -1)),
}
WORDS = {"mlp": ACTIVATIONS, "cnn": {**ACTIVATIONS, **POOLS}}


def word(net, name):
    operator, attributes, function = WORDS["cnn"][name]
    shape = net.shapes[-1]
    if name == "flatten":
        size = 1
        for n in shape:
            size *= n
        shape = [size]
    elif name in POOLS:
        if len(shape) != 3 or min(shape[1:]) < 2:
            raise Refused("bad_input", f"layer {name}: what comes in is {shape}: want [channels, height, width] of at least 2 x 2")
        shape = [shape[0], shape[1] // 2, shape[2] // 2]
    net.add(name, operator, attributes, {}, function, shape)
