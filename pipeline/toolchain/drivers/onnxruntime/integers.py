"""Int8, by onnxruntime.quantization."""

import json
import math

from gemms import split
from graphs import graph_inputs, load, nodes_of
from infinite import leave_infinite, touching
from prepared import prepare, quantized_model
from protocol import Refused, inputs_of, model_of, write
from sensitivity import costs, layers
from tensors import cases

CACHE = "ranges.json"  # the quantizer's own file of ranges


def quantize_static(request, options):
    source = model_of(request)
    model = load(source)
    inputs = graph_inputs(model)
    prepare(source, model, options["exclude_nodes"])
    constant, left = leave_infinite()
    from onnxruntime import quantization
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    reader = calibration(request, options, inputs)
    methods = quantization.CalibrationMethod
    methods = {"minmax": methods.MinMax, "entropy": methods.Entropy, "percentile": methods.Percentile}
    formats = {"qdq": quantization.QuantFormat.QDQ, "qoperator": quantization.QuantFormat.QOperator}
    extra = {"CalibPercentile": options["percentile"]} if options["observer"] == "percentile" else {}
    # Sorted, where the quantizer's own default is in the order of a set.
    types = sorted(options["op_types"] or {*QDQRegistry, *QLinearOpsRegistry})

    def make(path, nodes, reader=None):
        quantization.quantize_static(
            "prepared.onnx", path, reader,
            quant_format=formats[options["format"]],
            op_types_to_quantize=types, nodes_to_quantize=nodes,
            per_channel=options["per_channel"], reduce_range=options["reduce_range"],
            activation_type=integer(options["activation_type"]), weight_type=integer(options["weight_type"]),
            nodes_to_exclude=[*options["exclude_nodes"], *left],
            calibrate_method=methods[options["observer"]], calibration_providers=["CPUExecutionProvider"],
            extra_options=extra, calibration_cache_path=CACHE,
        )

    endless = given_infinite(request) if reader is None else set()
    left += touching(endless)
    try:
        make("quantized.onnx", [], reader)
    except ValueError as e:
        if options["observer"] == "minmax" or "finite" not in str(e):
            raise
        raise Refused("bad_input", f"observer {options['observer']} makes histograms, which infinite numbers have no place in, and calibration has some: "
                      "take observer minmax, which leaves the tensors with them in full precision, or give the mask of the model a large "
                      "negative number in place of -inf, such as -10000") from None
    if reader is not None and reader.count == 0:
        raise Refused("bad_input", "the calibration has no cases")
    ranges = table(CACHE, options["observer"], {*constant, *endless})
    if found := masked(ranges["tensors"]):  # as of attention that a mask closes with -inf
        left += touching(found)
        endless |= found
        make("quantized.onnx", [])
        ranges = table(CACHE, options["observer"], {*constant, *endless})
    if endless:
        ranges["infinite"] = sorted(endless)
    finite(ranges["tensors"])
    model, count = quantized_model({"QuantizeLinear"})
    write(request, "model.onnx", model)
    write(request, "calibration.json", json.dumps(ranges, sort_keys=True, indent=1).encode() + b"\n")
    said = {"cases": 0 if reader is None else reader.count, "quantized": count, "ranges": len(ranges["tensors"])}
    return {**said, **costs(request, options, inputs, types, make), **layers(request, options, inputs, types, make)}


def calibration(request, options, inputs):
    """A reader of the calibration's cases, or nothing where the ranges are given: they
    then lie where the quantizer looks for them."""
    given, shards = inputs_of(request, "ranges"), inputs_of(request, "calibration")
    if given:
        restore(given, options["observer"])
        return None
    if not shards:
        raise Refused("bad_input", "static quantization needs calibration: inputs of role calibration, or ranges")
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        count = 0

        def __init__(self):
            self.feeds = cases(shards, inputs)

        def get_next(self):
            feed = next(self.feeds, None)
            self.count += feed is not None
            return feed

    return Reader()


