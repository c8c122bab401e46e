"""What a PMML document says, read into plain objects (dmg.org, PMML 4.0 to 4.4).

Only what both the evaluator and the converter understand gets this far: everything else is
refused by its name, so that nothing of a model is left out unseen.
"""

import math
import struct

from protocol import Refused

MODELS = ("TreeModel", "RegressionModel", "MiningModel")
VERSIONS = ("4.0", "4.1", "4.2", "4.3", "4.4")
# Parts of a model that say nothing about what it predicts.
SILENT = {
    "Extension", "MiningSchema", "Output", "ModelStats", "ModelExplanation", "ModelVerification", "LocalTransformations", "Targets",
    "Node", "RegressionTable", "Segmentation",
}
MAX_DEPTH = 512


class Element:
    """An element without its namespace."""

    def __init__(self, raw):
        self.name, self.attributes = raw.tag.rpartition("}")[2], raw.attrib
        self.children = [Element(child) for child in raw]
        self.text = raw.text or ""

    def all(self, name):
        return [c for c in self.children if c.name == name]

    def one(self, name):
        return next((c for c in self.children if c.name == name), None)

    def get(self, key, otherwise=None):
        return self.attributes.get(key, otherwise)

    def number(self, key, otherwise=None):
        value = self.attributes.get(key)
        if value is None and otherwise is not None:
            return otherwise
        try:
            return float(value)
        except (TypeError, ValueError):
            raise Refused("bad_input", f"{self.name}: {key} is {value!r}: want a number") from None


def unsupported(what, instead):
    """The protocol shows what is not supported before the message."""
    return Refused("unsupported_op", instead, op=what)


def parsed(path):
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import parse

    try:
        root = parse(path, forbid_dtd=True).getroot()
        depth(root)
        return Element(root)
    except DefusedXmlException as e:
        raise Refused("untrusted", f"the XML has a declaration: {type(e).__name__}") from None
    except (ParseError, ValueError, LookupError) as e:
        raise Refused("bad_input", f"the XML cannot be read: {e}") from None


def depth(root):
    waiting = [(root, 1)]
    while waiting:
        element, level = waiting.pop()
        if level > MAX_DEPTH:
            raise Refused("bad_input", f"the XML is nested more than {MAX_DEPTH} deep")
        waiting += [(child, level + 1) for child in element]


class Document:
    """fields are the names of the inputs in order, replaced the values that missing ones of them
    get, and classes the names of the classes; empty for a regression."""

    def __init__(self, path):
        root = parsed(path)
        version = root.get("version", "")
        if root.name != "PMML" or version[:3] not in VERSIONS:
            raise Refused("unsupported_format", f"{root.name} of version {version!r}: want PMML of version {VERSIONS[0]} to {VERSIONS[-1]}")
        header = root.one("Header")
        application = header.one("Application") if header else None
        self.application = application.get("name", "") if application else ""
        models = [c for c in root.children if c.name not in ("Header", "DataDictionary", "TransformationDictionary", "MiningBuildTask", "Extension")]
        if len(models) != 1 or models[0].name not in MODELS:
            raise unsupported(", ".join(m.name for m in models) or "no model", f"want one model of {', '.join(MODELS)}")
        self.model = models[0]
        self.kind = self.model.name
        self.data = {f.get("name"): f for f in parts(root.one("DataDictionary"), "DataField")}
        self.types = {name: f.get("dataType") for name, f in self.data.items()}
        self.aliases = self.read_aliases(root)
        self.fields, self.replaced, self.target = self.read_schema()
        self.classes = self.read_classes()
        for model in models_in(self.model):
            check_parts(model)
            check_inner(model, self)

    def read_aliases(self, root):
        """Derived fields that are another field, perhaps in another type of numbers."""
        found = {}
        for place in (root.one("TransformationDictionary"), *(e.one("LocalTransformations") for e in models_in(self.model))):
            for derived in place.children if place else []:
                reference = derived.one("FieldRef")
                plain = derived.get("dataType") in ("float", "double") and derived.get("optype") == "continuous"
                if derived.name == "Extension":
                    continue
                if derived.name != "DerivedField" or reference is None or not plain or reference.get("mapMissingTo"):
                    raise unsupported(
                        f"{derived.name} {derived.get('name')!r}",
                        "only derived fields that refer to another number are read: transform the inputs before the model")
                found[derived.get("name")] = reference.get("field")
                self.types[derived.get("name")] = derived.get("dataType")
        return found

    def resolve(self, name):
        """The field that a name leads to."""
        for _ in range(len(self.aliases) + 1):
            if name not in self.aliases:
                return name
            name = self.aliases[name]
        raise Refused("bad_input", f"derived field {name!r} refers to itself")

    def typed(self, name, number):
        """A number that a field is compared with, in the type of the field: a float has the next number
        of that type, or a value would not be equal to itself."""
        if self.types.get(name) != "float" or math.isinf(number):
            return number
        try:
            return struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            return math.copysign(math.inf, number)

    def read_schema(self):
        fields, replaced, target = [], {}, None
        for field in parts(self.model.one("MiningSchema"), "MiningField"):
            name, usage = field.get("name"), field.get("usageType", "active")
            if usage in ("target", "predicted"):
                target = name
                continue
            if usage != "active":
                continue
            data = self.data.get(name)
            if data is None or data.get("optype") != "continuous" or data.get("dataType") not in ("float", "double", "integer"):
                kind = data.get("dataType") if data else "not in the DataDictionary"
                raise unsupported(f"field {name!r}", f"it is {kind}: only numbers are read, so encode it as numbers before training")
            if any(v.get("property") != "missing" or v.get("value") != "NaN" for v in data.all("Value")) or data.one("Interval"):
                raise unsupported(f"field {name!r}", (
                    "it declares values or intervals that are valid, invalid or missing: "
                    "remove them from its DataField, and check inputs before the model"))
            if field.get("outliers", "asIs") != "asIs":
                raise unsupported(f"field {name!r}", f"outliers are {field.get('outliers')}: want asIs")
            if field.get("missingValueReplacement") is not None:
                replaced[name] = field.number("missingValueReplacement")
            fields.append(name)
        if not fields or len(set(fields)) != len(fields):
            raise Refused("bad_input", f"the model takes {len(fields)} fields, and each must be there once: want at least one active MiningField")
        return fields, replaced, target

    def read_classes(self):
        if self.model.get("functionName") == "regression":
            return []
        if self.model.get("functionName") != "classification":
            raise unsupported(f"function {self.model.get('functionName')!r}", "want regression or classification")
        data = self.data.get(self.target)
        classes = [v.get("value") for v in data.all("Value") if v.get("property", "valid") == "valid"] if data else []
        if len(classes) < 2 or len(set(classes)) != len(classes):
            raise Refused("bad_input", f"the target {self.target!r} has {len(classes)} classes in its DataField: want the values of at least two")
        return classes

    def names(self):
        from trees import INPUT

        return {"inputs": {INPUT: self.fields}, "outputs": {"probabilities": self.classes} if self.classes else {}}


