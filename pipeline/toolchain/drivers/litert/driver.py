"""Driver for LiteRT (TensorFlow Lite), protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, to model.tflite, by onnx2tf,
         which writes the flatbuffer itself: no TensorFlow is involved. Open dimensions that can have
         one size get it: shapes that the graph computes while it runs are what XNNPACK can get wrong,
         in one load of the engine and not in the next. With form "int8" and
         role "calibration", all operators get numbers of 8 bits, between a QUANTIZE of each
         input and a DEQUANTIZE of each output.
run      such engines on cases.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from graphs import fix_sizes, graph_inputs, nodes_of  # noqa: E402
from interpreting import Flatbuffer  # noqa: E402
from protocol import Refused, inputs_of, main, model_of, options_of, versions, write  # noqa: E402
from running import number, only, run  # noqa: E402
from tensors import cases  # noqa: E402

DEFAULTS = {
    "form": "float",
    "sizes": {},  # of open dimensions, by their names in the model: [min, opt, max]
}
SUFFIX = {"float": "_float32.tflite", "int8": "_integer_quant.tflite"}


def probe(_request):
    return versions("ai-edge-litert", "onnx2tf", "onnx", "numpy")


def compile_(request):
    options = options_of(request, DEFAULTS, {"form": tuple(SUFFIX)})
    form = options["form"]
    import onnx

    model, _ = fix_sizes(onnx.load(model_of(request)), options["sizes"])
    name_outputs(model)
    if form == "float":  # the quantizer of form int8 does not take what this adds
        keep_layout(model)
    source = "model.onnx"  # a copy in the working directory, since the converter writes to its input
    onnx.save(model, source)
    initialized = {i.name for i in model.graph.initializer}
    inputs = [i.name for i in model.graph.input if i.name not in initialized]
    settings = quantized(request, model) if form == "int8" else {}
    import onnx2tf

    try:
        onnx2tf.convert(
            input_onnx_file_path=source, output_folder_path="made", non_verbose=True, not_use_onnxsim=True,
            copy_onnx_input_output_names_to_tflite=True,
            # Else images would be asked for with their channels last, where the reference has them first.
            keep_shape_absolutely_input_names=inputs,
            **settings,
        )
    except (Exception, SystemExit) as e:  # the converter raises whatever its steps do
        raise refusal(e) from None
    made = [f for f in os.listdir("made") if f.endswith(SUFFIX[form]) and not (form == "int8" and "_full_" in f)]
    if len(made) != 1:
        raise Refused("tool_failed", f"onnx2tf left {', '.join(sorted(os.listdir('made'))) or 'nothing'} and no single {form} model")
    with open(os.path.join("made", made[0]), "rb") as f:
        content = f.read()
    if form == "int8":
        content = own_names(content)
        check_integers(content)
    write(request, "model.tflite", content)
    return {"engine": {"format": "tflite", "entry": "model.tflite"}}


def name_outputs(model):
    """Gives outputs that a node leaves out a name where others follow: the converter does not count them, and takes the last state of an
    LSTM for the states of all steps, and that of its cell for the last state."""
    for node in nodes_of(model.graph):
        for i, name in enumerate(node.output):
            if not name:
                node.output[i] = f"{next(o for o in node.output if o)}_left_out_{i}"


def keep_layout(model):
    """Puts an Identity behind each output that no node reads: the converter leaves what a convolution computes with its channels last,
    and turns it only for what reads it."""
    from onnx import helper

    read = {name for node in nodes_of(model.graph) for name in node.input}
    makers = {name: (node, i) for node in model.graph.node for i, name in enumerate(node.output)}
    for name in [output.name for output in model.graph.output if output.name in makers and output.name not in read]:
        inner = name + "_of_model"
        while inner in read or inner in makers:
            inner += "_"
        node, i = makers[name]
        node.output[i] = inner
        model.graph.node.append(helper.make_node("Identity", [inner], [name], name=inner + "_as_output"))


def quantized(request, model):
    """What the converter is told to quantize with: each input's calibration data in a file."""
    import numpy

    shards = inputs_of(request, "calibration")
    if not shards:
        raise Refused("bad_input", "form int8 needs calibration: inputs of role calibration")
    inputs = graph_inputs(model)
    other = [name for name, (dtype, _) in inputs.items() if dtype != numpy.dtype("float32")]
    if other:
        raise Refused("unsupported_format", f"form int8 of litert quantizes models whose inputs are float32, and {', '.join(other)} is not")
    feeds = list(cases(shards, inputs))
    data = []
    for i, name in enumerate(inputs):
        shapes = {feed[name].shape for feed in feeds}
        if len(shapes) != 1 or next(iter(shapes))[0] != 1:
            raise Refused("unsupported_format", f"form int8 of litert wants calibration cases of one size, and a batch of 1: {name} has {sorted(shapes)[:3]}")
        numpy.save(f"calibration-{i}.npy", numpy.concatenate([feed[name] for feed in feeds]))
        data.append([name, f"calibration-{i}.npy", 0.0, 1.0])  # mean and standard deviation: the data is as the model takes it
    return {"output_integer_quantized_tflite": True, "custom_input_op_name_np_data_path": data}


