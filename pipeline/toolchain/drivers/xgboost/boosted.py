"""A model of XGBoost: what its file says, what it is as ONNX, and what XGBoost predicts of it.

The file is loaded by XGBoost and written by it again, so that files of older versions are read
by the rules of this one.
"""

import json
import re

import trees
from protocol import Refused

# What becomes of the sum of all trees, by objective (xgboost, src/objective).
IDENTITY = (
    "reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror",
    "reg:expectileerror", "binary:logitraw",
)
SIGMOID, EXPONENT = ("reg:logistic",), ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
RANKING = ("rank:pairwise", "rank:ndcg", "rank:map")
TWO, MANY, HINGE = "binary:logistic", ("multi:softprob", "multi:softmax"), "binary:hinge"


class Booster:
    def __init__(self, path, threads=1):
        import xgboost

        with open(path, "rb") as f:
            raw = bytearray(f.read())
        self.xgboost, self.threads = xgboost, threads
        check_version(raw, xgboost.__version__)
        try:
            self.booster = xgboost.Booster({"nthread": threads})
            self.booster.load_model(raw)
            saved = json.loads(self.booster.save_raw("json"))
        except (xgboost.core.XGBoostError, ValueError, RecursionError) as e:
            raise Refused("bad_input", f"XGBoost cannot load the file: {first_line(e)}") from None
        self.learner = saved["learner"]
        self.objective = self.learner["objective"]["name"]
        self.features = int(self.learner["learner_model_param"]["num_feature"])
        if self.features < 1:
            raise Refused("bad_input", "the model has no features: it was not trained")
        self.trees = self.read_trees()
        # XGBoost adds a tree to the score that the file says, and there is room for so many.
        scores = (int(self.learner["learner_model_param"].get(key, 1)) for key in ("num_class", "num_target"))
        trees.check(self.trees, max(1, *scores), self.features)

    def read_trees(self):
        booster = self.learner["gradient_booster"]
        if booster["name"] != "gbtree":
            raise Refused("unsupported_op", (
                f"the booster is {booster['name']}, which has no trees: "
                "train with booster=gbtree or dart, or a linear model with scikit-learn"), op=booster["name"])
        model = booster["model"]
        weights = model.get("weight_drop")  # of a dart booster
        self.check_rounds()
        found = []
        for number, (tree, target) in enumerate(zip(model["trees"], model["tree_info"])):
            found.append((target, nodes_of(tree, number, self.name_of, weights[number] if weights else 1)))
        return found

    def check_rounds(self):
        """Refuses a model with more trees than its best iteration: XGBClassifier predicts without the
        others, and Booster with them."""
        best = (self.learner.get("attributes") or {}).get("best_iteration")
        rounds = self.booster.num_boosted_rounds()
        if best is not None and int(best) + 1 < rounds:
            raise Refused("unsupported_format", (
                f"the model was stopped early: its best iteration is {best}, and it has {rounds}, "
                f"of which the classes of scikit-learn use {int(best) + 1} and Booster all: "
                "save what you predict with: booster[: booster.best_iteration + 1].save_model(FILE)"))

    def name_of(self, feature):
        names = self.booster.feature_names
        return repr(names[feature]) if names and feature < len(names) else str(feature)

    def names(self):
        """What features and classes are called."""
        found = {"inputs": {}, "outputs": {}}
        if self.booster.feature_names:
            found["inputs"][trees.INPUT] = [str(name) for name in self.booster.feature_names]
        if self.objective == TWO or self.objective in MANY:
            found["outputs"]["probabilities"] = [str(n) for n in range(max(self.classes(), 2))]
        return found

    def classes(self):
        return int(self.learner["learner_model_param"]["num_class"])

    def base(self):
        """What the scores are without a tree, as XGBoost itself says of such a model."""
        import numpy

        bare = json.loads(self.booster.save_raw("json"))
        # Else a model without trees counts as one whose base is still to be estimated.
        bare["learner"]["learner_model_param"]["boost_from_average"] = "0"
        model = bare["learner"]["gradient_booster"]["model"]
        model.pop("weight_drop", None)
        model.update(trees=[], tree_info=[], iteration_indptr=[0])
        model["gbtree_model_param"]["num_trees"] = "0"
        empty = self.xgboost.Booster({"nthread": 1})
        empty.load_model(bytearray(json.dumps(bare).encode()))
        rows = self.matrix(numpy.zeros((1, self.features), numpy.float32))
        margin = empty.predict(rows, output_margin=True, validate_features=False)
        return [float(v) for v in numpy.asarray(margin).reshape(-1)]

    def matrix(self, rows):
        return self.xgboost.DMatrix(rows, nthread=self.threads)

    def onnx(self):
        import numpy

        graph, base = trees.Graph(self.features), self.base()
        # XGBoost starts from the base and adds tree by tree. In this order ONNX Runtime rounds as it does.
        first = [(target, [trees.Leaf(value)]) for target, value in enumerate(base)]
        margin = graph.scores(trees.INPUT, first + self.trees, len(base))
        if self.objective in MANY:
            trees.many_classes(graph, graph.add("Softmax", [margin], axis=1), len(base))
        elif self.objective == TWO:
            trees.two_classes(graph, graph.add("Sigmoid", [margin]))
        elif self.objective == HINGE:
            above = graph.add("Greater", [margin, graph.constant(numpy.float32([0]))])
            flat = graph.add("Squeeze", [above, graph.constant(numpy.int64([1]))])
            graph.output("label", graph.add("Cast", [flat], to=7), [], whole=True)
        elif self.objective in RANKING:
            graph.output("scores", margin, [len(base)])
        else:
            graph.output("variable", self.transformed(graph, margin, len(base)), [len(base)])
        return graph.model()

    def transformed(self, graph, margin, targets):
        import numpy

        if self.objective in SIGMOID:
            return graph.add("Sigmoid", [margin])
        if self.objective in EXPONENT:
            return graph.add("Exp", [margin])
        if self.objective == "reg:quantileerror" and targets > 1:  # which XGBoost sorts, so that they do not cross
            count = graph.constant(numpy.int64([targets]))
            return graph.add("TopK", [margin, count], axis=1, largest=0, sorted=1)
        if self.objective in IDENTITY:
            return margin
        known = ", ".join((*IDENTITY, *SIGMOID, *EXPONENT, *RANKING, TWO, *MANY, HINGE))
        raise Refused("unsupported_op", f"this objective has no converter: want one of {known}", op=self.objective)

    def engine(self):
        if self.objective == "multi:softmax":  # whose predictions are classes alone
            self.booster.set_param({"objective": "multi:softprob"})
        return trees.Engine(self.features, self.outputs(), self.predict)

    def outputs(self):
        if self.objective == TWO or self.objective in MANY:
            return ["label", "probabilities"]
        if self.objective == HINGE:
            return ["label"]
        return ["scores" if self.objective in RANKING else "variable"]

    def predict(self, rows):
        import numpy

        found = numpy.asarray(self.booster.predict(self.matrix(rows), validate_features=False), numpy.float32)
        if self.objective == TWO or self.objective in MANY:
            return trees.classified(found)
        if self.objective == HINGE:
            return {"label": found.reshape(-1).astype(numpy.int64)}
        return {self.outputs()[0]: found.reshape(len(rows), -1)}


