"""Driver for LiteRT (TensorFlow Lite), protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, to model.tflite, by onnx2tf,
         which writes the flatbuffer itself: no TensorFlow is involved.
run      such engines on cases.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from interpreting import Flatbuffer  # noqa: E402
from protocol import Refused, main, model_of, options_of, versions, write  # noqa: E402
from running import number, only, run  # noqa: E402


def probe(_request):
    return versions("ai-edge-litert", "onnx2tf", "onnx", "numpy")


def compile_(request):
    options_of(request, {})
    import onnx

    model = onnx.load(model_of(request))
    source = "model.onnx"  # a copy in the working directory, since the converter writes to its input
    onnx.save(model, source)
    initialized = {i.name for i in model.graph.initializer}
    inputs = [i.name for i in model.graph.input if i.name not in initialized]
    import onnx2tf

    try:
        onnx2tf.convert(
            input_onnx_file_path=source, output_folder_path="made", non_verbose=True, not_use_onnxsim=True,
            copy_onnx_input_output_names_to_tflite=True,
            # Else images would be asked for with their channels last, where the reference has them first.
            keep_shape_absolutely_input_names=inputs,
        )
    except (Exception, SystemExit) as e:  # the converter raises whatever its steps do
        raise refusal(e) from None
    made = [f for f in os.listdir("made") if f.endswith("_float32.tflite")]
    if len(made) != 1:
        raise Refused("tool_failed", f"onnx2tf left {', '.join(sorted(os.listdir('made'))) or 'nothing'} and no single float32 model")
    with open(os.path.join("made", made[0]), "rb") as f:
        write(request, "model.tflite", f.read())
    return {"engine": {"format": "tflite", "entry": "model.tflite"}}


def refusal(e):
    """The converter's complaint, short."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    message = lines[0][:300] if lines else type(e).__name__
    op = message.partition("op=")[2].split(",")[0].split()[0] if "op=" in message else None
    unsupported = "not support" in str(e).lower() or "unsupported" in str(e).lower() or op
    return Refused("unsupported_op" if unsupported else "tool_failed", f"onnx2tf: {message}", op=op)


def engine(path, threads, options):
    from ai_edge_litert.interpreter import Interpreter

    if options is not None:
        only(options, "num_threads")
        threads = number(options, "num_threads")
    return Flatbuffer(Interpreter(model_path=path, num_threads=threads))


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(engine)}, {"DecodeError": "bad_input"}))
