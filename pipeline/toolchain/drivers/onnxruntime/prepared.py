"""What onnxruntime.quantization starts from and leaves."""

from graphs import check_names, one_thread
from protocol import Refused


def prepare(source, model, excluded):
    """Leaves prepared.onnx, the model with constants folded and shapes inferred. Refuses excluded
    nodes that neither has: folding joins some under names of their own."""
    one_thread()
    # Only now: it takes a second, and binds names that one_thread replaces.
    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(source, "prepared.onnx", skip_symbolic_shape=True)
    import onnx

    prepared = onnx.load("prepared.onnx")
    check_names(excluded, model, prepared)
    forget_shapes(prepared)


def forget_shapes(prepared):
    """Takes the declared shapes of initializers out, which torch.onnx writes. The quantizer transposes weights of Gemm, and
    would find that they differ."""
    import onnx

    initialized = {i.name for i in prepared.graph.initializer}
    kept = [v for v in prepared.graph.value_info if v.name not in initialized]
    if len(kept) < len(prepared.graph.value_info):
        del prepared.graph.value_info[:]
        prepared.graph.value_info.extend(kept)
        onnx.save(prepared, "prepared.onnx")


def quantized_model(op_types):
    """What the quantizer left and how many nodes of these types are in it, at least one."""
    import onnx

    model = onnx.load("quantized.onnx")
    count = sum(node.op_type in op_types for node in model.graph.node)
    if count == 0:
        raise Refused("unsupported_op", "no operator of the model could be quantized")
    return model.SerializeToString(deterministic=True), count
