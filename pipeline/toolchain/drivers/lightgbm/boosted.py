"""A model of LightGBM: what its text says, what it is as ONNX, and what LightGBM predicts of it.

The text is read and checked here (LightGBM, src/boosting/gbdt_model_text.cpp and src/io/tree.cpp)
before LightGBM, which trusts it, sees it. LightGBM gets what was read, written anew, and not the file: it reads
22 lines of a tree and no more, stops at an empty one, and looks for trees where tree_sizes says.
"""

import math
import re

import trees
from protocol import Refused

IDENTITY = ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "custom", "")
EXPONENT, RANKING = ("poisson", "gamma", "tweedie"), ("lambdarank", "rank_xendcg")
MANY, CROSS = ("multiclass", "multiclassova"), ("cross_entropy", "cross_entropy_lambda")
KNOWN = (*IDENTITY[:-1], *EXPONENT, *RANKING, "binary", *MANY, *CROSS)
# Of decision_type: a split by categories, where missing values go, and what is missing.
CATEGORICAL, DEFAULT_LEFT = 1, 2
NONE, ZERO, NAN = 0, 1, 2
# What LightGBM predicts by: lines before the trees, and of a tree with several leaves.
HEAD = ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "feature_names", "feature_infos")
SPLITS = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
# Numbers that Python and C++ read alike: Python's int takes 1_0 for 10.
WRITTEN = {
    int: re.compile(r"-?[0-9]{1,18}"),
    float: re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|nan)"),
}
ZERO_THRESHOLD = 1.0000000180025095e-35  # 1e-35 as float32, up to which a number is zero


