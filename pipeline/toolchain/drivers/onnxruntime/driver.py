"""Driver for ONNX Runtime's quantizers, protocol mlpromote.driver/v1. Verbs:

probe     versions of the tools.
run       a model and cases, by ONNX's reference evaluator: see evaluator.py. Engines are run
          by another program.
import    role "model", one .onnx file and its external data, to model.onnx: the same graph
          with the shapes of all outputs, and with option simplify as onnxslim leaves it.
          With option expose, names of inner tensors, the graph as it is with these as
          outputs; with option inner its tensors are listed, see inner.py.
quantize  by method. Inputs: role "model", one .onnx file and its external data. Leaves
          model.onnx, whose inputs and outputs are those of the model.
          static-int8   role "calibration" besides: safetensors shards whose tensors are
                        named as the model's inputs and have a leading case dimension; or
                        role "ranges", a calibration.json of an earlier run, from which
                        the same bytes are made. Leaves calibration.json, the range of
                        every activation.
          dynamic-int8  ranges of activations are taken anew on every run.
          weights-int4  4-bit weights of matrix products in blocks, activations as they are.
                        Algorithm rtn rounds them to nearest, hqq looks for the zero points
                        with the smallest errors (symmetric is false then).
          fp16          weights and activations in half precision; operators that have
                        none, inputs and outputs stay as they are. With rtol or atol and
                        role "calibration", operators go back to float32 until the outputs
                        on its first cases are within that.
          With option sensitivity, in seconds, and role "cases", the int8 methods say besides
          what each node costs, as far as they come in that time, those with the most weights
          first: the signal to noise ratio of the outputs when the node alone is quantized.
          With option layers, likewise, what each layer costs in the order of the graph: the ratio
          when it and all before it are quantized, when it alone is, and when all but it are.
compress  by method, another function with fewer numbers: see compress.py. Input: role "model", one .onnx file and its
          external data. Leaves model.onnx, with model.onnx.data if it is large.
          prune     by pattern. unstructured: an amount of the smallest weights of each layer become
                    zero. 2:4: two of every four weights along the axis that is summed over do.
                    channels: an amount of the channels of each layer are removed, where all that
                    follows can go without them.
          low-rank  one layer becomes two of a rank, or of the smallest rank that keeps an energy:
                    the sum of the squares of the singular values.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from compress import compress  # noqa: E402
from evaluator import run  # noqa: E402
from halves import halve  # noqa: E402
from imports import import_  # noqa: E402
from integers import quantize_dynamic, quantize_static  # noqa: E402
from protocol import Refused, main, options_of, versions  # noqa: E402
from weights import quantize_weights  # noqa: E402

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
    "sensitivity": 0.0,
    "layers": 0.0,
    "algorithm": "rtn",
    "block_size": 32,
    "symmetric": True,
    "rtol": 0.0,
    "atol": 0.0,
}
CHOICES = {
    "method": ("static-int8", "dynamic-int8", "weights-int4", "fp16"),
    "observer": ("minmax", "entropy", "percentile"),
    "activation_type": ("uint8", "int8"),
    "weight_type": ("int8", "uint8"),
    "format": ("qdq", "qoperator"),
    "algorithm": ("rtn", "hqq"),
    "block_size": (16, 32, 64, 128, 256),
}
# How each method is done, and which options mean something to it besides the method.
METHODS = {
    "static-int8": (quantize_static, (
        "observer", "percentile", "per_channel", "reduce_range", "activation_type", "weight_type", "format", "exclude_nodes", "op_types",
        "sensitivity", "layers")),
    "dynamic-int8": (quantize_dynamic, ("per_channel", "reduce_range", "weight_type", "exclude_nodes", "op_types", "sensitivity", "layers")),
    "weights-int4": (quantize_weights, ("algorithm", "block_size", "symmetric", "format", "exclude_nodes")),
    "fp16": (halve, ("exclude_nodes", "rtol", "atol")),
}


def chosen_options(request):
    """The options that mean something to the method."""
    chosen = options_of(request, DEFAULTS, CHOICES)
    apply = ("method", *METHODS[chosen["method"]][1])
    given = request.get("options") or {}
    for name in given:
        if name not in apply:
            raise Refused("bad_input", f"option {name} means nothing to method {chosen['method']}: it has {', '.join(apply)}")
    if chosen["algorithm"] == "hqq":
        if given.get("symmetric"):
            raise Refused("bad_input", "option symmetric is True: algorithm hqq always has zero points")
        chosen["symmetric"] = False
    if not 50 < chosen["percentile"] <= 100:
        raise Refused("bad_input", f"option percentile is {chosen['percentile']}: want more than 50 and at most 100")
    for name in ("rtol", "atol", "sensitivity", "layers"):
        if chosen[name] < 0:
            raise Refused("bad_input", f"option {name} is {chosen[name]}: want no less than 0")
    return {name: chosen[name] for name in DEFAULTS if name in apply}


def quantize(request):
    options = chosen_options(request)
    return {**METHODS[options["method"]][0](request, options), "options": options}


def probe(_request):
    return versions("onnxruntime", "onnx", "onnxslim", "numpy")


# Classes of onnxruntime's errors that say what is wrong with the model.
KINDS = {"NotImplemented": "unsupported_op", "InvalidGraph": "bad_input", "InvalidProtobuf": "bad_input", "InvalidArgument": "bad_input"}

if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "quantize": quantize, "compress": compress, "run": run}, KINDS))
