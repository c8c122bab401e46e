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


SHAPES = {"inverted": Inverted, "crnn": CRNN}


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
    print("right:", (outputs[names[0]].argmax(-1) == answers).mean())


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