def own_names(content):
    """Gives outputs the names of the model, which the converter leaves to the tensors before their DEQUANTIZE."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph = model.subgraphs[0]
    ending = b"_dequantized_output"
    for tensor in [graph.tensors[i] for i in graph.outputs]:
        if not tensor.name.endswith(ending):
            continue
        name = tensor.name.removesuffix(ending)
        for other in graph.tensors:
            if other.name == name:
                other.name = name + b"_quantized_internal"
        for signature in model.signatureDefs or []:
            for output in signature.outputs:
                if output.name == tensor.name:
                    output.name = name
        tensor.name = name
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def check_integers(content):
    """What was asked for is there: no tensor is a float but those of inputs and outputs. Devices for integers alone
    take nothing else, and would leave the rest to the CPU."""
    import numpy
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, num_threads=1)
    edges = {d["index"] for d in (*interpreter.get_input_details(), *interpreter.get_output_details())}
    floats = [t["name"] for t in interpreter.get_tensor_details() if t["index"] not in edges and numpy.issubdtype(t["dtype"], numpy.floating)]
    if floats:
        raise Refused("unsupported_op", f"onnx2tf leaves floats inside: {', '.join(floats[:5])}")


def refusal(e):
    """The converter's complaint, short. It raises a general one from the one that says why."""
    e = e.__cause__ or e
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    message = lines[0][:300] if lines else type(e).__name__
    found = re.search(r"\bop(?:_type)?=([^\s,]+)", message)
    op = found[1] if found else None
    unsupported = "not support" in str(e).lower() or "unsupported" in str(e).lower() or op
    return Refused("unsupported_op" if unsupported else "tool_failed", f"onnx2tf: {message}", op=op)


class Engine(Flatbuffer):
    def allocate(self, shapes):
        try:
            super().allocate(shapes)
        except RuntimeError as e:
            raise unfit(str(e), shapes) from e


def unfit(said, shapes):
    """What LiteRT says of inputs that it finds no room for. It joins the lines of its complaint without a space."""
    said = " ".join(re.sub(r"(?<=\w)Node number", ". Node number", said).split())[:300].rstrip(".")
    out = ""
    if "XNNPack" in said:
        out = ". Without XNNPACK it may (load.options: experimental_op_resolver_type: BUILTIN_WITHOUT_DEFAULT_DELEGATES), or with one size for each dimension (shapes)"
    return Refused("bad_input", f"LiteRT cannot run the engine on inputs of shape {', '.join(str(list(s)) for s in shapes)}: {said}{out}")


def engine(path, threads, options):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = "AUTO"
    if options is not None:
        only(options, "num_threads", "experimental_op_resolver_type")
        threads, resolver = number(options, "num_threads"), options.get("experimental_op_resolver_type", resolver)
    return Engine(Interpreter(model_path=path, num_threads=threads, experimental_op_resolver_type=OpResolverType[resolver]))


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(engine)}, {"DecodeError": "bad_input"}))
