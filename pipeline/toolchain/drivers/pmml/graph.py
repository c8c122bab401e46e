"""A model of PMML as ONNX: trees as ensembles in double precision, regressions as sums."""

import math

import trees
from document import output_name, rescale_of, segments_of, unsupported
from evaluate import MISSING, score_of
from protocol import Refused

MODES = {"lessThan": "BRANCH_LT", "lessOrEqual": "BRANCH_LEQ", "greaterThan": "BRANCH_GT", "greaterOrEqual": "BRANCH_GTE", "equal": "BRANCH_EQ"}
COMPLEMENT = {
    "lessThan": "greaterOrEqual", "lessOrEqual": "greaterThan", "equal": "notEqual",
    "greaterOrEqual": "lessThan", "greaterThan": "lessOrEqual", "notEqual": "equal",
}
STRATEGIES = ("none", "defaultChild", "lastPrediction", "nullPrediction")
METHODS = {
    "regression": ("sum", "average", "weightedAverage", "modelChain"),
    "classification": ("average", "weightedAverage", "majorityVote", "weightedMajorityVote", "modelChain"),
}


def convert(document):
    import numpy

    graph = trees.Graph(len(document.fields), double=True)
    rows = graph.add("Cast", [trees.INPUT], to=graph.kind)
    if document.replaced:
        with_what = numpy.array([document.replaced.get(name, math.nan) for name in document.fields])
        rows = graph.add("Where", [graph.add("IsNaN", [rows]), graph.constant(with_what), rows])
    found = Converter(document, graph, rows).model(document.model, {})
    if document.classes:
        trees.many_classes(graph, graph.add("Cast", [found], to=1), len(document.classes))
    else:
        graph.output("variable", graph.add("Cast", [found], to=1), [1])
    return graph.model()


