"""Driver for TensorFlow, protocol mlpromote.driver/v1. Verbs:

probe   versions of the tools.
import  role "model", either one file source.tflite or source.keras, or the files of a
        SavedModel below source/, to model.onnx, by tf2onnx. Inputs and outputs are called as the signature
        of the model calls them; of several, as serving_default does.
run     such a model on cases: what TensorFlow's interpreter of .tflite files, Keras, or
        TensorFlow itself, predicts.
"""

import os
import sys

# Read when TensorFlow is imported. oneDNN would round otherwise from one processor to the next.
os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import flatbuffer  # noqa: E402
import kerasfile  # noqa: E402
import savedmodel  # noqa: E402
from protocol import Refused, inputs_of, main, options_of, versions, write  # noqa: E402
from running import run  # noqa: E402


def probe(_request):
    return versions("tensorflow-cpu", "tf2onnx", "onnx", "numpy")


def import_(request):
    options_of(request, {})
    entries = [i["path"] for i in inputs_of(request, "model") if i["name"] in ("source.tflite", "source.keras", "source/saved_model.pb")]
    if len(entries) != 1:
        raise Refused("bad_input", f"{len(entries)} inputs of role model are source.tflite, source.keras or source/saved_model.pb, expected one")
    model = kind(entries[0]).convert(entries[0])
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"operators": len(model.graph.node)}


def run_(request):
    options_of(request, {})
    return run(lambda path, threads, _options: kind(path).Engine(path, threads))(request)


def kind(path):
    """The module that knows files of this name."""
    return {".tflite": flatbuffer, ".keras": kerasfile}.get(os.path.splitext(path)[1], savedmodel)


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "run": run_}))
