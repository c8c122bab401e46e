"""A model of PMML by the rules of the standard, row by row, in double precision.

It follows the document itself, not what graph.py makes of it, so that the two check each
other. Its own check are the records that a document can bring along, ModelVerification.
"""

import math

from document import output_name, parts, rescale_of, segments_of, unsupported
from protocol import Refused

MISSING = None  # a value, and the result of comparing one
MAX_RECORDS = 100_000
COMPARED = {
    "equal": lambda a, b: a == b, "notEqual": lambda a, b: a != b,
    "lessThan": lambda a, b: a < b, "lessOrEqual": lambda a, b: a <= b,
    "greaterThan": lambda a, b: a > b, "greaterOrEqual": lambda a, b: a >= b,
}


class Evaluator:
    def __init__(self, document):
        self.document = document

    def predict(self, rows):
        import numpy

        classes, found = self.document.classes, []
        for row in rows.astype(float).tolist():
            found.append(self.row(row))
        if not classes:
            return {"variable": numpy.array([[math.nan if v is MISSING else v] for v in found], numpy.float32)}
        empty = [math.nan] * len(classes)
        probabilities = numpy.array([empty if p is MISSING else [p[c] for c in classes] for p in found])
        label = numpy.array([0 if p is MISSING else best(p, classes) for p in found], numpy.int64)
        return {"label": label, "probabilities": probabilities.astype(numpy.float32)}

    def row(self, values):
        """The prediction for the values of the fields in order: a number, or the probability of each class."""
        named = {}
        for name, value in zip(self.document.fields, values):
            named[name] = self.document.replaced.get(name, MISSING) if math.isnan(value) else self.document.typed(name, value)
        return self.model(self.document.model, named)

    def model(self, model, values):
        found = {"TreeModel": self.tree, "RegressionModel": self.regression, "MiningModel": self.mining}[model.name](model, values)
        if model.get("functionName") == "regression" and found is not MISSING:
            factor, constant = rescale_of(model)
            return found * factor + constant
        return found

    def value(self, name, values):
        return values.get(self.document.resolve(name), MISSING)

    # Trees.

    def tree(self, model, values):
        strategy = model.get("missingValueStrategy", "none")
        node = model.one("Node")
        if node is None or self.holds(node, values) is not True:
            return MISSING
        while inner := node.all("Node"):
            chosen, unknown = None, False
            for child in inner:
                holds = self.holds(child, values)
                if holds is MISSING and strategy != "none":
                    unknown = True
                    break
                if holds:
                    chosen = child
                    break
            if unknown:
                if strategy == "defaultChild":
                    chosen = next((c for c in inner if c.get("id") == node.get("defaultChild")), None)
                elif strategy == "lastPrediction":
                    return self.score(model, node)
                elif strategy != "nullPrediction":
                    raise unsupported(f"missingValueStrategy {strategy}", "want none, defaultChild, lastPrediction or nullPrediction")
                if chosen is None:
                    return MISSING
            elif chosen is None:
                return self.score(model, node) if model.get("noTrueChildStrategy") == "returnLastPrediction" else MISSING
            node = chosen
        return self.score(model, node)

    def holds(self, node, values):
        predicates = [c for c in node.children if c.name in ("True", "False") or c.name.endswith("Predicate")]
        if len(predicates) != 1:
            raise Refused("bad_input", f"a Node with {len(predicates)} predicates: want one")
        p = predicates[0]
        if p.name != "SimplePredicate":
            if p.name not in ("True", "False"):
                raise unsupported(p.name, "want SimplePredicate")
            return p.name == "True"
        value, operator = self.value(p.get("field"), values), p.get("operator")
        if operator in ("isMissing", "isNotMissing"):
            return (value is MISSING) == (operator == "isMissing")
        if value is MISSING:
            return MISSING
        if operator not in COMPARED:
            raise unsupported(f"operator {operator}", f"want one of {', '.join(COMPARED)}")
        return COMPARED[operator](value, self.document.typed(p.get("field"), p.number("value")))

    def score(self, model, node):
        return score_of(model, node, self.document.classes)

    def vote(self, model, values):
        """1 for the likeliest class, which trees say by their score."""
        found = self.model(model, values)
        if found is MISSING:
            return MISSING
        chosen = best(found, self.document.classes)
        return {c: float(n == chosen) for n, c in enumerate(self.document.classes)}

    # Regressions.

    def regression(self, model, values):
        results = {}
        for table in model.all("RegressionTable"):
            total = table.number("intercept")
            for predictor in table.children:
                if predictor.name == "Extension":
                    continue
                if predictor.name != "NumericPredictor" or predictor.number("exponent", 1.0) != 1:
                    raise unsupported(f"{predictor.name} of a regression", "want NumericPredictor with exponent 1")
                value = self.value(predictor.get("name"), values)
                if value is MISSING:
                    return MISSING
                total += value * predictor.number("coefficient")
            results[table.get("targetCategory")] = total
        return self.normalized(model, results)

    def normalized(self, model, results):
        method = model.get("normalizationMethod", "none")
        if model.get("functionName") == "regression":
            (y,) = results.values() if len(results) == 1 else [math.nan]
            if method == "exp":
                return math.exp(y) if y < 709 else math.inf
            return y if method == "none" else logistic(y)
        names = list(results)
        if method == "softmax":
            top = max(results.values())
            shares = [math.exp(results[n] - top) for n in names]
            return {n: s / sum(shares) for n, s in zip(names, shares)}
        first = logistic(results[names[0]])
        return {names[0]: first, names[1]: 1 - first}

    # Segments.

    def mining(self, model, values):
        method, segments = segments_of(model)
        if method == "modelChain":
            values = dict(values)
            for _, inner in segments:
                found = self.model(inner, values)
                values[output_name(inner)] = found
            return found
        voting = method in ("majorityVote", "weightedMajorityVote")
        found = [(weight, self.vote(inner, values) if voting else self.model(inner, values)) for weight, inner in segments]
        if any(f is MISSING for _, f in found):
            return MISSING
        if method in ("average", "majorityVote"):
            found = [(1.0, f) for _, f in found]
        total = 1.0 if method == "sum" else sum(weight for weight, _ in found)
        if not self.document.classes or model.get("functionName") == "regression":
            return sum((1.0 if method == "sum" else weight) * f for weight, f in found) / total
        return {c: sum(weight * p[c] for weight, p in found) / total for c in self.document.classes}


