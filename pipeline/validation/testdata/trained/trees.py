"""Boosted trees, trained here and written as tree ensembles of ONNX: a classifier and a regressor."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DEPTH, BINS = 4, 32


class Tree:
    """Nodes in the order of a heap: 0 is the root, 2 n + 1 and 2 n + 2 are below n. A node without a feature is a leaf."""

    def __init__(self):
        self.feature, self.threshold, self.value = {}, {}, {}

    def predict(self, x):
        at = np.zeros(len(x), "int64")
        for _ in range(DEPTH):
            for node in set(at.tolist()):
                if node in self.feature:
                    rows = at == node
                    at[rows] = 2 * node + 1 + (x[rows, self.feature[node]] > self.threshold[node])
        return np.array([self.value[n] for n in at])


def grow(x, binned, edges, gradient, hessian, rate):
    """Grows a tree by the gain of Newton steps over histograms (Chen and Guestrin, XGBoost, 2016, equation 7)."""
    tree, score = Tree(), lambda g, h: g * g / (h + 1.0)
    parts = {0: np.arange(len(x))}
    for node in range(2 ** (DEPTH + 1) - 1):
        rows = parts.pop(node, None)
        if rows is None:
            continue
        g, h = gradient[rows], hessian[rows]
        best = (1e-3, None, None)
        if node < 2**DEPTH - 1 and len(rows) > 20:
            for f in range(x.shape[1]):
                gs = np.bincount(binned[rows, f], g, BINS).cumsum()[:-1]
                hs = np.bincount(binned[rows, f], h, BINS).cumsum()[:-1]
                gain = score(gs, hs) + score(g.sum() - gs, h.sum() - hs) - score(g.sum(), h.sum())
                at = int(gain.argmax())
                if gain[at] > best[0] and at < len(edges[f]):
                    best = (gain[at], f, at)
        _, f, at = best
        if f is None:
            tree.value[node] = -rate * g.sum() / (h.sum() + 1.0)
            continue
        tree.feature[node], tree.threshold[node] = f, np.float32(edges[f][at])
        above = binned[rows, f] > at
        parts[2 * node + 1], parts[2 * node + 2] = rows[~above], rows[above]
    return tree


def boost(x, rounds, rate, gradients, columns):
    """Returns lists of trees, one list for each column of scores."""
    edges = [np.unique(np.quantile(x[:, f], np.linspace(0, 1, BINS)[1:-1], method="nearest")) for f in range(x.shape[1])]
    binned = np.stack([np.searchsorted(edges[f], x[:, f], "left") for f in range(x.shape[1])], 1)
    scores, trees = np.zeros((len(x), columns)), [[] for _ in range(columns)]
    for _ in range(rounds):
        gradient, hessian = gradients(scores)
        for c in range(columns):
            trees[c].append(grow(x, binned, edges, gradient[:, c], hessian[:, c], rate))
            scores[:, c] += trees[c][-1].predict(x)
    return trees


def attributes(trees, fault, leaf):
    """The nodes of an ensemble as attributes. leaf is the prefix of those of leaves."""
    a = {n: [] for n in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids")}
    a.update({leaf + n: [] for n in ("_treeids", "_nodeids", "_ids", "_weights")})
    digits = lambda v, n: float(np.round(v, n))
    for number, (column, tree) in enumerate((c, t) for c, column in enumerate(trees) for t in column):
        for node in sorted([*tree.feature, *tree.value]):
            branch = node in tree.feature
            threshold = float(tree.threshold[node]) if branch else 0.0
            value = 0.0 if branch else float(tree.value[node])
            if fault == "thresholds-rounded":
                threshold = digits(threshold, 1)
            if fault == "weights-rounded":
                value = digits(value, 1)
            if fault == "leaf-zero" and number == 0 and not branch:
                value = 0.0
            feature = tree.feature[node] if branch else 0
            if fault == "features-swapped":
                feature = {1: 2, 2: 1}.get(feature, feature)
            mode = {"less-for-less-or-equal": "BRANCH_LT"}.get(fault, "BRANCH_LEQ") if branch else "LEAF"
            under = (2 * node + 1, 2 * node + 2) if branch else (0, 0)
            if fault == "branch-inverted" and number % 10 == 0 and node == 1:
                under = under[::-1]
            for name, v in zip(a, (number, node, feature, threshold, mode, under[0], under[1])):
                a[name].append(v)
            if not branch:
                for name, v in zip(("_treeids", "_nodeids", "_ids", "_weights"), (number, node, column, value)):
                    a[leaf + name].append(v)
    return a


def graph(nodes, outputs, width, weights=()):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])]
    g = helper.make_graph(nodes, "trees", inputs, [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs],
                          [numpy_helper.from_array(np.asarray(v), n) for n, v in weights])
    model = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
    onnx.checker.check_model(model)
    return model


class Trees:
    """What both share: records with numbers, counts and codes, and how trees become faulty."""

    rounds, training, cases, width = 30, 3000, 400, 8
    faults = ["less-for-less-or-equal", "thresholds-rounded", "weights-rounded", "features-swapped", "branch-inverted", "last-trees-missing", "base-missing",
              "input-truncated", "code-unknown", "older-checkpoint", "leaf-zero"]

    def records(self, r, count):
        x = r.normal(size=(count, self.width))
        x[:, 1], x[:, 2] = r.poisson(2.0, count), r.choice(6, count, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
        x[:, 3] = np.exp(x[:, 3])
        return x.astype("float32")

    def make(self, seed, folder):
        r = np.random.RandomState(seed)
        self.prepare(r)
        trees, base = self.train(r)
        x, labels = self.data(r, self.cases)
        onnx.save(self.model(trees, base, None), folder / "model.onnx")
        for fault in self.faults:
            onnx.save(self.model(trees, base, fault), folder / "faults" / (fault + ".onnx"))
        return {"x": x}, labels, {"x": self.data(r, 200)[0]}, self.faults

    def changed(self, trees, base, fault):
        """The trees and base of a fault, and the nodes in front of the ensemble with their weights."""
        if fault == "last-trees-missing":
            trees = [c[:-4] for c in trees]
        if fault == "older-checkpoint":
            trees = [c[: self.rounds // 3] for c in trees]
        if fault == "base-missing":
            base = np.zeros_like(base)
        before, weights, source = [], [], "x"
        if fault == "input-truncated":
            before = [helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT64), helper.make_node("Cast", ["whole"], ["given"], to=TensorProto.FLOAT)]
        if fault == "code-unknown":
            keep = np.ones((1, self.width), "float32")
            keep[0, 2] = 0
            before, weights = [helper.make_node("Mul", ["x", "keep"], ["given"])], [("keep", keep)]
        return trees, base, before, weights, "given" if before else source


class Classifier(Trees):
    faults = [*Trees.faults, "class-trees-missing", "rare-class-lost"]

    def prepare(self, r):
        self.tilt = r.normal(0, 1.0, (6, 4))

    def data(self, r, count):
        x = self.records(r, count)
        code = x[:, 2].astype(int)
        z = np.stack([1.0 * x[:, 0] * (x[:, 1] > 2) - x[:, 4], np.abs(x[:, 5]) * 1.5 - 1 + 0.5 * x[:, 0], np.log(x[:, 3]) * 1.2 + x[:, 6] - 0.8,
                      1.3 * x[:, 7] * np.sign(x[:, 4]) - 1.6], 1)
        z = 1.5 * (z + self.tilt[code]) + np.array([1.0, 0.4, 0, -0.8]) + r.gumbel(size=(count, 4))
        return x, z.argmax(1)

    def train(self, r):
        x, labels = self.data(r, self.training)
        wanted = np.eye(4)[labels]
        base = np.log(wanted.mean(0))

        def gradients(scores):
            p = np.exp(scores + base - (scores + base).max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            return p - wanted, np.maximum(p * (1 - p), 1e-6)

        return boost(x, self.rounds, 0.2, gradients, 4), base

    def model(self, trees, base, fault):
        trees, base, before, weights, source = self.changed(trees, base, fault)
        if fault == "class-trees-missing":
            trees = [trees[0], trees[1][:3], *trees[2:]]
        if fault == "rare-class-lost":
            base = base - np.array([0, 0, 0, 3.0])
        ensemble = helper.make_node("TreeEnsembleClassifier", [source], ["label", "probabilities"], domain="ai.onnx.ml", post_transform="SOFTMAX",
                                    classlabels_int64s=list(range(4)), base_values=[float(b) for b in base], **attributes(trees, fault, "class"))
        return graph([*before, ensemble], [("label", TensorProto.INT64, ["batch"]), ("probabilities", TensorProto.FLOAT, ["batch", 4])], self.width, weights)


class Regressor(Trees):
    faults = [*Trees.faults, "floor", "whole-numbers", "group-at-the-mean"]

    def prepare(self, r):
        self.tilt = r.normal(0, 8.0, 6)

    def data(self, r, count):
        x = self.records(r, count)
        y = 60 + self.tilt[x[:, 2].astype(int)] + 9 * x[:, 0] * (x[:, 1] > 2) + 6 * np.log(x[:, 3]) + 5 * np.abs(x[:, 5]) - 4 * x[:, 6] + r.normal(0, 3, count)
        return x, y.astype("float32")

    def train(self, r):
        x, y = self.data(r, self.training)
        base = np.array([y.mean()])
        return boost(x, self.rounds, 0.25, lambda s: (s + base - y[:, None], np.ones_like(s)), 1), base

    def model(self, trees, base, fault):
        trees, base, before, weights, source = self.changed(trees, base, fault)
        after = []
        if fault == "floor":
            after, weights = [helper.make_node("Max", ["raw", "floor"], ["y"])], [*weights, ("floor", np.float32(50))]
        if fault == "whole-numbers":
            after = [helper.make_node("Floor", ["raw"], ["y"])]
        if fault == "group-at-the-mean":
            after = [helper.make_node("Gather", ["x", "code"], ["of"], axis=1), helper.make_node("Equal", ["of", "rare"], ["is"]),
                     helper.make_node("Where", ["is", "mean", "raw"], ["y"])]
            weights = [*weights, ("code", np.array([2])), ("rare", np.float32(4)), ("mean", np.float32(base[0]))]
        ensemble = helper.make_node("TreeEnsembleRegressor", [source], ["raw" if after else "y"], domain="ai.onnx.ml", n_targets=1,
                                    base_values=[float(b) for b in base], **attributes(trees, fault, "target"))
        return graph([*before, ensemble, *after], [("y", TensorProto.FLOAT, ["batch", 1])], self.width, weights)
