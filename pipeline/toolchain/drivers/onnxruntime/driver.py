"""Driver for ONNX Runtime's quantizer, protocol mlpromote.driver/v1.

Reads one request from standard input, does one job, leaves its files below out_dir
and the response where the request says. Verbs:

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

import errno
import hashlib
import json
import logging
import os
import platform
import struct
import sys

PROTOCOL = "mlpromote.driver/v1"

# As safetensors calls them, and as numpy does. Others have no numpy dtype.
DTYPES = {
    "BOOL": "?", "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8",
    "F16": "<f2", "F32": "<f4", "F64": "<f8",
}
MAX_HEADER = 16 << 20

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


class Refused(Exception):
    """A job that cannot be done, with the protocol's code for why."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def options_of(request):
    """The options with defaults, every name and value checked."""
    given = request.get("options") or {}
    for name, value in given.items():
        if name not in DEFAULTS:
            raise Refused("bad_input", f"option {name!r}: there are {', '.join(sorted(DEFAULTS))}")
        if name in CHOICES and value not in CHOICES[name]:
            raise Refused("bad_input", f"option {name} is {value!r}: want one of {', '.join(CHOICES[name])}")
        want = type(DEFAULTS[name])
        if want is float and type(value) is int:
            value = float(value)
        if type(value) is not want:
            raise Refused("bad_input", f"option {name} is {value!r}: want a {want.__name__}")
        if want is list and not all(isinstance(v, str) for v in value):
            raise Refused("bad_input", f"option {name}: want a list of names")
    chosen = {**DEFAULTS, **given}
    apply = APPLY[chosen["method"]]
    for name in given:
        if name not in apply:
            raise Refused("bad_input", f"option {name} means nothing to method {chosen['method']}: it has {', '.join(apply)}")
    if not 50 < chosen["percentile"] <= 100:
        raise Refused("bad_input", f"option percentile is {chosen['percentile']}: want more than 50 and at most 100")
    return {name: chosen[name] for name in DEFAULTS if name in apply}


def inputs_of(request, role):
    """The input files of a role, by name."""
    return sorted((i for i in request["inputs"] if i["role"] == role), key=lambda i: i["name"])


def model_of(request):
    graphs = [i for i in inputs_of(request, "model") if i["name"].endswith(".onnx")]
    if len(graphs) != 1:
        raise Refused("bad_input", f"{len(graphs)} inputs of role model end in .onnx, expected one")
    return graphs[0]["path"]