def quantize_dynamic(request, options):
    source = model_of(request)
    source_model = load(source)
    prepare(source, source_model, options["exclude_nodes"])
    from onnxruntime import quantization
    from onnxruntime.quantization.registry import IntegerOpsRegistry

    types = sorted(options["op_types"] or {*IntegerOpsRegistry, "Gemm"})
    left = split_products(types, options["exclude_nodes"])

    def make(path, nodes):
        quantization.quantize_dynamic(
            "split.onnx", path,
            op_types_to_quantize=sorted({"MatMul" if t == "Gemm" else t for t in types}), nodes_to_quantize=nodes,
            per_channel=options["per_channel"], reduce_range=options["reduce_range"],
            weight_type=integer(options["weight_type"]), nodes_to_exclude=left,
            # Both sides computed: their product would be quantized twice for nothing saved.
            extra_options={"MatMulConstBOnly": True},
        )

    make("quantized.onnx", [])
    model, count = quantized_model({"MatMulInteger", "ConvInteger", "DynamicQuantizeLinear", "DynamicQuantizeLSTM", "DequantizeLinear"})
    write(request, "model.onnx", model)
    inputs = graph_inputs(source_model)
    return {"quantized": count, **costs(request, options, inputs, types, make), **layers(request, options, inputs, types, make)}


def split_products(types, excluded):
    """Leaves split.onnx, prepared.onnx with the Gemm that are to be quantized as MatMul, and returns the names of nodes that are to stay: those
    of MatMul too where Gemm alone is to be quantized. Other Gemm stay what they are."""
    import onnx
    from onnxruntime.quantization.onnx_model import ONNXModel

    ONNXModel.replace_gemm_with_matmul = lambda _: None  # it would make MatMul of all, under other names
    model = onnx.load("prepared.onnx")
    left = [*excluded]
    if "Gemm" in types:
        if "MatMul" not in types:
            left += products(model)
        split(model, excluded)
    onnx.save(model, "split.onnx")
    return left


def products(model):
    """The names of all MatMul, each of which gets one."""
    found = [node for node in nodes_of(model.graph) if node.op_type == "MatMul"]
    for i, node in enumerate(found):
        node.name = node.name or f"MatMul_of_model_{i}"
    return [node.name for node in found]


def integer(name):
    from onnxruntime.quantization import QuantType

    return {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[name]


def table(path, observer, constant):
    """The ranges that calibration found, without histograms and constants that stay: what quantization depends on."""
    with open(path, encoding="utf-8") as f:
        found = json.load(f)
    tensors = {}
    for name, entry in found["data"].items():
        if name in constant:
            continue
        tensors[name] = {end: number(entry[end]) for end in ("lowest", "highest")}
    return {"observer": observer, "tensors": tensors}


def masked(tensors):
    """The tensors that reach down to -inf and no further up than a number, as a mask makes them."""
    return {name for name, ends in tensors.items() if ends["lowest"] == -math.inf and math.isfinite(ends["highest"])}


def finite(tensors):
    """Refuses ranges that no scale can span: all that is in them would become one number."""
    for name, ends in tensors.items():
        if not all(math.isfinite(end) for end in ends.values()):
            raise Refused("bad_input", f"calibration gives {name!r} the range from {ends['lowest']} to {ends['highest']}: "
                          "look for infinite numbers in its inputs and in what the model makes of them, or leave the nodes that take it in full "
                          "precision: quantize: {method: static, exclude: [NODE, ...]}")


def given_infinite(request):
    """The tensors that were infinite where the ranges that are given were found."""
    with open(inputs_of(request, "ranges")[0]["path"], encoding="utf-8") as f:
        names = json.load(f).get("infinite", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused("bad_input", "the table of ranges has no list of names as infinite")
    return set(names)


def number(value):
    """A float of the cache file, which writes numpy arrays as {"data": ..., "dtype": ...}."""
    while isinstance(value, dict):
        value = value["data"]
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def restore(given, observer):
    """Writes the quantizer's file of ranges from a table that an earlier run left."""
    if len(given) != 1:
        raise Refused("bad_input", f"{len(given)} inputs of role ranges: want one calibration.json")
    try:
        with open(given[0]["path"], encoding="utf-8") as f:
            found = json.load(f)
        was, data = found["observer"], {name: entry(e) for name, e in found["tensors"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Refused("bad_input", f"{given[0]['name']}: no table of ranges: {e}") from None
    if was != observer:
        raise Refused("bad_input", f"{given[0]['name']}: its ranges are those of observer {was}, and the option says {observer}")
    method = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}[observer]
    with open(CACHE, "w", encoding="utf-8") as f:
        json.dump({
            "CLS": "TensorsData", "data": data, "smooth_quant": False,
            "calibration_method": {"CLS": "CalibrationMethod", "value": f"CalibrationMethod.{method}"},
        }, f)


def entry(ends):
    """One tensor's range as the quantizer writes it: float32 arrays of one number."""
    array = {end: {"data": [float(ends[end])], "dtype": "float32", "CLS": "numpy.array"} for end in ("lowest", "highest")}
    return {**array, "CLS": "TensorData"}
