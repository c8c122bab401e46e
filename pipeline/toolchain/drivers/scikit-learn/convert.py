"""Estimators to ONNX, by skl2onnx."""

import warnings

from columns import columns
from place import place_of
from protocol import Refused

OPSETS = {"": 17, "ai.onnx.ml": 3}  # which the compilers of all targets read
INPUT, BATCH = "input", "batch"


def convert(estimator):
    """The model, and the names of its outputs."""
    import skl2onnx
    from skl2onnx.common import data_types, exceptions

    kinds = {"float32": data_types.FloatTensorType, "int64": data_types.Int64TensorType, "text": data_types.StringTensorType}
    table = columns(estimator)
    if table:
        types = [(c.name, kinds[c.kind]([None, 1])) for c in table]
    else:
        types = [(INPUT, data_types.FloatTensorType([None, features(estimator)]))]

    def to_onnx(options, part=estimator, types=types):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return skl2onnx.to_onnx(single(part), initial_types=types, options=options, target_opset=OPSETS, name="model")

    def converts(part, kind):
        try:
            to_onnx(None, part, [(INPUT, kinds[kind]([None, getattr(part, "n_features_in_", 1)]))])
        except Exception:  # whatever it is: the message has the error of the whole model
            return False
        return True

    def refusal(what, message, op):
        try:
            place = place_of(estimator, op, converts)
        except Exception:  # a part that is unlike those of scikit-learn: the error of the whole model counts
            place = ""
        return Refused("unsupported_op", f"skl2onnx cannot convert {what}: {message}{place and f' ({place})'}", op=op)

    unsupported = (exceptions.MissingShapeCalculator, exceptions.MissingConverter, NotImplementedError)
    try:
        try:
            model = to_onnx({"zipmap": False})  # else probabilities would be a list of dictionaries
        except NameError:  # nothing in the model has that option
            model = to_onnx(None)
    except unsupported as e:
        message, op = lacking(e)
        raise refusal("this model", message, op) from None
    except (RuntimeError, ValueError, TypeError, AttributeError) as e:
        raise refusal(type(estimator).__qualname__, first_line(e), type(estimator).__qualname__) from None
    return finished(model, estimator)


def single(estimator):
    """The estimator, or a copy in which trees of histograms have the largest float32 up to each threshold: skl2onnx rounds those to the
    nearest one, and only those of other trees down, as x <= threshold needs where x is float32."""
    import copy

    import numpy

    if not any(True for _ in histograms(estimator)):
        return estimator
    estimator = copy.deepcopy(estimator)
    for boosted in histograms(estimator):
        for tree in (tree for stage in boosted._predictors for tree in stage):
            tree.nodes = tree.nodes.copy()
            given = tree.nodes["num_threshold"]
            with numpy.errstate(over="ignore"):
                near = given.astype(numpy.float32)
            down = numpy.nextafter(near, numpy.float32(-numpy.inf))
            tree.nodes["num_threshold"] = numpy.where(near.astype(float) > given, down, near)
    return estimator


def histograms(part):
    """The HistGradientBoosting estimators in an estimator, such as a pipeline."""
    from sklearn.base import BaseEstimator

    if hasattr(part, "_predictors"):
        yield part
    elif isinstance(part, (list, tuple)):
        for inner in part:
            yield from histograms(inner)
    elif isinstance(part, BaseEstimator):
        for inner in vars(part).values():
            yield from histograms(inner)


def names(estimator, outputs):
    """What classes and features are called, as far as the estimator knows it, by output and by input."""
    found = {"inputs": {}, "outputs": {}}
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and not columns(estimator):
        found["inputs"][INPUT] = [str(name) for name in known]
    classes = getattr(estimator, "classes_", None)
    if "probabilities" in outputs and getattr(classes, "ndim", 0) == 1:
        found["outputs"]["probabilities"] = [str(c) for c in classes]
    return found


def features(estimator):
    count = getattr(estimator, "n_features_in_", None)
    if not isinstance(count, int) or count < 1:
        raise Refused("unsupported_format", f"{type(estimator).__qualname__} is not fitted, or takes no matrix of numbers: want one that does, such as the part of the pipeline behind its vectorizer")
    return count


def lacking(e):
    """What skl2onnx lacks, and the class that it has no converter for: it names that in its first line."""
    message = first_line(e)
    op = message.partition("'<class '")[2].partition("'")[0] or None
    return (f"it has no converter for {op}" if op else message), op


def first_line(e):
    return next((line.strip() for line in str(e).splitlines() if line.strip()), type(e).__name__)[:300]


def finished(model, estimator):
    """Outputs that can be compared, a name for the batch, and every operator set once."""
    import onnx

    numbers = [o.name for o in model.graph.output if o.type.tensor_type.elem_type not in (0, onnx.TensorProto.STRING)]
    kept = [name for name in numbers if name != "probabilities" or hasattr(estimator, "predict_proba")]
    if not kept:
        raise Refused("unsupported_format", f"{type(estimator).__qualname__} predicts names and no probabilities, which nothing can be compared by: train it on the numbers of its classes")
    if len(kept) < len(model.graph.output):
        drop(model.graph, kept)
    for value in (*model.graph.input, *model.graph.output):
        dim = value.type.tensor_type.shape.dim
        if dim and not dim[0].HasField("dim_value"):
            dim[0].dim_param = BATCH
    versions = {o.domain: o.version for o in model.opset_import}
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(d, versions[d]) for d in sorted(versions))
    onnx.checker.check_model(model, full_check=True)
    return model, [o.name for o in model.graph.output]


def drop(graph, kept):
    """Leaves only the outputs of these names, and the nodes that they need."""
    outputs = [o for o in graph.output if o.name in kept]
    needed, nodes = set(kept), []
    for node in reversed(graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            nodes.append(node)
    weights = [i for i in graph.initializer if i.name in needed]
    for field, left in ((graph.output, outputs), (graph.node, nodes[::-1]), (graph.initializer, weights)):
        del field[:]
        field.extend(left)
