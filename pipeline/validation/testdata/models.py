"""Writes a small model with cases, calibration and faulty versions of itself: models.py FAMILY SEED FOLDER.

Weights of hidden layers are drawn. The last layer is fitted by least squares to a teacher, so that classes are told
apart and an error of an engine costs what it costs a trained model. Everything follows from the seed.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Graph:
    """Collects nodes and weights."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, operator, inputs, output, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output + "_" + operator, **attributes))
        return output

    def weight(self, name, values, dtype="float32"):
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def dense(self, x, name, matrix, offset):
        self.add("MatMul", [x, self.weight(name + "_w", matrix)], name + "_product")
        return self.add("Add", [name + "_product", self.weight(name + "_b", offset)], name)

    def model(self, inputs, outputs):
        types = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
        value = lambda name, kind, shape: helper.make_tensor_value_info(name, types[kind], shape)
        graph = helper.make_graph(self.nodes, "validation", [value(*i) for i in inputs], [value(*o) for o in outputs], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        made.ir_version = 8
        return made


def run(model, feeds, names=None):
    """Computes outputs, or inner values where names has them."""
    model = onnx.shape_inference.infer_shapes(model)
    if names:
        kept = [v for v in list(model.graph.value_info) + list(model.graph.output) if v.name in names]
        del model.graph.output[:]
        model.graph.output.extend(kept)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = names or [o.name for o in session.get_outputs()]
    return dict(zip(wanted, session.run(wanted, feeds)))


def ridge(features, targets, weight=1e-2):
    """The matrix and offset that make targets of features, by least squares."""
    mean = features.mean(0)
    centred = features - mean
    gram = centred.T @ centred + weight * len(features) * np.eye(features.shape[1]) * max(centred.var(), 1e-6)
    matrix = np.linalg.solve(gram, centred.T @ (targets - targets.mean(0)))
    return matrix.astype("float32"), (targets.mean(0) - mean @ matrix).astype("float32")


def one_hot(labels, classes, size=4.0):
    return np.where(np.eye(classes)[labels] > 0, size, -size / (classes - 1))


class Family:
    """One model: built(data) gives it, and sample(count) draws cases with the teacher's answers."""

    main = "logits"   # the output that faults of outputs change
    edge = ""         # the inner value that the frozen branch is
    answers = True    # there are labels
    cases = 400
    faulty = True     # there are faulty versions
    yaml = "shapes: {batch: [1, 1, 8]}\n"

    def __init__(self, seed):
        self.r = np.random.RandomState(seed)


class Classifier(Family):
    """Images of ten kinds: convolutions with batch norm, a residual branch, a dense layer."""

    edge = "branch"

    def __init__(self, seed):
        super().__init__(seed)
        small = self.r.normal(size=(10, 3, 4, 4))
        self.kinds = np.kron(small, np.ones((1, 1, 4, 4)))

    def sample(self, count):
        labels = self.r.randint(0, 10, count)
        contrast = self.r.uniform(0.6, 1.4, (count, 1, 1, 1))
        x = self.kinds[labels] * contrast + self.r.normal(0, 2.0, (count, 3, 16, 16)) + self.r.normal(0, 0.3, (count, 3, 1, 1))
        return {"x": x.astype("float32")}, labels

    def model(self):
        feeds, labels = self.sample(1000)
        g, r = Graph(), self.r
        outputs = lambda name, *shape: [(name, "f", ["batch", *shape])]
        inputs = [("x", "f", ["batch", 3, 16, 16])]

        def conv(x, name, into, out):
            weight = g.weight(name + "_w", r.normal(size=(out, into, 3, 3)) * (2 / into / 9) ** 0.5)
            g.add("Conv", [x, weight], name, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
            seen = run(g.model(inputs, [(name, "f", None)]), {"x": feeds["x"][:200]})[name]
            values = {"gamma": r.uniform(0.7, 1.3, out), "beta": r.normal(0, 0.2, out), "mean": seen.mean((0, 2, 3)), "var": seen.var((0, 2, 3))}
            g.add("BatchNormalization", [name] + [g.weight(f"{name}_{k}", v) for k, v in values.items()], name + "_norm")
            return g.add("Relu", [name + "_norm"], name + "_relu")

        a = conv("x", "first", 3, 16)
        a = g.add("MaxPool", [a], "first_pool", kernel_shape=[2, 2], strides=[2, 2])
        b = conv(a, "second", 16, 32)
        g.add("Identity", [conv(b, "third", 32, 32)], "branch")
        c = g.add("Add", [b, "branch"], "joined")
        c = g.add("MaxPool", [c], "second_pool", kernel_shape=[2, 2], strides=[2, 2])
        g.add("Flatten", [c], "features")
        found = run(g.model(inputs, outputs("features", 512)), feeds)["features"]
        matrix, offset = ridge(found, one_hot(labels, 10), 0.3)
        g.dense("features", "logits", matrix, offset)
        return g.model(inputs, outputs("logits", 10))


class Regressor(Family):
    """A price and two angles from twelve numbers: outputs of different units and sizes."""

    main, edge, answers, cases = "angles", "second_relu", False, 800
    yaml = "shapes: {batch: [1, 1, 8]}\noutputs: {price: {kind: value}, angles: {kind: value}}\n"

    def sample(self, count):
        x = self.r.normal(size=(count, 12))
        x[:, 3:6] = np.tanh(x[:, 3:6] + x[:, :1])
        return {"x": x.astype("float32")}, None

    def model(self):
        feeds, _ = self.sample(2000)
        x, g, r = feeds["x"].astype("float64"), Graph(), self.r
        inputs = [("x", "f", ["batch", 12])]
        at = "x"
        for name, into, out in (("first", 12, 64), ("second", 64, 64)):
            g.dense(at, name, r.normal(size=(into, out)) * (2 / into) ** 0.5, r.normal(0, 0.3, out))
            at = g.add("Relu", [name], name + "_relu")
        found = run(g.model(inputs, [(at, "f", ["batch", 64])]), feeds)[at]
        price = 200 + 50 * (x @ r.normal(size=12) / 3 + np.sin(x[:, :2].sum(1)))
        angles = np.stack([0.4 * np.tanh(x[:, 0] + x[:, 3]), 0.1 * np.sin(x[:, 1] - x[:, 4])], 1)
        for name, wanted in (("price", price[:, None]), ("angles", angles)):
            matrix, offset = ridge(found, wanted, 1e-3)
            g.dense(at, name, matrix, offset)
        return g.model(inputs, [("price", "f", ["batch", 1]), ("angles", "f", ["batch", 2])])


class Encoder(Family):
    """Texts of four kinds: embeddings, a block of attention, the mean over an open number of tokens."""

    edge = "mixed"
    words, width, heads = 200, 32, 4
    yaml = "shapes: {batch: [1, 1, 8], seq: [4, 16, 24]}\noutputs: {logits: {kind: scores}, embedding: {kind: embedding}}\n"

    def __init__(self, seed):
        super().__init__(seed)
        self.topics = self.r.dirichlet(np.full(self.words, 0.15), 4)

    def sample(self, count, length=16):
        labels = self.r.randint(0, 4, count)
        ids = np.stack([self.r.choice(self.words, length, p=0.8 * self.topics[k] + 0.2 / self.words) for k in labels])
        return {"ids": ids.astype("int64")}, labels

    def model(self):
        feeds, labels = self.sample(800)
        g, r, w = Graph(), self.r, self.width
        inputs = [("ids", "i", ["batch", "seq"])]

        def dense(x, name, into, out):
            return g.dense(x, name, r.normal(size=(into, out)) / into**0.5, r.normal(0, 0.1, out))

        def norm(x, name):
            return g.add("LayerNormalization", [x, g.weight(name + "_gamma", r.uniform(0.7, 1.3, w)), g.weight(name + "_beta", r.normal(0, 0.1, w))], name, axis=-1)

        def heads(x, name, order):
            g.add("Reshape", [x, g.weight(name + "_shape", [0, 0, self.heads, w // self.heads], "int64")], name + "_split")
            return g.add("Transpose", [name + "_split"], name + "_heads", perm=order)

        g.add("Gather", [g.weight("table", r.normal(size=(self.words, w))), "ids"], "words")
        g.add("Shape", ["ids"], "size", start=1, end=2)
        g.add("Squeeze", ["size"], "length")
        g.add("Range", [g.weight("zero", 0, "int64"), "length", g.weight("one", 1, "int64")], "places")
        g.add("Gather", [g.weight("positions", r.normal(0, 0.3, (64, w))), "places"], "where")
        x = norm(g.add("Add", ["words", "where"], "placed"), "norm0")
        query, key, value = (heads(dense(x, n, w, w), n, o) for n, o in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])))
        g.add("MatMul", [query, key], "match")
        g.add("Mul", ["match", g.weight("root", (w / self.heads) ** -0.5)], "scaled")
        g.add("Softmax", ["scaled"], "share", axis=-1)
        g.add("MatMul", ["share", value], "taken")
        g.add("Transpose", ["taken"], "turned", perm=[0, 2, 1, 3])
        g.add("Reshape", ["turned", g.weight("flat", [0, 0, w], "int64")], "mixed")
        x = norm(g.add("Add", [x, dense("mixed", "out", w, w)], "added1"), "norm1")
        up = dense(x, "up", w, 64)
        g.add("Div", [up, g.weight("sqrt2", 2**0.5)], "up_part")
        g.add("Erf", ["up_part"], "up_erf")
        g.add("Add", ["up_erf", g.weight("unit", 1.0)], "up_plus")
        g.add("Mul", [up, "up_plus"], "up_twice")
        g.add("Mul", ["up_twice", g.weight("half", 0.5)], "gelu")
        x = norm(g.add("Add", [x, dense("gelu", "down", 64, w)], "added2"), "norm2")
        g.add("ReduceMean", [x], "embedding", axes=[1], keepdims=0)
        outputs = [("embedding", "f", ["batch", w])]
        found = run(g.model(inputs, outputs), feeds)["embedding"]
        matrix, offset = ridge(found, one_hot(labels, 4), 1e-2)
        g.dense("embedding", "logits", matrix, offset)
        return g.model(inputs, [("logits", "f", ["batch", 4])] + outputs)


class Recurrent(Family):
    """Five kinds of sequences, with a state that comes in and goes out: a recurrent cell over six steps."""

    edge, cases = "state3", 800
    yaml = "shapes: {batch: [1, 1, 8]}\noutputs: {logits: {kind: scores}, state: {kind: state}}\n"
    steps, width = 6, 24

    def __init__(self, seed):
        super().__init__(seed)
        self.kinds = self.r.normal(size=(5, self.steps, 8))

    def sample(self, count):
        labels = self.r.randint(0, 5, count)
        x = self.kinds[labels] + self.r.normal(0, 0.8, (count, self.steps, 8))
        return {"x": x.astype("float32"), "before": np.tanh(self.r.normal(0, 0.5, (count, self.width))).astype("float32")}, labels

    def model(self):
        feeds, labels = self.sample(1500)
        g, r, w = Graph(), self.r, self.width
        inputs = [("x", "f", ["batch", self.steps, 8]), ("before", "f", ["batch", w])]
        into, within = g.weight("into_w", r.normal(size=(8, w)) / 8**0.5), g.weight("within_w", r.normal(size=(w, w)) / w**0.5)
        bias, state = g.weight("cell_b", r.normal(0, 0.1, w)), "before"
        for t in range(self.steps):
            g.add("Gather", ["x", g.weight(f"step{t}", t, "int64")], f"x{t}", axis=1)
            g.add("MatMul", [f"x{t}", into], f"in{t}")
            g.add("MatMul", [state, within], f"kept{t}")
            g.add("Add", [f"in{t}", f"kept{t}"], f"sum{t}")
            g.add("Add", [f"sum{t}", bias], f"cell{t}")
            state = g.add("Tanh", [f"cell{t}"], "state" if t == self.steps - 1 else f"state{t}")
        outputs = [("state", "f", ["batch", w])]
        matrix, offset = ridge(run(g.model(inputs, outputs), feeds)["state"], one_hot(labels, 5), 1e-2)
        g.add("Gemm", ["state", g.weight("head_w", matrix), g.weight("head_b", offset)], "logits")
        return g.model(inputs, [("logits", "f", ["batch", 5])] + outputs)


class Tagger(Family):
    """Six tags, each there or not: probabilities of tags, and the tags themselves."""

    main, edge, answers, cases = "probability", "second_relu", False, 800
    yaml = "shapes: {batch: [1, 1, 8]}\noutputs: {probability: {kind: other}, tags: {kind: label}}\n"

    def __init__(self, seed):
        super().__init__(seed)
        self.planes = self.r.normal(size=(20, 6)) / 20**0.5

    def sample(self, count):
        there = self.r.uniform(size=(count, 6)) < 0.4
        x = np.where(there, 1.5, -1.5) @ self.planes.T + self.r.normal(0, 0.15, (count, 20))
        return {"x": x.astype("float32")}, there

    def model(self):
        feeds, there = self.sample(1500)
        g, r = Graph(), self.r
        inputs, at = [("x", "f", ["batch", 20])], "x"
        for name, into, out in (("first", 20, 64), ("second", 64, 64)):
            g.dense(at, name, r.normal(size=(into, out)) * (2 / into) ** 0.5, r.normal(0, 0.3, out))
            at = g.add("Relu", [name], name + "_relu")
        found = run(g.model(inputs, [(at, "f", ["batch", 64])]), feeds)[at]
        matrix, offset = ridge(found, np.where(there, 5.0, -5.0), 1e-3)
        g.dense(at, "strength", matrix, offset)
        g.add("Sigmoid", ["strength"], "probability")
        g.add("Greater", ["probability", g.weight("threshold", 0.5)], "tags")
        return g.model(inputs, [("probability", "f", ["batch", 6]), ("tags", "b", ["batch", 6])])


class Fraud(Family):
    """Few frauds among payments: 41 of 1,373 cases, which prove a drop of auc of 9 %, and the limit is 1 %."""

    cases, faulty = 1373, False
    yaml = "shapes: {batch: [1, 1, 8]}\noutputs: {score: {kind: value}}\nlimits: {accuracy: {metric: auc, output: score, drop: {max: 1%}}}\n"

    def sample(self, count):
        labels = np.arange(count) % 34 == 0
        x = self.r.normal(size=(count, 16)) + 0.6 * labels[:, None]
        return {"x": x.astype("float32")}, labels

    def model(self):
        feeds, labels = self.sample(4000)
        g, inputs = Graph(), [("x", "f", ["batch", 16])]
        g.dense("x", "first", self.r.normal(size=(16, 32)) / 4, self.r.normal(0, 0.3, 32))
        g.add("Relu", ["first"], "hidden")
        found = run(g.model(inputs, [("hidden", "f", ["batch", 32])]), feeds)["hidden"]
        matrix, offset = ridge(found, np.where(labels, 3.0, -3.0)[:, None], 1e-2)
        g.dense("hidden", "score", matrix, offset)
        return g.model(inputs, [("score", "f", ["batch", 1])])


FAMILIES = {"classifier": Classifier, "regressor": Regressor, "encoder": Encoder, "recurrent": Recurrent, "tagger": Tagger, "fraud": Fraud}


class Edit:
    """A copy of a model to be made faulty."""

    def __init__(self, model):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.g = self.model.graph

    def weight(self, name, values, dtype="float32"):
        self.g.initializer.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), "fault_weight_" + name))
        return "fault_weight_" + name

    def between(self, value, make):
        """Puts nodes behind a value: make(raw) lists them, and the last one's result stands for the value."""
        producer = next((n for n, node in enumerate(self.g.node) if value in node.output), -1)
        raw, result = (value + "_raw", value) if producer >= 0 else (value, value + "_edited")
        if producer >= 0:
            node = self.g.node[producer]
            node.output[list(node.output).index(value)] = raw
        else:
            for node in self.g.node:
                for i, name in enumerate(node.input):
                    if name == value:
                        node.input[i] = result
        nodes = make(raw)
        nodes[-1].output[0] = result
        for i, node in enumerate(nodes):
            node.name = f"fault_{value}_{i}"
            self.g.node.insert(producer + 1 + i, node)
        return self.model