# Where a file says the version that wrote it.
WRITTEN = re.compile(rb'"version"\s*:\s*\[\s*(\d+)\s*,\s*(\d+)|version\[#L.{7}\x03i(.)i(.)i', re.DOTALL)


def check_version(raw, ours):
    """Refuses a file of a newer XGBoost: this one would read it without a word, and not all of it."""
    for text in (raw[:256], raw[-256:]):
        if said := WRITTEN.search(text):
            written = tuple(int(n) if said[1] else n[0] for n in said.groups() if n is not None)
            if written > tuple(int(n) for n in ours.split(".")[:2]):
                newer = ".".join(map(str, written))
                raise Refused("bad_input", f"the model was saved by XGBoost {newer}, and this is {ours}: save it with this version")


def nodes_of(tree, number, name_of, weight):
    """The nodes of one tree (xgboost, doc/model.schema). A node without children is a leaf, whose
    value is where others have their threshold."""
    import numpy

    left, right = tree["left_children"], tree["right_children"]
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1 or len(tree["split_conditions"]) != len(left):
        raise Refused("unsupported_op", "the leaves are vectors: train with multi_strategy=one_output_per_tree", op="multi_output_tree")
    lengths = {len(tree[key]) for key in ("left_children", "right_children", "split_indices", "split_conditions", "default_left")}
    if len(lengths) != 1:
        raise Refused("bad_input", f"tree {number} has lists of {sorted(lengths)} nodes: want one length")
    kinds = tree.get("split_type") or [0] * len(left)
    nodes = []
    for at, child in enumerate(left):
        if child == -1:
            nodes.append(trees.Leaf(float(tree["split_conditions"][at]) * weight))
            continue
        feature = tree["split_indices"][at]
        if kinds[at] != 0:
            raise Refused("unsupported_op", (
                f"feature {name_of(feature)} is split by categories, which ONNX trees do not have: "
                "encode it as numbers before training, such as one column for each category"), op="categorical split")
        threshold = float(numpy.float32(tree["split_conditions"][at]))  # what the text is the shortest one for
        nodes.append(trees.Split(feature, "BRANCH_LT", threshold, child, right[at], bool(tree["default_left"][at])))
    return nodes


def first_line(e):
    """Of XGBoost's errors the sentence; a trace of its C++ follows."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    text = next((line for line in lines if not line.startswith("Stack trace")), type(e).__name__)
    return text.rpartition("cc:")[2][:300] if "cc:" in text else text[:300]