def score_of(model, node, classes):
    """What a node predicts; MISSING where it says nothing."""
    if model.get("functionName") == "regression":
        return node.number("score") if node.get("score") is not None else MISSING
    if node.get("score") is None:
        return MISSING
    shares = {}
    for share in node.all("ScoreDistribution"):
        shares[share.get("value")] = share.number("recordCount" if share.get("probability") is None else "probability")
    if not shares:  # a vote; a single tree without shares is refused by graph.py
        return {c: float(c == node.get("score")) for c in classes}
    total = sum(shares.values())
    if set(shares) - set(classes) or not total > 0:
        raise Refused("bad_input", f"a ScoreDistribution of {sorted(map(str, shares))}: want some of the classes {classes}, and more than 0 records")
    return {c: shares.get(c, 0.0) / total for c in classes}


def best(probabilities, classes):
    values = [probabilities[c] for c in classes]
    return values.index(max(values))


def logistic(y):
    return 1 / (1 + math.exp(-y)) if y >= 0 else math.exp(y) / (1 + math.exp(y))


def check_records(document):
    """Compares the evaluator with the records that the document has; gives how many there were."""
    verification = document.model.one("ModelVerification")
    if verification is None:
        return 0
    fields = {f.get("column", f.get("field")): f for f in verification.one("VerificationFields").children if f.name == "VerificationField"}
    probability = {f.get("name"): f.get("value") for f in parts(document.model.one("Output"), "OutputField") if f.get("feature") == "probability"}
    rows = verification.one("InlineTable").all("row")
    if len(rows) > MAX_RECORDS:
        raise Refused("limit", f"the document has {len(rows)} records: at most {MAX_RECORDS} are compared")
    evaluator = Evaluator(document)
    for number, row in enumerate(rows):
        cells = {fields[c.name.rpartition(":")[2]].get("field"): c.text.strip() for c in row.children if c.name in fields}
        found = evaluator.row([document.typed(name, number_of(cells.get(name), name)) for name in document.fields])
        for column, field in fields.items():
            name = field.get("field")
            if name in cells and name not in document.fields:
                check_record(number, name, cells[name], predicted(document, found, name, probability), field)
    return len(rows)


def number_of(text, name):
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise Refused("bad_input", f"ModelVerification: {name} is {text!r}: want a number") from None


def predicted(document, found, name, probability):
    if found is MISSING:
        return MISSING
    if name in probability and document.classes:
        return found.get(probability[name], MISSING)
    if name != document.target and name != output_name(document.model):
        return MISSING
    return document.classes[best(found, document.classes)] if document.classes else found


def check_record(number, name, wanted, found, field):
    """Refuses a document whose own records say otherwise."""
    if found is MISSING:
        return  # an output that is not computed here
    same = wanted == found
    if not same and not isinstance(found, str):
        expected, zero = number_of(wanted, name), field.number("zeroThreshold", 1e-16)
        same = abs(expected) <= zero and abs(found) <= zero or abs(found - expected) <= field.number("precision", 1e-6) * abs(expected)
    if not same:
        raise Refused("bad_input", (
            f"record {number + 1} of ModelVerification says that {name} is {wanted}, and the model computes {found}: "
            "the document is damaged, or has something that is not read as its author meant it"))