class Converter:
    """model gives the result of a model, double [batch, 1] or [batch, classes]. known are results of
    models before it in a chain, by name."""

    def __init__(self, document, graph, rows):
        self.document, self.graph, self.rows = document, graph, rows
        self.places = {name: at for at, name in enumerate(document.fields)}

    def model(self, model, known):
        if model.get("functionName") not in METHODS:
            raise unsupported(f"function {model.get('functionName')!r}", "want regression or classification")
        found = {"TreeModel": self.tree, "RegressionModel": self.regression, "MiningModel": self.mining}[model.name](model, known)
        factor, constant = rescale_of(model)
        return self.scaled(found, factor, constant)

    def scaled(self, found, factor, constant):
        import numpy

        if factor != 1:
            found = self.graph.add("Mul", [found, self.graph.constant(numpy.float64([factor]))])
        if constant != 0:
            found = self.graph.add("Add", [found, self.graph.constant(numpy.float64([constant]))])
        return found

    def tree(self, model, _known):
        if model.get("functionName") == "classification":
            check_scores(model, self.document.classes)
        return self.ensemble([(1.0, model)])

    def ensemble(self, weighted):
        """The sum of trees, each multiplied by its weight."""
        made = [(0, Tree(self, model, weight).nodes) for weight, model in weighted]
        width = len(self.document.classes) if weighted[0][1].get("functionName") == "classification" else 1
        return self.graph.add("Cast", [self.graph.scores(self.rows, made, width)], to=self.graph.kind)

    def column(self, name, known):
        import numpy

        if name in known:
            return known[name]
        return self.graph.add("Gather", [self.rows, self.graph.constant(numpy.int64([self.place(name)]))], axis=1)

    def place(self, name):
        field = self.document.resolve(name)
        if field not in self.places:
            raise Refused("bad_input", f"field {name!r} is no active MiningField of the model")
        return self.places[field]

    def regression(self, model, known):
        import numpy

        tables, results = model.all("RegressionTable"), []
        for table in tables:
            total = self.graph.constant(numpy.float64([[table.number("intercept")]]))
            for predictor in table.children:
                if predictor.name == "Extension":
                    continue
                if predictor.name != "NumericPredictor" or predictor.number("exponent", 1.0) != 1:
                    raise unsupported(
                        f"{predictor.name} of a regression",
                        "want NumericPredictor with exponent 1: encode categories and products as numbers before the model")
                coefficient = self.graph.constant(numpy.float64([predictor.number("coefficient")]))
                scaled = self.graph.add("Mul", [self.column(predictor.get("name"), known), coefficient])
                total = self.graph.add("Add", [total, scaled])
            results.append(total if table.all("NumericPredictor") else self.for_each_row(total))
        return self.normalized(model, tables, results)

    def for_each_row(self, constant):
        """A constant as a column, for as many rows as there are."""
        import numpy

        first = self.graph.add("Gather", [self.rows, self.graph.constant(numpy.int64([0]))], axis=1)
        known = self.graph.add("Cast", [self.graph.add("Equal", [first, first])], to=self.graph.kind)
        return self.graph.add("Add", [self.graph.add("Mul", [known, self.graph.constant(numpy.float64([0]))]), constant])

    def normalized(self, model, tables, results):
        import numpy

        method, add = model.get("normalizationMethod", "none"), self.graph.add
        if model.get("functionName") == "regression":
            operators = {"none": None, "exp": "Exp", "logit": "Sigmoid", "softmax": "Sigmoid"}
            if len(results) != 1 or method not in operators:
                raise unsupported(f"a regression of {len(results)} tables, normalized by {method}", "want one table, and none, exp or logit")
            return add(operators[method], results) if operators[method] else results[0]
        names = [t.get("targetCategory") for t in tables]
        if sorted(map(str, names)) != sorted(self.document.classes) or method not in ("softmax", "logit") or method == "logit" and len(names) != 2:
            raise unsupported(
                f"a classification of {len(names)} tables, normalized by {method}",
                "want a table for each class and softmax, or two and logit")
        if method == "softmax":
            shares = add("Softmax", [add("Concat", results, axis=1)], axis=1)
        else:
            first = add("Sigmoid", [results[0]])
            shares = add("Concat", [first, add("Sub", [self.graph.constant(numpy.float64([1])), first])], axis=1)
        order = [names.index(c) for c in self.document.classes]
        return shares if order == sorted(order) else add("Gather", [shares, self.graph.constant(numpy.int64(order))], axis=1)

    def mining(self, model, known):
        method, segments = segments_of(model)
        if method not in METHODS[model.get("functionName")]:
            raise unsupported(f"multipleModelMethod {method}", f"want one of {', '.join(METHODS[model.get('functionName')])}")
        if method == "modelChain":
            known = dict(known)
            for at, (_, inner) in enumerate(segments):
                found, name = self.model(inner, known), output_name(inner)
                if at < len(segments) - 1 and (name is None or inner.get("functionName") != "regression"):
                    raise unsupported("a model of a chain", "each but the last is a regression with an OutputField for its predictedValue")
                known[name] = found
            return found
        function = model.get("functionName")
        others = [m for _, m in segments if m.name != "TreeModel" or rescale_of(m) != (1.0, 0.0) or m.get("functionName") != function]
        if others:
            raise unsupported(f"{others[0].name} in a segment", f"{method} is of trees with the function of the whole model")
        if model.get("functionName") == "classification":
            for _, inner in segments:
                check_scores(inner, self.document.classes, shares="ajority" not in method)
        weights = [1.0 if method in ("sum", "average", "majorityVote") else weight for weight, _ in segments]
        total = 1.0 if method == "sum" else sum(weights)
        return self.ensemble([(w / total, inner) for w, (_, inner) in zip(weights, segments)])


