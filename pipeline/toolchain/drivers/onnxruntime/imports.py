"""ONNX taken in: checked, with the shapes of all outputs, and simplified where asked."""

import os

from inner import expose, listed
from protocol import Refused, model_of, options_of, output_path, write

INLINE = 1 << 30  # bytes of a model above which its tensors go to a file of their own
MOST = 2**31 - 1  # bytes that one protobuf message has at most


def import_(request):
    options = options_of(request, {"simplify": False, "inner": False, "expose": []})
    source = model_of(request)
    if options["inner"] or options["expose"]:
        return show(request, source, options)
    model = simplified(source) if options["simplify"] else read(source, data=False)
    infer(model)
    check(source, model)
    if model.ByteSize() < INLINE:
        write(request, "model.onnx", model.SerializeToString(deterministic=True))
    else:
        import onnx

        onnx.save_model(model, output_path(request, "model.onnx"), save_as_external_data=True, location="model.onnx.data")
    return {"opsets": {o.domain or "ai.onnx": o.version for o in model.opset_import}, "nodes": len(model.graph.node)}


def show(request, source, options):
    """The model as it is, with inner tensors as outputs; its external data stays where it is."""
    model = read(source, data=False)
    said = {"values": listed(model), "outputs": [o.name for o in model.graph.output]} if options["inner"] else {}
    expose(model, options["expose"])
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return said


def read(source, data):
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(source, load_external_data=data)
    except DecodeError:
        raise Refused("bad_input", "the model is no ONNX file") from None
    except (FileNotFoundError, onnx.checker.ValidationError) as e:
        raise Refused("bad_input", f"the model's external data: {e}") from None


def check(source, model):
    """Holds the model, once its outputs have shapes, against the ONNX specification: with
    its external data, where all of it fits what the checker takes."""
    import onnx
    from onnx.external_data_helper import load_external_data_for_model, uses_external_data

    external = [i for i in model.graph.initializer if uses_external_data(i)]
    if external:
        whole = onnx.ModelProto()
        whole.CopyFrom(model)
        folder = os.path.dirname(source)
        if sum(os.path.getsize(os.path.join(folder, name)) for name in {locations(i) for i in external}) >= INLINE:
            return
        load_external_data_for_model(whole, folder)
        model = whole
    if model.ByteSize() >= MOST:
        return
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
        raise Refused("bad_input", f"the model is not valid ONNX: {e}") from None


def locations(tensor):
    return next(e.value for e in tensor.external_data if e.key == "location")


def simplified(source):
    before = read(source, data=False)
    import onnxslim

    model = onnxslim.slim(read(source, data=True))
    for said, left in ((before.graph.input, model.graph.input), (before.graph.output, model.graph.output)):
        if [v.name for v in said] != [v.name for v in left]:
            raise Refused("tool_failed", f"onnxslim changed the interface from {[v.name for v in said]} to {[v.name for v in left]}")
    del model.graph.value_info[:]  # of tensors that may be gone; outputs keep their own
    return model


def infer(model):
    """Gives every output of the graph a shape, and leaves all else as it is."""
    import onnx

    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True).graph
    except onnx.shape_inference.InferenceError as e:
        raise Refused("bad_input", f"shape inference: {e}") from None
    for output, found in zip(model.graph.output, inferred.output):
        if not output.type.HasField("tensor_type") or output.type.tensor_type.HasField("shape"):
            continue
        if not found.type.tensor_type.HasField("shape"):
            raise unknown(output.name, inferred)
        output.CopyFrom(found)


def unknown(output, graph):
    """Which operator stands in the way: the first one on the way to the output that leaves
    something without a shape."""
    known = {i.name for i in graph.initializer}
    known |= {v.name for v in (*graph.input, *graph.value_info) if v.type.tensor_type.HasField("shape")}
    made = {name: node for node in graph.node for name in node.output}
    name, op = output, None
    while name in made:
        node, op = made[name], made[name].op_type
        open_inputs = [i for i in node.input if i and i not in known and i in made]
        if not open_inputs:
            where = node.name or f"the node that makes {name!r}"
            return Refused("unsupported_op", f"output {output!r} has no shape: shape inference gets no further than operator {op} ({where}): export the model with the shape of this output", op=op)
        name = open_inputs[0]
    return Refused("bad_input", f"output {output!r} has no shape, since {name!r} has none: export the model with the shapes of its inputs")