def read_shard(item):
    """The tensors of a safetensors file, mapped into memory and checked against its size."""
    import numpy

    name, size = item["name"], os.path.getsize(item["path"])
    with open(item["path"], "rb") as f:
        prefix = f.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else size
        if length > min(size - 8, MAX_HEADER):
            raise Refused("bad_input", f"{name}: this is no safetensors file, or it is cut short")
        text = f.read(length)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        entries = [(k, v["dtype"], v["shape"], v["data_offsets"]) for k, v in header.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Refused("bad_input", f"{name}: its header is no safetensors header: {e}") from None
    tensors = {}
    for key, dtype, shape, offsets in entries:
        if dtype not in DTYPES:
            raise Refused("bad_input", f"{name}: tensor {key!r} is {dtype}: want one of {', '.join(DTYPES)}")
        numbers = [*shape, *offsets]
        if len(offsets) != 2 or not all(type(n) is int and 0 <= n <= size for n in numbers):
            raise Refused("bad_input", f"{name}: tensor {key!r} has shape {shape} and offsets {offsets}")
        want = numpy.dtype(DTYPES[dtype]).itemsize
        for n in shape:
            want *= n
        if not shape or offsets[1] - offsets[0] != want or 8 + length + offsets[1] > size:
            raise Refused("bad_input", f"{name}: tensor {key!r} of shape {shape} lies outside its file, or has no case dimension")
        at = 8 + length + offsets[0]
        if want == 0:
            tensors[key] = numpy.zeros(shape, DTYPES[dtype])
        else:
            tensors[key] = numpy.memmap(item["path"], DTYPES[dtype], "r", at, tuple(shape))
    return tensors


def cases(shards, inputs):
    """One feed after the other: {input name: array}. A tensor of the input's rank keeps
    a leading dimension of 1, one of a rank more drops the case dimension."""
    import numpy

    for item in shards:
        tensors = read_shard(item)
        missing = sorted(set(inputs) - set(tensors))
        if missing:
            raise Refused("bad_input", f"{item['name']} has no tensor for the model's input {', '.join(missing)}: it has {', '.join(sorted(tensors))}")
        counts = {tensors[name].shape[0] for name in inputs}
        if len(counts) != 1:
            raise Refused("bad_input", f"{item['name']}: its tensors have different numbers of cases: {sorted(counts)}")
        for name, (dtype, shape) in inputs.items():
            check_fit(item["name"], name, tensors[name], dtype, shape)
        for case in range(counts.pop()):
            yield {
                name: numpy.ascontiguousarray(tensors[name][case : case + 1] if tensors[name].ndim == len(shape) else tensors[name][case])
                for name, (_, shape) in inputs.items()
            }


def check_fit(shard, name, tensor, dtype, shape):
    got = tuple(tensor.shape)
    one = (1, *got[1:]) if len(got) == len(shape) else got[1:]
    fits = len(one) == len(shape) and all(want < 0 or want == have for want, have in zip(shape, one))
    if tensor.dtype != dtype or not fits:
        raise Refused("bad_input", f"{shard}: tensor {name!r} is {tensor.dtype} {list(got)}: the model's input wants {dtype} {list(shape)} for each case")


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
    options = options_of(request)
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


def write(request, name, content):
    with open(os.path.join(request["out_dir"], name), "wb") as f:
        f.write(content)


def probe(_request):
    import numpy
    import onnx
    import onnxruntime

    return {
        "tool": {
            "onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__,
            "numpy": numpy.__version__, "python": platform.python_version(),
        },
    }


VERBS = {"probe": probe, "quantize": quantize}


def listing(out_dir):
    """Every file below out_dir with its size and digest."""
    found = []
    for folder, _, names in os.walk(out_dir):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                digest = hashlib.file_digest(f, "sha256").hexdigest()
            relative = os.path.relpath(path, out_dir).replace(os.sep, "/")
            found.append({"path": relative, "size": os.path.getsize(path), "sha256": digest})
    return sorted(found, key=lambda f: f["path"])


def explain(e):
    """The protocol's code and a message for an exception."""
    if isinstance(e, Refused):
        return e.code, str(e)
    if isinstance(e, MemoryError) or isinstance(e, OSError) and e.errno in (errno.EFBIG, errno.ENOSPC, errno.ENOMEM):
        return "limit", f"out of memory or space: {e}"
    if isinstance(e, ImportError):
        return "unavailable", f"the install is damaged: {e}"
    # Named, since these classes exist only where onnxruntime can be imported.
    kind = {"NotImplemented": "unsupported_op", "InvalidGraph": "bad_input", "InvalidProtobuf": "bad_input", "InvalidArgument": "bad_input"}
    return kind.get(type(e).__name__, "tool_failed"), f"{type(e).__name__}: {e}"


def answer(request):
    if request.get("protocol") != PROTOCOL:
        raise Refused("bad_input", f"protocol {request.get('protocol')!r}: this driver speaks {PROTOCOL}")
    verb = VERBS.get(request["verb"])
    if verb is None:
        raise Refused("bad_input", f"verb {request['verb']!r}: this driver has {', '.join(VERBS)}")
    result = verb(request)
    return {"ok": True, "files": listing(request["out_dir"]), "result": result}


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    request = json.load(sys.stdin)
    try:
        response = answer(request)
    except Exception as e:  # whatever a tool throws becomes an answer
        if not isinstance(e, Refused):
            logging.exception("%s", request.get("verb"))
        code, message = explain(e)
        response = {"ok": False, "error": {"code": code, "message": message}}
    response.update(protocol=PROTOCOL, id=request.get("id"))
    with open(request["response_path"], "w", encoding="utf-8") as f:
        json.dump(response, f)
    return 0 if response["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
