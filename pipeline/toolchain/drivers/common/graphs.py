"""ONNX graphs: reading them, what they take, and the sessions that run them."""

from protocol import Refused


def load(path):
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path)
        onnx.checker.check_model(path)
    except DecodeError:
        raise Refused("bad_input", "the model is no ONNX file") from None
    except (onnx.checker.ValidationError, FileNotFoundError) as e:
        raise Refused("bad_input", f"the model is not valid ONNX: {e}") from None
    return model


def graph_inputs(model):
    """The model's inputs that are no initializers: {name: (dtype, shape)}, -1 for open dimensions."""
    import onnx

    initialized = {i.name for i in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        if value.name in initialized:
            continue
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
            raise Refused("unsupported_format", f"input {value.name!r} is no tensor of known rank")
        shape = [d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim]
        found[value.name] = (onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type), shape)
    return found


def fix_sizes(model, sizes):
    """The model with the size of each open dimension of its inputs that can have only one, and the dimensions that stay open. sizes are
    by the names of dimensions: [min, opt, max]."""
    initialized = {i.name for i in model.graph.initializer}
    fixed, still = {}, []
    for value in model.graph.input:
        if value.name in initialized:
            continue
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            symbol = dim.dim_param
            smallest, _, largest = sizes.get(symbol, (None, None, 0))
            if smallest == largest:
                dim.dim_value = fixed[symbol] = largest
            else:
                still.append(symbol or f"{axis} of {value.name}")
    if not fixed:
        return model, still
    return inferred(model, fixed), still


def inferred(model, fixed):
    """The model with shapes as they follow from those of its inputs. An output whose shape does not follow, as behind operators of other
    domains, keeps the one it has, with these sizes in it."""
    import onnx

    said = {}
    for value in [*model.graph.output, *model.graph.value_info]:
        shape = value.type.tensor_type.shape
        for dim in shape.dim:
            if dim.dim_param in fixed:
                dim.dim_value = fixed[dim.dim_param]
        said[value.name] = onnx.TensorShapeProto.FromString(shape.SerializeToString()) if value.type.tensor_type.HasField("shape") else None
        value.type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(model)
    for value in model.graph.output:
        if not value.type.tensor_type.HasField("shape") and said[value.name] is not None:
            value.type.tensor_type.shape.CopyFrom(said[value.name])
    return model


def one_thread():
    """Sessions of one thread, here and in what the quantizer makes itself: sums must not
    depend on how many cores a machine has."""
    import onnxruntime

    original = onnxruntime.SessionOptions

    class Options(original):
        def __init__(self):
            super().__init__()
            self.intra_op_num_threads = 1
            self.inter_op_num_threads = 1
            self.use_deterministic_compute = True

    onnxruntime.SessionOptions = Options


def check_names(names, *models):
    """Refuses names that no node of these models has: one that is misspelt would be left out of
    nothing."""
    known = {n.name for model in models for n in nodes_of(model.graph)}
    for name in names:
        if name not in known:
            raise Refused("bad_input", f"exclude: the model has no node {name!r}")


def nodes_of(graph):
    """All nodes, those of subgraphs included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes_of(inner)
