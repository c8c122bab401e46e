"""Driver for NNCF, protocol mlpromote.driver/v1. Verbs:

probe     versions of the tools.
quantize  by method. Inputs: role "model", one .onnx file and its external data. Leaves
          model.onnx, whose inputs and outputs are those of the model.
          static-int8   role "calibration" besides: safetensors shards whose tensors are
                        named as the model's inputs and have a leading case dimension.
                        With accuracy_aware, role "cases" besides, with the right answers
                        in tensor labels: layers go back to float32, the costliest first,
                        until the top-1 accuracy of output is within max_drop of the model's.
          weights-int8  8-bit weights, with a scale for each channel.
          weights-int4  4-bit weights of matrix products in blocks; embeddings, the last layer
                        and what cannot be cut into blocks have 8 bits.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ["NNCF_CI"] = "1"  # what its telemetry takes for a wish to be left alone

from accuracy import Judge, session  # noqa: E402
from graphs import check_names, graph_inputs, load, nodes_of, one_thread  # noqa: E402
from protocol import Refused, inputs_of, main, model_of, options_of, versions, write  # noqa: E402
from tensors import cases  # noqa: E402

# Options of quantize with what they are when absent.
DEFAULTS = {
    "method": "static-int8",
    "preset": "",
    "reduce_range": False,
    "exclude_nodes": [],
    "accuracy_aware": False,
    "labels": "",
    "output": "",
    "max_drop": 0.0,
    "block_size": 32,
    "symmetric": True,
}
CHOICES = {
    "method": ("static-int8", "weights-int8", "weights-int4"),
    "preset": ("", "performance", "mixed"),
    "block_size": (16, 32, 64, 128, 256),
}
METHODS = {
    "static-int8": ("preset", "reduce_range", "exclude_nodes", "accuracy_aware", "labels", "output", "max_drop"),
    "weights-int8": ("symmetric", "exclude_nodes"),
    "weights-int4": ("block_size", "symmetric", "exclude_nodes"),
}
OLDEST_OPSET = 13  # whose operators of quantization have scales per channel


def quantize(request):
    options = chosen_options(request)
    one_thread()
    model = named(load(model_of(request)))
    check(model, options)
    fold_casts(model)
    made, said = (static if options["method"] == "static-int8" else weights)(request, model, options)
    count = sum(n.op_type in ("QuantizeLinear", "DequantizeLinear", "MatMulNBits") for n in made.graph.node)
    if count == 0:
        raise Refused("unsupported_op", "no operator of the model could be quantized")
    declare(made)
    session(made)  # NNCF does not look whether a runtime takes what it made
    write(request, "model.onnx", made.SerializeToString(deterministic=True))
    return {**said, "quantized": count, "options": options}


def chosen_options(request):
    """The options that mean something to the method."""
    chosen = options_of(request, DEFAULTS, CHOICES)
    apply = ("method", *METHODS[chosen["method"]])
    for name in request.get("options") or {}:
        if name not in apply:
            raise Refused("bad_input", f"option {name} means nothing to method {chosen['method']}: it has {', '.join(apply)}")
    return {name: chosen[name] for name in DEFAULTS if name in apply}


def named(model):
    """Every node under a name, since NNCF knows nodes by name."""
    taken = {n.name for n in model.graph.node}
    for i, node in enumerate(model.graph.node):
        while not node.name:
            name = f"{node.op_type}_{i}"
            i += len(model.graph.node)
            if name not in taken:
                node.name = name
                taken.add(name)
    return model


def fold_casts(model):
    """Makes constants of constants that a Cast converts, which NNCF looks for among the inputs of the graph, and does not find."""
    from onnx import TensorProto, helper, numpy_helper

    numbers = {getattr(TensorProto, name) for name in ("FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL")}
    graph, outputs = model.graph, {o.name for o in model.graph.output}
    constants, converted = {i.name: i for i in graph.initializer}, set()
    for node in [n for n in graph.node if n.op_type == "Cast"]:
        (to,) = [a.i for a in node.attribute if a.name == "to"]
        source = constants.get(node.input[0])
        if source is None or node.output[0] in outputs or not {source.data_type, to} <= numbers:
            continue
        array = numpy_helper.to_array(source).astype(helper.tensor_dtype_to_np_dtype(to))
        graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
        constants[node.output[0]] = graph.initializer[-1]
        converted.add(source.name)
        graph.node.remove(node)
    read = {name for node in nodes_of(graph) for name in node.input} | outputs | {i.name for i in graph.input}
    for name in converted - read:
        graph.initializer.remove(constants[name])


def check(model, options):
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    if opset < OLDEST_OPSET:
        raise Refused("bad_input", f"the model's operator set is {opset}: NNCF quantizes {OLDEST_OPSET} and later")
    check_names(options["exclude_nodes"], model)


def static(request, model, options):
    shards = inputs_of(request, "calibration")
    if not shards:
        raise Refused("bad_input", "static quantization needs calibration: inputs of role calibration")
    import nncf

    feeds = list(cases(shards, graph_inputs(model)))
    settings = {
        "subset_size": len(feeds),
        "preset": {"performance": nncf.QuantizationPreset.PERFORMANCE, "mixed": nncf.QuantizationPreset.MIXED}.get(options["preset"]),
        "target_device": nncf.TargetDevice.CPU,
        "ignored_scope": ignored(nncf, options),
    }
    advanced = nncf.AdvancedQuantizationParameters(
        overflow_fix=nncf.OverflowFix.ENABLE if options["reduce_range"] else nncf.OverflowFix.DISABLE)
    if not options["accuracy_aware"]:
        return nncf.quantize(model, nncf.Dataset(feeds), advanced_parameters=advanced, **settings), {"cases": len(feeds)}
    judge = Judge(model, inputs_of(request, "cases"), options["labels"], options["output"])
    made = nncf.quantize_with_accuracy_control(
        model, nncf.Dataset(feeds), nncf.Dataset(judge.items), judge.validate, max_drop=options["max_drop"],
        advanced_quantization_parameters=advanced,
        advanced_accuracy_restorer_parameters=nncf.AdvancedAccuracyRestorerParameters(num_ranking_workers=1), **settings)
    return made, {"cases": len(feeds), "accuracy": judge.said(model, made)}


def weights(_request, model, options):
    import nncf

    modes = nncf.CompressWeightsMode
    settings = {"mode": modes.INT8_SYM if options["symmetric"] else modes.INT8_ASYM}
    if options["method"] == "weights-int4":
        settings = {
            "mode": modes.INT4_SYM if options["symmetric"] else modes.INT4_ASYM,
            "group_size": options["block_size"], "ratio": 1.0,
        }
    made = nncf.compress_weights(model, ignored_scope=ignored(nncf, options), **settings)
    flatten_scales(made)
    return made, {}


def flatten_scales(model):
    """One scale for each channel, as ONNX wants them: NNCF gives those of convolutions the
    rank of their weights, which ONNX Runtime refuses when it runs them."""
    initializers = {i.name: i for i in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "DequantizeLinear" or any(a.name == "block_size" and a.i for a in node.attribute):
            continue
        for name in node.input[1:]:
            scale = initializers.get(name)
            if scale is not None and len(scale.dims) > 1 and sum(d > 1 for d in scale.dims) <= 1:
                count = max(scale.dims)
                del scale.dims[:]
                scale.dims.append(count)


def ignored(nncf, options):
    if not options["exclude_nodes"]:
        return None
    # A name that is there and could not be quantized anyway is no mistake.
    return nncf.IgnoredScope(names=options["exclude_nodes"], validate=False)


def declare(model):
    """NNCF leaves out that it used operators of ONNX Runtime."""
    import onnx

    known = {o.domain for o in model.opset_import}
    for domain in sorted({n.domain for n in model.graph.node} - known - {"", "ai.onnx"}):
        model.opset_import.append(onnx.helper.make_opsetid(domain, 1))


def probe(_request):
    return versions("nncf", "onnx", "onnxruntime", "numpy")


KINDS = {"UnsupportedModelError": "unsupported_op", "ValidationError": "bad_input", "UnsupportedBackendError": "unsupported_format"}

if __name__ == "__main__":
    sys.exit(main({"probe": probe, "quantize": quantize}, KINDS))