def node(operator, inputs, output="fault_result", **attributes):
    return helper.make_node(operator, inputs, [output], **attributes)


def faults(family, model, feeds):
    """Yields the name and the model of each fault."""
    values = run(model, feeds)
    seen = values[family.main]
    spread, width = float(seen.std()), seen.shape[1]
    source = next(iter(feeds))
    given = feeds[source]
    behind = lambda value, make: (lambda e: e.between(value, lambda raw: make(e, raw)))(Edit(model))
    order = lambda columns: behind(family.main, lambda e, raw: [node("Gather", [raw, e.weight("order", columns, "int64")], axis=1)])
    swapped = np.arange(width)
    swapped[:2] = [1, 0]
    yield "outputs-swapped", order(swapped)
    if width > 2:
        yield "class-off-by-one", order(np.roll(np.arange(width), 1))
    axis = given.ndim - 1 if given.ndim < 3 else 1
    if isinstance(family, Classifier):
        yield "transposed", behind(source, lambda e, raw: [node("Transpose", [raw], perm=[0, 1, 3, 2])])
        yield "channels-swapped", behind(source, lambda e, raw: [node("Gather", [raw, e.weight("order", [2, 1, 0], "int64")], axis=1)])
        yield "wrong-resize", behind(source, lambda e, raw: [node("AveragePool", [raw], kernel_shape=[2, 2], pads=[0, 0, 1, 1])])
        edited = Edit(model).model
        for n in edited.graph.node:
            if n.op_type == "BatchNormalization":
                n.op_type = "InstanceNormalization"
                del n.input[3:]
        yield "training-norm", edited
    elif not isinstance(family, Encoder):
        yield "transposed", behind(source, lambda e, raw: [node("Gather", [raw, e.weight("order", np.arange(given.shape[axis])[::-1], "int64")], axis=axis)])
    if isinstance(family, Encoder):
        yield "vocabulary-truncated", behind(source, lambda e, raw: [node("Min", [raw, e.weight("last", family.words // 2, "int64")])])
    else:
        shift = lambda scale, offset: behind(source, lambda e, raw: [
            node("Mul", [raw, e.weight("factor", scale)], "fault_scaled"), node("Add", ["fault_scaled", e.weight("offset", offset * given.std())])])
        yield "normalisation-scale", shift(1.3, 0)
        yield "normalisation-offset", shift(1, 0.3)
        yield "denormals-flushed", behind(source, lambda e, raw: [
            node("Abs", [raw], "fault_size"), node("Less", ["fault_size", e.weight("tiny", 1.2e-38)], "fault_is_tiny"),
            node("Where", ["fault_is_tiny", e.weight("zero", 0), raw])])
    scaled = lambda factors: behind(family.main, lambda e, raw: [node("Mul", [raw, e.weight("factor", factors)])])
    for factor in (1.05, 1.1, 1.2, 1.5):
        yield f"channel-{factor}", scaled([factor] + [1.0] * (width - 1))
    for factor in (1.1, 3.0):
        yield f"scaled-{factor}", scaled(np.full(width, factor))
    for offset in (0.1, 0.5):
        yield f"offset-{offset}", behind(family.main, lambda e, raw: [node("Add", [raw, e.weight("offset", offset * spread)])])
    if isinstance(family, Regressor):
        rare = float(np.quantile(given[:, 0], 0.95))
        yield "dead-segment", behind("price", lambda e, raw: [
            node("Gather", [source, e.weight("first", [0], "int64")], "fault_first", axis=1), node("Greater", ["fault_first", e.weight("rare", rare)], "fault_rare"),
            node("Where", ["fault_rare", e.weight("usual", np.median(values["price"])), raw])])
    if family.answers:
        most = np.full(width, 1e4)
        most[0] = np.median(seen[:, 0])
        yield "class-drop", behind(family.main, lambda e, raw: [node("Min", [raw, e.weight("most", most)])])
    sums = np.sort(given.astype("float64").reshape(len(given), -1).sum(1))
    number = float((sums[-1] + sums[-2]) / 2)
    axes = list(range(1, given.ndim))

    def not_a_number(e, raw):
        cast = [node("Cast", [source], "fault_number", to=TensorProto.FLOAT)]
        return cast + [
            node("ReduceSum", ["fault_number", e.weight("axes", axes, "int64")], "fault_sum", keepdims=0),
            node("Greater", ["fault_sum", e.weight("limit", number)], "fault_which"),
            node("Unsqueeze", ["fault_which", e.weight("last", [1], "int64")], "fault_rows"),
            node("Where", ["fault_rows", e.weight("nan", np.nan), raw])]

    if sums[-1] - sums[-2] > 1e-3 * abs(sums[-1]):
        yield "nan-on-one-case", behind(family.main, not_a_number)
    yield "batch-dependence", behind(family.main, lambda e, raw: [
        node("ReduceMean", [raw], "fault_mean", axes=[0], keepdims=1), node("Sub", ["fault_mean", raw], "fault_apart"),
        node("Mul", ["fault_apart", e.weight("share", 0.5)], "fault_part"), node("Add", [raw, "fault_part"])])
    inner = run(model, feeds, [family.edge])[family.edge]
    yield "frozen-branch", behind(family.edge, lambda e, raw: [
        node("Mul", [raw, e.weight("nothing", 0)], "fault_nothing"), node("Add", ["fault_nothing", e.weight("mean", inner.mean())])])


def save(folder, name, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / name, **tensors)


def main(name, seed, folder):
    family = FAMILIES[name](seed)
    model = family.model()
    onnx.checker.check_model(model, full_check=True)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    feeds, labels = family.sample(family.cases)
    save(folder / "cases", "cases-00000.npz", {**feeds, **({"label": labels.astype("int64")} if family.answers else {})})
    calibration, _ = family.sample(200)
    save(folder / "calibration", "calibration.npz", calibration)
    few = {k: v / 20 if v.dtype == np.float32 else np.full_like(v, v[0, 0]) for k, v in calibration.items()}
    save(folder / "saturating", "calibration.npz", few)
    (folder / "faults").mkdir(exist_ok=True)
    names = []
    for fault, edited in faults(family, model, feeds) if family.faulty else ():
        onnx.checker.check_model(edited, full_check=True)
        onnx.save(edited, folder / "faults" / (fault + ".onnx"))
        names.append(fault)
    text = "model: validation/" + name + "\nversion: 1.0.0\nsource: model.onnx\n" + family.yaml
    text += "cases: {path: cases/" + (", labels: label" if family.answers else "") + "}\n"
    (folder / "about.json").write_text(json.dumps({"spec": text, "faults": names}))
    if family.answers and family.faulty:
        print("teacher's answers:", (run(model, feeds)["logits"].argmax(1) == labels).mean())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]))