class Tree:
    """The nodes of a TreeModel for trees.Graph."""

    def __init__(self, converter, model, weight):
        self.converter, self.model, self.weight, self.nodes = converter, model, weight, []
        self.strategy = model.get("missingValueStrategy", "none")
        self.vote = vote(converter, model)
        if self.strategy not in STRATEGIES or model.number("missingValuePenalty", 1.0) != 1:
            raise unsupported(f"missingValueStrategy {self.strategy}", f"want one of {', '.join(STRATEGIES)}, without a penalty")
        root = model.one("Node")
        if root is None or root.one("True") is None:
            raise unsupported("a tree whose root has a predicate", "want <True/>")
        self.node(root)

    def add(self, node):
        self.nodes.append(node)
        return len(self.nodes) - 1

    def leaf(self, node):
        """A leaf with what a node predicts; NaN for no prediction."""
        score = MISSING if node is None else score_of(self.model, node, self.converter.document.classes)
        if self.model.get("functionName") == "regression":
            return self.add(trees.Leaf(math.nan if score is MISSING else score * self.weight))
        classes = self.converter.document.classes
        if score is not MISSING and self.vote:
            score = {c: float(c == node.get("score")) for c in classes}
        return self.add(trees.Leaf([math.nan if score is MISSING else score[c] * self.weight for c in classes]))

    def node(self, node):
        children = node.all("Node")
        return self.chain(node, children, 0) if children else self.leaf(node)

    def chain(self, node, children, at):
        """The first child from at on whose predicate holds."""
        if at == len(children):
            return self.leaf(node if self.model.get("noTrueChildStrategy") == "returnLastPrediction" else None)
        child = children[at]
        predicate = predicate_of(child)
        if predicate.name == "True":
            return self.node(child)
        if predicate.name == "False":
            return self.chain(node, children, at + 1)
        place, operator = self.converter.place(predicate.get("field")), predicate.get("operator")
        if operator in ("isMissing", "isNotMissing"):
            here = self.present(place)
            for side, follow in (("left", operator == "isNotMissing"), ("right", operator == "isMissing")):
                setattr(self.nodes[here], side, self.node(child) if follow else self.chain(node, children, at + 1))
            return here
        return self.compared(node, children, at, place, operator, self.converter.document.typed(predicate.get("field"), predicate.number("value")))

    def present(self, place):
        """A split that goes left unless the field is missing."""
        return self.add(trees.Split(place, "BRANCH_LEQ", math.inf, 0, 0, False))

    def compared(self, node, children, at, place, operator, value):
        swapped = operator == "notEqual"
        if operator not in COMPLEMENT or swapped and self.strategy == "none":
            raise unsupported(f"operator {operator}", f"want one of {', '.join(MODES)}")
        guard, default = None, self.strategy == "defaultChild"
        if self.converter.document.fields[place] in self.converter.document.replaced:
            default = False  # it is never missing
        elif self.strategy in ("lastPrediction", "nullPrediction") or default and node.get("defaultChild") is None:
            guard, default = self.present(place), False
            self.nodes[guard].right = self.leaf(node if self.strategy == "lastPrediction" else None)
        here = self.add(trees.Split(place, MODES["equal" if swapped else operator], value, 0, 0, False))
        if guard is not None:
            self.nodes[guard].left = here
        # With a strategy for missing values, a child that is the opposite needs no test of its own.
        skip = self.strategy != "none" and at + 1 < len(children) and opposite(predicate_of(children[at]), predicate_of(children[at + 1]))
        if default:
            self.default(node, children, at, self.nodes[here], skip)
        yes = self.node(children[at])
        no = self.node(children[at + 1]) if skip else self.chain(node, children, at + 1)
        split = self.nodes[here]
        split.left, split.right = (no, yes) if swapped else (yes, no)
        if swapped and default:
            split.missing_left = not split.missing_left
        return here if guard is None else guard

    def default(self, node, children, at, split, skip):
        """Where a missing value goes: to the child itself, or to the only other one."""
        name = node.get("defaultChild")
        rest = children[at + 1 : at + 2] if skip or at + 1 < len(children) and predicate_of(children[at + 1]).name == "True" else []
        if name is not None and children[at].get("id") == name:
            split.missing_left = True
        elif not rest or rest[0].get("id") != name:
            raise unsupported(f"defaultChild {name!r}", "want one of two children, of which the second holds where the first does not")


def predicate_of(node):
    found = [c for c in node.children if c.name in ("True", "False") or c.name.endswith("Predicate")]
    if len(found) != 1:
        raise Refused("bad_input", f"a Node with {len(found)} predicates: want one")
    if found[0].name not in ("True", "False", "SimplePredicate"):
        raise unsupported(found[0].name, "want SimplePredicate: a tree that splits by one number at a time")
    return found[0]


def opposite(one, other):
    if other.name != "SimplePredicate" or other.get("field") != one.get("field"):
        return False
    return other.get("operator") == COMPLEMENT.get(one.get("operator")) and other.number("value", math.nan) == one.number("value", math.nan)


def vote(converter, model):
    """Whether a tree is one of those that vote by their scores, not by their shares."""
    for outer in models_with_segments(converter.document.model):
        method, segments = segments_of(outer)
        if any(inner is model for _, inner in segments):
            return method in ("majorityVote", "weightedMajorityVote")
    return False


def models_with_segments(model):
    if model.name == "MiningModel":
        yield model
        for _, inner in segments_of(model)[1]:
            yield from models_with_segments(inner)


def check_scores(model, classes, shares=True):
    """Refuses a tree without the shares of classes, if they are needed, and one whose score is not its first
    likeliest class."""
    waiting = [model.one("Node")]
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        inner = node.all("Node")
        waiting += inner
        if node.get("score") is None or inner and not node.all("ScoreDistribution"):
            continue
        if shares and not node.all("ScoreDistribution"):
            raise unsupported("a tree without ScoreDistribution", "it has no probabilities: write them when the model is saved")
        likely = score_of(model, node, classes)
        if max(classes, key=lambda c: likely[c]) != node.get("score"):
            raise unsupported(f"a score {node.get('score')!r} that is not the first of the likeliest classes", "want the class with the most records")