class Booster:
    def __init__(self, path):
        with open(path, encoding="utf-8", errors="strict") as f:
            try:
                text = f.read()
            except UnicodeDecodeError as e:
                raise Refused("bad_input", f"the file is no UTF-8: {e}") from None
        head, blocks = sections(text)
        self.scores = whole(head, "num_tree_per_iteration", 1, 100_000)
        self.features = whole(head, "max_feature_idx", 0, 10_000_000) + 1
        self.feature_names = head.get("feature_names", "").split(" ")
        self.objective, self.parameters = objective_of(head.get("objective", ""))
        self.average = "average_output" in head
        self.zeros = {}
        self.trees = [(n % self.scores, self.nodes_of(n, block)) for n, block in enumerate(blocks)]
        if not self.trees or len(self.trees) % self.scores:
            raise Refused("bad_input", f"the model has {len(self.trees)} trees of {self.scores} in each iteration")
        if self.objective not in (*KNOWN, ""):
            raise Refused("unsupported_op", f"objective {self.objective} has no converter: want one of {', '.join(KNOWN)}", op=self.objective)
        trees.check(self.trees, self.scores, self.features)
        self.text = self.rewritten(head, blocks)

    def rewritten(self, head, blocks):
        """What was read and checked, and nothing else, as LightGBM writes it. It makes room for the predictions of
        num_class classes, and fills in those of all trees and of the objective."""
        classes = self.parameters.get("num_class", "") if self.objective in MANY else head.get("num_class")
        if head.get("num_class") != str(self.scores) or classes != str(self.scores):
            raise Refused("bad_input", (
                f"the model has {self.scores} trees in each iteration, num_class {head.get('num_class')!r}, and classes of its "
                f"objective {classes!r}: want one number"))
        lines = ["tree", *(f"{key}={head[key]}" for key in HEAD if key in head), *(["average_output"] if self.average else [])]
        if self.objective:
            lines.append("objective=" + " ".join([self.objective, *(f"{k}:{v}" if v else k for k, v in self.parameters.items())]))
        for number, block in enumerate(blocks):
            keys = ("leaf_value",) if block["num_leaves"] == "1" else (*SPLITS, "leaf_value")
            lines += ["", f"Tree={number}", f"num_leaves={block['num_leaves']}", "num_cat=0"]
            lines += [f"{key}={' '.join(block[key].split())}" for key in keys]
            lines += ["is_linear=0", "shrinkage=1", ""]
        return "\n".join([*lines, "", "end of trees", ""])

    def nodes_of(self, number, block):
        """The nodes of a tree: its splits first, then its leaves."""
        count = whole(block, "num_leaves", 1, trees.MAX_NODES)
        where = f"tree {number}"
        if block.get("is_linear", "0") != "0":
            raise Refused("unsupported_op", "the leaves are linear models: train with linear_tree=false", op="linear_tree")
        leaves = numbers(block, "leaf_value", float, count, where)
        if count == 1:
            return [trees.Leaf(leaves[0])]
        feature, kind = numbers(block, "split_feature", int, count - 1, where), numbers(block, "decision_type", int, count - 1, where)
        left, right = numbers(block, "left_child", int, count - 1, where), numbers(block, "right_child", int, count - 1, where)
        threshold = numbers(block, "threshold", float, count - 1, where)
        nodes = []
        for at in range(count - 1):
            if kind[at] & CATEGORICAL:
                raise Refused("unsupported_op", (
                    f"feature {self.name_of(feature[at])} is split by categories, which ONNX trees do not have: "
                    "encode it as numbers before training, such as one column for each category"), op="categorical split")
            missing = self.missing_left(feature[at], kind[at], threshold[at])
            yes, no = (child if child >= 0 else count - 1 + ~child for child in (left[at], right[at]))
            nodes.append(trees.Split(feature[at], "BRANCH_LEQ", threshold[at], yes, no, missing))
        return nodes + [trees.Leaf(value) for value in leaves]

    def missing_left(self, feature, kind, threshold):
        """Where NaN goes. A feature without missing values in training takes it for 0."""
        missing = kind >> 2 & 3
        if self.zeros.setdefault(feature, missing == ZERO) != (missing == ZERO):
            raise Refused("unsupported_op", (
                f"feature {self.name_of(feature)} takes zeros for missing values in some trees and not in others: "
                "train all trees with the same zero_as_missing"), op="zero_as_missing")
        return 0 <= threshold if missing == NONE else bool(kind & DEFAULT_LEFT)

    def name_of(self, feature):
        return repr(self.feature_names[feature]) if 0 <= feature < len(self.feature_names) else str(feature)

    def names(self):
        """What features are called. The text does not have the names of classes."""
        default = [f"Column_{n}" for n in range(self.features)]
        known = self.feature_names if len(self.feature_names) == self.features and self.feature_names != default else None
        return {"inputs": {trees.INPUT: known} if known else {}, "outputs": {}}

    def classifies(self):
        return self.objective == "binary" or self.objective in MANY

    def onnx(self):
        import numpy

        graph = trees.Graph(self.features, double=True)
        rows = graph.add("Cast", [trees.INPUT], to=graph.kind)
        share = self.scores / len(self.trees) if self.average else 1
        summed = [(target, [trees.Leaf(n.value * share) if isinstance(n, trees.Leaf) else n for n in nodes]) for target, nodes in self.trees]
        score = graph.scores(self.without_zeros(graph, rows), summed, self.scores)
        if self.objective in MANY or self.objective == "binary":
            steep = numpy.float32([self.number("sigmoid", 1.0)])
            by_itself = self.objective == "binary" or self.objective == "multiclassova"
            found = graph.add("Sigmoid", [graph.add("Mul", [score, graph.constant(steep)])]) if by_itself else graph.add("Softmax", [score], axis=1)
            if self.scores == 1:
                trees.two_classes(graph, found)
            else:
                trees.many_classes(graph, found, self.scores)
        else:
            graph.output("scores" if self.objective in RANKING else "variable", self.transformed(graph, score), [self.scores])
        return graph.model()

    def without_zeros(self, graph, rows):
        """Makes zeros missing in the features that take them for such."""
        import numpy

        if not any(self.zeros.values()):
            return rows
        columns = numpy.array([self.zeros.get(n, False) for n in range(self.features)])
        small = graph.add("LessOrEqual", [graph.add("Abs", [rows]), graph.constant(numpy.float64([ZERO_THRESHOLD]))])
        gone = graph.add("And", [small, graph.constant(columns)])
        return graph.add("Where", [gone, graph.constant(numpy.float64([math.nan])), rows])

    def transformed(self, graph, score):
        if self.objective in EXPONENT:
            return graph.add("Exp", [score])
        if self.objective == "cross_entropy":
            return graph.add("Sigmoid", [score])
        if self.objective == "cross_entropy_lambda":
            return graph.add("Softplus", [score])
        if self.objective == "regression" and "sqrt" in self.parameters:
            return graph.add("Mul", [graph.add("Abs", [score]), score])
        return score

    def number(self, name, otherwise):
        try:
            return float(self.parameters.get(name, otherwise))
        except ValueError:
            raise Refused("bad_input", f"objective {self.objective}: its {name} is {self.parameters[name]!r}: want a number") from None

    def load(self):
        import lightgbm

        try:
            booster = lightgbm.Booster(model_str=self.text)
        except lightgbm.basic.LightGBMError as e:
            raise Refused("bad_input", f"LightGBM cannot load the file: {str(e)[:300]}") from None
        if booster.num_feature() != self.features or booster.num_trees() != len(self.trees):
            raise Refused("bad_input", (
                f"LightGBM reads {booster.num_trees()} trees over {booster.num_feature()} features, "
                f"and the text has {len(self.trees)} over {self.features}"))
        return booster

    def engine(self, threads):
        import numpy

        booster = self.load()

        def predict(rows):
            if rows.dtype.kind != "f":
                rows = rows.astype(float)  # of arrays of integers LightGBM makes float32, and float64 of the same in a table
            found = numpy.asarray(booster.predict(rows, num_threads=threads))
            if self.classifies():
                return trees.classified(found)
            return {outputs[0]: found.reshape(len(rows), -1).astype(numpy.float32)}

        outputs = ["label", "probabilities"] if self.classifies() else ["scores" if self.objective in RANKING else "variable"]
        return trees.Engine(self.features, outputs, predict)


