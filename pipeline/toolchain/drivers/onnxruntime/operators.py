"""Which operators of a model ONNX's reference evaluator computes.

It has one implementation of most operators, for the newest version. Where an older version
means something else, the evaluator would use the wrong definition.
"""

import importlib

# What ONNX leaves to chance, beside Dropout in training.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
# The first versions that mean what the evaluator computes, where attributes do not tell. Before
# version 11, Resize had no coordinate transformation; before 21, the scale of
# GroupNormalization was one of each group.
SINCE = {"Resize": 11, "Upsample": 99, "Scan": 9, "GroupNormalization": 21}
# Operators of older() and the versions before which a graph needs them. Softmax and its like
# took all axes from axis on for one; of DequantizeLinear the evaluator has only later versions,
# which mean the same for what there was.
OLDER = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "DequantizeLinear": 19}
MODULES = {"": "", "ai.onnx.ml": ".aionnxml", "ai.onnx.preview": ".aionnx_preview", "ai.onnx.preview.training": ".aionnx_preview_training"}


def normalize(model):
    """Calls the domain of ONNX by its shorter name everywhere."""
    for owner in (model, *model.functions):
        for opset in owner.opset_import:
            opset.domain = short(opset.domain)
    for nodes, _, _ in scopes(model):
        for node in nodes:
            node.domain = short(node.domain)


def short(domain):
    return "" if domain == "ai.onnx" else domain


def scopes(model):
    """The nodes of the graph and of each function, those of subgraphs included, with the
    versions of their domains and whether they are of a function."""
    for owner, nodes in ((model, model.graph.node), *((f, f.node) for f in model.functions)):
        yield list(inner(nodes)), {o.domain: o.version for o in owner.opset_import}, owner is not model


def inner(nodes):
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from inner(graph.node)


def missing(model):
    """The operators that the evaluator lacks, as DOMAIN::NAME, with the version where only that
    is missing."""
    functions = {(f.domain, f.name) for f in model.functions}
    constants = {i.name: i for i in model.graph.initializer}
    found = set()
    for nodes, versions, function in scopes(model):
        for node in nodes:
            name = f"{node.domain or 'ai.onnx'}::{node.op_type}"
            if (node.domain, node.op_type) in functions and node.domain != "":
                continue
            version = versions.get(node.domain)
            if not function and node.domain == "" and (version or 0) < OLDER.get(node.op_type, 0):
                continue  # one of older(), which functions do not get
            if node.domain == "" and chance(node, constants) or not implemented(node, version):
                found.add(name)
            elif node.domain == "" and not means_the_same(node, version):
                found.add(f"{name} of version {version}")
    return sorted(found)


def chance(node, constants):
    """Whether ONNX leaves a result to chance. Dropout does in training, which an input asks for."""
    if node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]:
        return node.op_type in RANDOM
    import onnx

    training = constants.get(node.input[2])
    return training is None or bool(onnx.numpy_helper.to_array(training).any())


def implemented(node, version):
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import RuntimeContextError

    if node.domain not in MODULES or version is None:
        return False
    ops = importlib.import_module("onnx.reference.ops" + MODULES[node.domain])
    more = {"evaluator_cls": ReferenceEvaluator} if node.domain == "" else {}
    try:
        ops.load_op(node.domain, node.op_type, version, **more)
    except RuntimeContextError:
        return True  # a function that depends on the types of its inputs
    except Exception:  # of several kinds, for an operator or a version that is not there
        return False
    return True


def means_the_same(node, version):
    """Whether the node means in this version what it means in the newest, as far as its
    attributes and SINCE tell."""
    import onnx

    old, new = onnx.defs.get_schema(node.op_type, version, ""), onnx.defs.get_schema(node.op_type, "")
    if version < SINCE.get(node.op_type, 0):
        return False
    if old.since_version == new.since_version or versioned(node, version):
        return True
    if version < OLDER.get(node.op_type, 0):
        return False
    given = {a.name for a in node.attribute}
    defaults = [(old.attributes[n].default_value, new.attributes[n].default_value) for n in set(old.attributes) & set(new.attributes) - given]
    return given <= set(new.attributes) and len(node.input) <= new.max_input and all(a == b for a, b in defaults)


def versioned(node, version):
    """Whether the evaluator has several versions of the operator, and so the one."""
    from onnx.reference.ops import load_op
    from onnx.reference import ReferenceEvaluator

    try:
        return "_" in load_op("", node.op_type, version, evaluator_cls=ReferenceEvaluator).__name__
    except Exception:  # a function that depends on the types of its inputs
        return False


def older(version):
    """The operators of OLDER for a graph of this version."""
    import numpy
    from onnx.reference.ops import op_dequantize_linear, op_hardmax, op_log_softmax, op_softmax

    def flattened(newer):
        def _run(self, x, axis=None):
            at = next((a.i for a in self.onnx_node.attribute if a.name == "axis"), 1)
            rows = x.reshape((int(numpy.prod(x.shape[: at + x.ndim if at < 0 else at])), -1))
            self.axis = 1  # of rows
            return (newer._run(self, rows)[0].reshape(x.shape),)

        return {"_run": _run}

    found = []
    for name, newer, more in (
        ("Softmax", op_softmax.Softmax, flattened(op_softmax.Softmax)),
        ("LogSoftmax", op_log_softmax.LogSoftmax, flattened(op_log_softmax.LogSoftmax)),
        ("Hardmax", op_hardmax.Hardmax, flattened(op_hardmax.Hardmax)),
        ("DequantizeLinear", op_dequantize_linear.DequantizeLinear_25, {}),
    ):
        if version < OLDER[name]:
            found.append(type(name, (newer,), {"op_domain": "", **more}))
    return found
