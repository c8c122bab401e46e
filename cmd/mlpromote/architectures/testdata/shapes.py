"""Writes a small model of the shape of an architecture, with onnx.helper alone: shapes.py NAME FOLDER.

Beside it lie cases, a calibration, and what ONNX's own reference evaluator computes for the cases.
Hidden weights are drawn, and the last layer is fitted.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "pipeline/validation/testdata"))
from models import Family, Graph, one_hot, ridge, run  # noqa: E402

CASES, CALIBRATION, FIT = 60, 60, 600


class Inverted(Family):
    """As MobileNet: blocks that widen, convolve each channel alone and narrow, with a way around."""

    def __init__(self, seed):
        super().__init__(seed)
        self.kinds = np.kron(self.r.normal(size=(10, 3, 4, 4)), np.ones((1, 1, 4, 4)))

    def sample(self, count):
        labels = self.r.randint(0, 10, count)
        x = self.kinds[labels] * self.r.uniform(0.9, 1.1, (count, 1, 1, 1)) + self.r.normal(0, 0.2, (count, 3, 16, 16))
        return {"image": x.astype("float32")}, labels

    def model(self):
        feeds, labels = self.sample(FIT)
        g, r = Graph(), self.r
        inputs = [("image", "f", ["batch", 3, 16, 16])]

        def conv(x, name, into, out, size, group=1, stride=1, act=True):
            fan = into // group * size * size
            weight = g.weight(name + "_w", r.normal(size=(out, into // group, size, size)) * (2 / fan) ** 0.5)
            g.add("Conv", [x, weight], name, pads=[size // 2] * 4, kernel_shape=[size, size], group=group, strides=[stride, stride])
            seen = run(g.model(inputs, [(name, "f", None)]), {"image": feeds["image"][:100]})[name]
            norm = {"gamma": r.uniform(0.7, 1.3, out), "beta": r.normal(0, 0.2, out), "mean": seen.mean((0, 2, 3)), "var": seen.var((0, 2, 3))}
            x = g.add("BatchNormalization", [name] + [g.weight(f"{name}_{k}", v) for k, v in norm.items()], name + "_norm")
            return g.add("Clip", [x, low, high], name + "_relu6") if act else x

        def block(x, name, into, out, stride):
            y = conv(x, name + "_widen", into, 3 * into, 1)
            y = conv(y, name + "_each", 3 * into, 3 * into, 3, group=3 * into, stride=stride)
            y = conv(y, name + "_narrow", 3 * into, out, 1, act=False)
            return g.add("Add", [x, y], name + "_sum") if into == out else y

        low, high = g.weight("low", 0.0), g.weight("high", 6.0)
        x = conv("image", "stem", 3, 16, 3)
        x = block(x, "first", 16, 16, 1)
        x = block(x, "second", 16, 24, 2)
        x = conv(block(x, "third", 24, 24, 1), "last", 24, 96, 1)
        g.add("Flatten", [g.add("GlobalAveragePool", [x], "pool")], "features")
        found = run(g.model(inputs, [("features", "f", ["batch", 96])]), feeds)["features"]
        g.dense("features", "logits", *ridge(found, one_hot(labels, 10), 1.0))
        return g.model(inputs, [("logits", "f", ["batch", 10])])


class CRNN(Family):
    """Convolutions over a line of text, a bidirectional GRU along it, and scores at each step."""

    answers = False
    classes, steps, width = 8, 8, 24

    def __init__(self, seed):
        super().__init__(seed)
        self.glyphs = np.kron(self.r.normal(size=(self.classes, 8, 2)), np.ones((1, 2, 2)))

    def sample(self, count):
        text = self.r.randint(0, self.classes, (count, self.steps))
        x = self.glyphs[text].transpose(0, 2, 1, 3).reshape(count, 1, 16, 4 * self.steps)
        x = x * self.r.uniform(0.8, 1.2, (count, 1, 1, 1)) + self.r.normal(0, 0.1, x.shape)
        return {"image": x.astype("float32")}, text

    def model(self):
        feeds, text = self.sample(FIT)
        g, r, w = Graph(), self.r, self.width
        inputs, x, into = [("image", "f", ["batch", 1, 16, 4 * self.steps])], "image", 1
        for name, out, pool in (("first", 16, [2, 2]), ("second", 32, [2, 2])):
            weight = g.weight(name + "_w", r.normal(size=(out, into, 3, 3)) * (2 / into / 9) ** 0.5)
            g.add("Conv", [x, weight, g.weight(name + "_b", r.normal(0, 0.1, out))], name, pads=[1] * 4, kernel_shape=[3, 3])
            g.add("Relu", [name], name + "_relu")
            x, into = g.add("MaxPool", [name + "_relu"], name + "_pool", kernel_shape=pool, strides=pool), out
        g.add("Transpose", [x], "turned", perm=[3, 0, 1, 2])  # steps, batch, channels, height
        g.add("Reshape", ["turned", g.weight("flat", [0, 0, 4 * into], "int64")], "columns")
        weights = [g.weight(n, r.normal(size=s) * (0.5 / s[-1]) ** 0.5) for n, s in (
            ("gru_w", (2, 3 * w, 4 * into)), ("gru_r", (2, 3 * w, w)))]
        g.add("GRU", ["columns", *weights, g.weight("gru_b", r.normal(0, 0.1, (2, 6 * w)))], "gru",
              hidden_size=w, direction="bidirectional", linear_before_reset=1)
        g.add("Transpose", ["gru"], "rows", perm=[2, 0, 1, 3])  # batch, steps, directions, width
        g.add("Reshape", ["rows", g.weight("joined", [0, 0, 2 * w], "int64")], "features")
        found = run(g.model(inputs, [("features", "f", ["batch", self.steps, 2 * w])]), feeds)["features"]
        g.dense("features", "tokens", *ridge(found.reshape(-1, 2 * w), one_hot(text.ravel(), self.classes), 0.1))
        return g.model(inputs, [("tokens", "f", ["batch", self.steps, self.classes])])


class ViT(Inverted):
    """A small vision transformer: patches, two blocks that normalize first, and the mean of the tokens."""

    width, heads, patch = 32, 4, 4

    def model(self):
        feeds, labels = self.sample(FIT)
        g, r, w = Graph(), self.r, self.width
        inputs, tokens = [("image", "f", ["batch", 3, 16, 16])], (16 // self.patch) ** 2
        draw = lambda *shape: r.normal(size=shape) * (1 / shape[0]) ** 0.5

        def norm(x, name):
            scale, shift = g.weight(name + "_scale", r.uniform(0.8, 1.2, w)), g.weight(name + "_shift", r.normal(0, 0.1, w))
            return g.add("LayerNormalization", [x, scale, shift], name, axis=-1, epsilon=1e-5)

        def split(x, name, perm):
            g.add("Reshape", [x, g.weight(name + "_shape", [0, tokens, self.heads, w // self.heads], "int64")], name + "_heads")
            return g.add("Transpose", [name + "_heads"], name + "_turned", perm=perm)

        def block(x, name):
            y = norm(x, name + "_norm1")
            q, k, v = (g.dense(y, f"{name}_{part}", draw(w, w), r.normal(0, 0.1, w)) for part in "qkv")
            q, k, v = split(q, name + "_q", [0, 2, 1, 3]), split(k, name + "_k", [0, 2, 3, 1]), split(v, name + "_v", [0, 2, 1, 3])
            g.add("MatMul", [q, k], name + "_products")
            g.add("Mul", [name + "_products", g.weight(name + "_root", (w // self.heads) ** -0.5)], name + "_scores")
            g.add("MatMul", [g.add("Softmax", [name + "_scores"], name + "_attention", axis=-1), v], name + "_mixed")
            g.add("Transpose", [name + "_mixed"], name + "_back", perm=[0, 2, 1, 3])
            g.add("Reshape", [name + "_back", g.weight(name + "_joined", [0, tokens, w], "int64")], name + "_all")
            x = g.add("Add", [x, g.dense(name + "_all", name + "_out", draw(w, w), r.normal(0, 0.1, w))], name + "_sum1")
            up = g.dense(norm(x, name + "_norm2"), name + "_up", draw(w, 2 * w), r.normal(0, 0.1, 2 * w))
            g.add("Erf", [g.add("Mul", [up, g.weight(name + "_half", 0.5 ** 0.5)], name + "_scaled")], name + "_erf")
            g.add("Add", [name + "_erf", g.weight(name + "_one", 1.0)], name + "_gate")
            g.add("Mul", [up, g.add("Mul", [name + "_gate", g.weight(name + "_two", 0.5)], name + "_gates")], name + "_gelu")
            return g.add("Add", [x, g.dense(name + "_gelu", name + "_down", draw(2 * w, w), r.normal(0, 0.1, w))], name + "_sum2")

        weight = g.weight("patch_w", r.normal(size=(w, 3, self.patch, self.patch)) * (1 / 48) ** 0.5)
        g.add("Conv", ["image", weight], "patches", kernel_shape=[self.patch] * 2, strides=[self.patch] * 2)
        g.add("Reshape", ["patches", g.weight("flat", [0, w, tokens], "int64")], "columns")
        g.add("Transpose", ["columns"], "tokens", perm=[0, 2, 1])
        x = g.add("Add", ["tokens", g.weight("positions", r.normal(0, 0.3, (tokens, w)))], "placed")
        x = norm(block(block(x, "first"), "second"), "norm")
        g.add("ReduceMean", [x], "features", axes=[1], keepdims=0)
        found = run(g.model(inputs, [("features", "f", ["batch", w])]), feeds)["features"]
        g.dense("features", "logits", *ridge(found, one_hot(labels, 10), 1e-2))
        return g.model(inputs, [("logits", "f", ["batch", 10])])


class Detector(Family):
    """Finds the line of text in an image: convolutions down and up again, and a probability for every pixel."""

    answers, size = False, 32

    def sample(self, count):
        n, r = self.size, self.r
        x, mask = r.normal(0, 0.3, (count, 1, n, n)), np.zeros((count, 1, n, n), bool)
        for i in range(count):
            top, left, high, wide = r.randint(0, n - 8), r.randint(0, n - 16), r.randint(4, 8), r.randint(8, 16)
            mask[i, 0, top:top + high, left:left + wide] = True
        return {"image": (x + np.where(mask, r.choice([-1.5, 1.5], mask.shape), 0)).astype("float32")}, mask

    def model(self):
        feeds, mask = self.sample(FIT // 3)
        g, r, n = Graph(), self.r, self.size
        inputs = [("image", "f", ["batch", 1, n, n])]

        def conv(x, name, into, out, stride=1):
            weight = g.weight(name + "_w", r.normal(size=(out, into, 3, 3)) * (2 / into / 9) ** 0.5)
            g.add("Conv", [x, weight, g.weight(name + "_b", r.normal(0, 0.1, out))], name, pads=[1] * 4, kernel_shape=[3, 3], strides=[stride] * 2)
            return g.add("Relu", [name], name + "_relu")

        fine = conv("image", "first", 1, 12)
        coarse = conv(conv(fine, "down", 12, 24, 2), "deep", 24, 24)
        weight = g.weight("up_w", r.normal(size=(24, 12, 2, 2)) * (2 / 24) ** 0.5)
        g.add("ConvTranspose", [coarse, weight], "up", kernel_shape=[2, 2], strides=[2, 2])
        g.add("Concat", [fine, "up"], "features", axis=1)
        found = run(g.model(inputs, [("features", "f", ["batch", 24, n, n])]), feeds)["features"]
        matrix, offset = ridge(found.transpose(0, 2, 3, 1).reshape(-1, 24), np.where(mask.reshape(-1, 1), 3.0, -3.0), 1e-2)
        head = [g.weight("head_w", matrix.T.reshape(1, 24, 1, 1)), g.weight("head_b", offset)]
        g.add("Sigmoid", [g.add("Conv", ["features", *head], "head", kernel_shape=[1, 1])], "mask")
        return g.model(inputs, [("mask", "f", ["batch", 1, n, n])])


class VAD(Family):
    """Hears whether a frame of sound is speech. Its LSTM gets its state and gives it back, a frame at a time."""

    answers, frame, width = False, 64, 32

    def sample(self, count):
        r, steps = self.r, np.arange(self.frame)
        speech, tone = r.randint(0, 2, count), r.uniform(0.1, 0.5, (count, 1))
        x = r.normal(0, 0.3, (count, self.frame)) + speech[:, None] * np.sin(tone * steps + r.uniform(0, 6, (count, 1)))
        state = lambda: np.tanh(r.normal(0, 0.3, (count, self.width))).astype("float32")
        return {"frame": x.astype("float32"), "hidden": state(), "cell": state()}, speech

    def model(self):
        feeds, speech = self.sample(FIT)
        g, r, w = Graph(), self.r, self.width
        inputs = [("frame", "f", ["batch", self.frame]), ("hidden", "f", ["batch", w]), ("cell", "f", ["batch", w])]
        spectrum = g.dense("frame", "filters", r.normal(size=(self.frame, 48)) * (4 / self.frame) ** 0.5, r.normal(0, 0.1, 48))
        g.add("Abs", [spectrum], "energies")
        zero = g.weight("zero", [0], "int64")
        x, h, c = (g.add("Unsqueeze", [value, zero], value + "_step") for value in ("energies", "hidden", "cell"))
        weights = [g.weight(n, r.normal(size=s) * (2 / s[-1]) ** 0.5) for n, s in (("lstm_w", (1, 4 * w, 48)), ("lstm_r", (1, 4 * w, w)))]
        bias = g.weight("lstm_b", r.normal(0, 0.1, (1, 8 * w)))
        g.nodes.append(onnx.helper.make_node("LSTM", [x, *weights, bias, "", h, c], ["", "lstm_h", "lstm_c"], name="lstm", hidden_size=w))
        for name in ("h", "c"):
            g.add("Squeeze", ["lstm_" + name, zero], {"h": "hidden_next", "c": "cell_next"}[name])
        found = run(g.model(inputs, [("hidden_next", "f", ["batch", w])]), feeds)["hidden_next"]
        g.add("Sigmoid", [g.dense("hidden_next", "score", *ridge(found, np.where(speech[:, None] > 0, 3.0, -3.0), 1e-2))], "speech")
        return g.model(inputs, [("speech", "f", ["batch", 1]), ("hidden_next", "f", ["batch", w]), ("cell_next", "f", ["batch", w])])


SHAPES = {"inverted": Inverted, "crnn": CRNN, "vit": ViT, "detector": Detector, "vad": VAD}


def main(name, folder):
    family = SHAPES[name](1)
    model = family.model()
    onnx.checker.check_model(model, full_check=True)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    feeds, answers = family.sample(CASES)
    np.savez(folder / "cases.npz", **feeds, **({"label": answers.astype("int64")} if family.answers else {}))
    np.savez(folder / "calibration.npz", **family.sample(CALIBRATION)[0])
    names = [o.name for o in model.graph.output]
    outputs = dict(zip(names, ReferenceEvaluator(model).run(None, feeds)))
    np.savez(folder / "outputs.npz", **outputs)
    first = outputs[names[0]]
    found = first.reshape(answers.shape) > 0.5 if first.size == answers.size else first.argmax(-1)
    print("right:", (found == answers).mean())


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
