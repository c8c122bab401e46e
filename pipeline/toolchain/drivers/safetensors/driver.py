"""Driver for weights in safetensors, protocol mlpromote.driver/v1. Verbs:

probe   versions of the tools.
import  role "model", one file source.safetensors, to model.onnx, as the options declare
        its architecture. Its input is "input", float32 [batch, ...], its output "output".
run     such a file on cases: what numpy computes of the weights, in double precision.

Options: kind mlp, cnn or encoder; input, the shape of one case without the batch; layers,
in order; for an encoder, whose input is int64 [batch, tokens], heads and whether a block
normalizes before or after its parts, and its layers are those of encoder.Encoder. Else words of layers.WORDS, and names of weights. NAME.weight of two dimensions
[out, in] is a dense layer, of four [out, in, height, width] a convolution with stride 1
that keeps the size; NAME.bias may be there.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from encoder import Encoder  # noqa: E402
from layers import network  # noqa: E402
from protocol import Refused, inputs_of, main, options_of, versions, write  # noqa: E402
from running import run  # noqa: E402
from tensors import read_shard  # noqa: E402

DEFAULTS = {"kind": "mlp", "input": [], "layers": [], "heads": 0, "norm": "after"}


def probe(_request):
    return versions("numpy", "onnx")


def declared(request, weights):
    options = options_of(request, DEFAULTS, {"kind": ("mlp", "cnn", "encoder"), "norm": ("after", "before")})
    try:
        shape = [int(n) for n in options["input"]]
    except ValueError:
        raise Refused("bad_input", f"input is {options['input']}: want sizes") from None
    if options["kind"] == "encoder":
        return Encoder(shape, options["layers"], weights, options["heads"], options["norm"])
    return network(options["kind"], shape, options["layers"], weights)


def import_(request):
    files = inputs_of(request, "model")
    if len(files) != 1:
        raise Refused("bad_input", f"{len(files)} inputs of role model, expected one")
    weights = read_shard(files[0])
    net = declared(request, weights)
    unused = sorted(set(weights) - net.used)
    if unused:
        raise Refused("bad_input", f"the file has weights that no layer takes: {', '.join(unused[:8])}: name all layers, in order")
    import onnx

    model = net.onnx()
    onnx.checker.check_model(model, full_check=True)
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"parameters": net.parameters}


class Engine:
    outputs = ["output"]
    any_numbers = True

    def __init__(self, net):
        import numpy

        self.net = net
        self.inputs = {"input": (numpy.dtype(net.dtype), [-1, *net.shapes[0]])}

    def run(self, feed):
        return [self.net.forward(feed["input"])]


def run_(request):
    files = {i["path"]: i for i in inputs_of(request, "model")}
    return run(lambda path, _threads, _options: Engine(declared(request, read_shard(files[path]))))(request)


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "run": run_}))