def parts(element, name):
    """The children of that name, of an element that need not be there."""
    return element.all(name) if element else []


def models_in(model):
    """A model and those in its segments."""
    yield model
    for segment in parts(model.one("Segmentation"), "Segment"):
        for inner in segment.children:
            if inner.name in MODELS:
                yield from models_in(inner)


def segments_of(model):
    """How the segments of a mining model work together, and (weight, model) of each."""
    segmentation = model.one("Segmentation")
    if segmentation is None:
        raise Refused("bad_input", "a MiningModel without a Segmentation")
    if segmentation.get("missingPredictionTreatment", "continue") == "skipSegment":
        raise unsupported("missingPredictionTreatment skipSegment", "want continue or returnMissing")
    found = []
    for segment in segmentation.all("Segment"):
        models = [c for c in segment.children if c.name in MODELS]
        others = [c.name for c in segment.children if c.name not in (*MODELS, "True", "Extension")]
        if segment.one("True") is None or len(models) != 1 or others:
            raise unsupported(", ".join(others) or "Segment", f"each segment has <True/> and one model of {', '.join(MODELS)}")
        found.append((segment.number("weight", 1.0), models[0]))
    if not found:
        raise Refused("bad_input", "a Segmentation without a Segment")
    return segmentation.get("multipleModelMethod"), found


def rescale_of(model):
    """What a prediction of a regression is multiplied by, and what is added."""
    factor, constant = 1.0, 0.0
    for target in parts(model.one("Targets"), "Target"):
        values = [c for c in target.children if c.name != "Extension"]
        if values or set(target.attributes) - {"field", "rescaleFactor", "rescaleConstant", "optype"} or model.get("functionName") != "regression":
            raise unsupported("Target", "only rescaleFactor and rescaleConstant of a regression are read")
        factor, constant = target.number("rescaleFactor", 1.0), target.number("rescaleConstant", 0.0)
    return factor, constant


def check_inner(model, outer):
    """Refuses inputs of a segment that are treated otherwise than those of the whole model."""
    for field in parts(model.one("MiningSchema"), "MiningField"):
        name = field.get("name")
        if field.get("missingValueReplacement") is not None and field.number("missingValueReplacement") != outer.replaced.get(name):
            raise unsupported(f"missingValueReplacement of {name!r} in a segment", "want it in the whole model")
        if field.get("outliers", "asIs") != "asIs":
            raise unsupported(f"field {name!r}", f"outliers are {field.get('outliers')}: want asIs")


def check_parts(model):
    """Refuses what is neither read nor silent."""
    for child in model.children:
        if child.name not in SILENT:
            raise unsupported(f"{child.name} in {model.name}", "it is not read")


def output_name(model):
    """What a model of a chain calls its prediction for the next."""
    for field in parts(model.one("Output"), "OutputField"):
        if field.get("feature", "predictedValue") == "predictedValue" and not [c for c in field.children if c.name != "Extension"]:
            return field.get("name")
    return None