def sections(text):
    """The lines before the first tree, and those of each tree, as {key: value}."""
    head, blocks = {}, []
    at = head
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if line == "end of trees":
            return head, blocks
        key, _, value = line.partition("=")
        if key == "Tree":
            at = {}
            blocks.append(at)
        elif line:
            if key in at:
                raise Refused("bad_input", f"line {key[:40]!r} is there twice {f'in tree {len(blocks) - 1}' if blocks else 'before the trees'}")
            at[key] = value
    raise Refused("bad_input", "the file ends within its trees")


def objective_of(text):
    """ "binary sigmoid:1" is the objective and its parameters."""
    words = text.split()
    parameters = dict(word.partition(":")[::2] for word in words[1:])
    return words[0] if words else "", parameters


def whole(block, key, least, most):
    if not re.fullmatch("0|[1-9][0-9]{0,17}", block.get(key, "")):
        raise Refused("bad_input", f"{key} is {block.get(key)!r}: want a number")
    found = int(block[key])
    if not least <= found <= most:
        raise Refused("bad_input", f"{key} is {found}: want {least} to {most}")
    return found


def numbers(block, key, kind, count, where):
    words = block.get(key, "").split()
    if wrong := next((word for word in words if not WRITTEN[kind].fullmatch(word)), None):
        raise Refused("bad_input", f"{where}: {key} has {wrong[:40]!r}: want a number")
    found = [kind(word) for word in words]
    if len(found) != count:
        raise Refused("bad_input", f"{where} has {len(found)} numbers of {key}: want {count}")
    return found
