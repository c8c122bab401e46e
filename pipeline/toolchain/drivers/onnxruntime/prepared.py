"""What onnxruntime.quantization starts from and leaves."""

from graphs import check_names, nodes_of, one_thread
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
    free_names(prepared)


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


# What the quantizer puts behind the name of a tensor to call what it makes for it.
MADE = ("_scale", "_zero_point", "_quantized", "_quantized_scale", "_quantized_zero_point", "_QuantizeLinear_Input", "_QuantizeLinear_Output",
        "_DequantizeLinear_Output")


def free_names(prepared):
    """Gives other names to inner tensors that are called as the quantizer will call what it makes: beside a tensor "norm", a weight
    "norm_scale". It would take the one for the other, and leave a graph that does not run. Inputs and outputs keep their names: beside an
    output "norm_scale", "norm" gets another."""
    import onnx

    graph = prepared.graph
    nodes = list(nodes_of(graph))
    weights = {i.name for i in graph.initializer}
    names = {name for node in nodes for name in (*node.input, *node.output)} | weights
    fixed = {value.name for value in graph.input} - weights | {value.name for value in graph.output}
    new = {}
    for name in sorted(names - {""}):
        for base in sorted({name[:-len(made)] for made in MADE if name.endswith(made)} & names):
            other = next((n for n in (name, base) if n not in fixed), None)
            if other and other not in new:
                free = other + "_of_model"
                while free in names:
                    free += "_"
                names = names | {free}
                new[other] = free
    if not new:
        return
    for node in nodes:
        for tensors in (node.input, node.output):
            for i, name in enumerate(tensors):
                tensors[i] = new.get(name, name)
    for tensor in (*graph.initializer, *graph.value_info, *graph.input):
        tensor.name = new.get(tensor.name, tensor.name)
    onnx.save(prepared, "prepared.onnx")


def quantized_model(op_types):
    """What the quantizer left and how many nodes of these types are in it, at least one."""
    import onnx

    model = onnx.load("quantized.onnx")
    count = sum(node.op_type in op_types for node in model.graph.node)
    if count == 0:
        raise Refused("unsupported_op", "no operator of the model could be quantized")
    return model.SerializeToString(deterministic=True), count
