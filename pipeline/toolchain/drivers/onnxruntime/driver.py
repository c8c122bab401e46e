"""Driver for ONNX Runtime's quantizer, protocol mlpromote.driver/v1. Verbs:

probe     versions of the tools.
quantize  by method. Inputs: role "model", one .onnx file and its external data. Leaves
          model.onnx, whose inputs and outputs are those of the model.
          static-int8   role "calibration" besides: safetensors shards whose tensors are
                        named as the model's inputs and have a leading case dimension.
                        Leaves calibration.json too, the range of every activation, by
                        which the model was quantized.
          dynamic-int8  ranges of activations are taken anew on every run.
          fp16          weights and activations in half precision; operators that have
                        none, inputs and outputs stay as they are.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from protocol import Refused, inputs_of, main, model_of, options_of, versions, write  # noqa: E402
from tensors import cases  # noqa: E402

# Options of quantize with what they are when absent.
DEFAULTS = {
    "method": "static-int8",
    "observer": "minmax",
    "percentile": 99.999,
    "per_channel": False,
    "reduce_range": False,
    "activation_type": "uint8",
    "weight_type": "int8",
    "format": "qdq",
    "exclude_nodes": [],
    "op_types": [],
}
CHOICES = {
    "method": ("static-int8", "dynamic-int8", "fp16"),
    "observer": ("minmax", "entropy", "percentile"),
    "activation_type": ("uint8", "int8"),
    "weight_type": ("int8", "uint8"),
    "format": ("qdq",),
}
# Which options mean something to a method, besides the method.
APPLY = {
    "static-int8": tuple(DEFAULTS),
    "dynamic-int8": ("method", "per_channel", "reduce_range", "weight_type", "exclude_nodes", "op_types"),
    "fp16": ("method", "exclude_nodes"),
}


def chosen_options(request):
    """The options that mean something to the method."""
    chosen = options_of(request, DEFAULTS, CHOICES)
    apply = APPLY[chosen["method"]]
    for name in request.get("options") or {}:
        if name not in apply:
            raise Refused("bad_input", f"option {name} means nothing to method {chosen['method']}: it has {', '.join(apply)}")
    if not 50 < chosen["percentile"] <= 100:
        raise Refused("bad_input", f"option percentile is {chosen['percentile']}: want more than 50 and at most 100")
    return {name: chosen[name] for name in DEFAULTS if name in apply}


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


def quantize(request):
    options = chosen_options(request)
    method = {"static-int8": quantize_static, "dynamic-int8": quantize_dynamic, "fp16": halve}[options["method"]]
    return {**method(request, options), "options": options}


def prepare(source):
    """Leaves prepared.onnx, the model with constants folded and shapes inferred."""
    one_thread()
    # Only now: it takes a second, and binds names that one_thread replaces.
    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(source, "prepared.onnx", skip_symbolic_shape=True)


def quantized_model(op_types):
    """What the quantizer left and how many nodes of these types are in it, at least one."""
    import onnx

    model = onnx.load("quantized.onnx")
    count = sum(node.op_type in op_types for node in model.graph.node)
    if count == 0:
        raise Refused("unsupported_op", "no operator of the model could be quantized")
    return model.SerializeToString(deterministic=True), count


def quantize_static(request, options):
    source, shards = model_of(request), inputs_of(request, "calibration")
    if not shards:
        raise Refused("bad_input", "static quantization needs calibration: inputs of role calibration")
    inputs = graph_inputs(load(source))
    prepare(source)
    from onnxruntime import quantization
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    class Reader(quantization.CalibrationDataReader):
        count = 0

        def __init__(self):
            self.feeds = cases(shards, inputs)

        def get_next(self):
            feed = next(self.feeds, None)
            self.count += feed is not None
            return feed

    reader = Reader()
    methods = quantization.CalibrationMethod
    methods = {"minmax": methods.MinMax, "entropy": methods.Entropy, "percentile": methods.Percentile}
    extra = {"CalibPercentile": options["percentile"]} if options["observer"] == "percentile" else {}
    quantization.quantize_static(
        "prepared.onnx", "quantized.onnx", reader,
        quant_format=quantization.QuantFormat.QDQ,
        # Sorted, where the quantizer's own default is in the order of a set.
        op_types_to_quantize=sorted(options["op_types"] or {*QDQRegistry, *QLinearOpsRegistry}),
        per_channel=options["per_channel"], reduce_range=options["reduce_range"],
        activation_type=integer(options["activation_type"]), weight_type=integer(options["weight_type"]),
        nodes_to_exclude=options["exclude_nodes"],
        calibrate_method=methods[options["observer"]], calibration_providers=["CPUExecutionProvider"],
        extra_options=extra, calibration_cache_path="ranges.json",
    )
    if reader.count == 0:
        raise Refused("bad_input", "the calibration has no cases")
    model, count = quantized_model({"QuantizeLinear"})
    ranges = table("ranges.json", options["observer"])
    write(request, "model.onnx", model)
    write(request, "calibration.json", json.dumps(ranges, sort_keys=True, indent=1).encode() + b"\n")
    return {"cases": reader.count, "quantized": count, "ranges": len(ranges["tensors"])}


def quantize_dynamic(request, options):
    source = model_of(request)
    load(source)
    prepare(source)
    from onnxruntime import quantization
    from onnxruntime.quantization.registry import IntegerOpsRegistry

    quantization.quantize_dynamic(
        "prepared.onnx", "quantized.onnx",
        op_types_to_quantize=sorted(options["op_types"] or IntegerOpsRegistry),
        per_channel=options["per_channel"], reduce_range=options["reduce_range"],
        weight_type=integer(options["weight_type"]), nodes_to_exclude=options["exclude_nodes"],
        # Both sides computed: their product would be quantized twice for nothing saved.
        extra_options={"MatMulConstBOnly": True},
    )
    model, count = quantized_model({"MatMulInteger", "ConvInteger", "DynamicQuantizeLinear", "DynamicQuantizeLSTM", "DequantizeLinear"})
    write(request, "model.onnx", model)
    return {"quantized": count}


def integer(name):
    from onnxruntime.quantization import QuantType

    return {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[name]


def halve(request, options):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = convert_float_to_float16(load(model_of(request)), keep_io_types=True, node_block_list=options["exclude_nodes"])
    sort_nodes(model.graph)
    onnx.checker.check_model(model)
    halved = sum(i.data_type == onnx.TensorProto.FLOAT16 for i in model.graph.initializer)
    if halved == 0:
        raise Refused("unsupported_op", "the model has no float32 weights that could be made float16")
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"halved": halved}


def sort_nodes(graph):
    """Puts every node after those that it needs, else in the order that there is, and
    drops what says the same twice: the converter appends its casts at the end, one for
    every use."""
    nodes, made = [], set()
    for node in graph.node:
        outputs = {o for o in node.output if o}
        if not (node.op_type == "Cast" and outputs <= made):
            nodes.append(node)
        made |= outputs
    waiting = {o for node in nodes for o in node.output if o}
    done = []
    while nodes:
        later = []
        for node in nodes:
            if any(name in waiting for name in needs(node)):
                later.append(node)
                continue
            done.append(node)
            waiting.difference_update(node.output)
        if len(later) == len(nodes):
            raise Refused("bad_input", f"node {later[0].name!r} needs its own result")
        nodes = later
    del graph.node[:]
    graph.node.extend(done)


def needs(node):
    """The names that a node reads, those of its subgraphs included."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from needs(inner)


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


def table(path, observer):
    """The ranges that calibration found, without histograms: what quantization depends on."""
    with open(path, encoding="utf-8") as f:
        found = json.load(f)
    tensors = {}
    for name, entry in found["data"].items():
        tensors[name] = {end: number(entry[end]) for end in ("lowest", "highest")}
    return {"observer": observer, "tensors": tensors}


def number(value):
    """A float of the cache file, which writes numpy arrays as {"data": ..., "dtype": ...}."""
    while isinstance(value, dict):
        value = value["data"]
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def probe(_request):
    return versions("onnxruntime", "onnx", "numpy")


# Classes of onnxruntime's errors that say what is wrong with the model.
KINDS = {"NotImplemented": "unsupported_op", "InvalidGraph": "bad_input", "InvalidProtobuf": "bad_input", "InvalidArgument": "bad_input"}

if __name__ == "__main__":
    sys.exit(main({"probe": probe, "quantize": quantize}, KINDS))
