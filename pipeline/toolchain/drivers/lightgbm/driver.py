"""Driver for LightGBM, protocol mlpromote.driver/v1. Verbs:

probe   versions of the tools.
import  role "model", one file source.lightgbm, which Booster.save_model wrote, to model.onnx.
        Its input is "input", float32 [batch, features]. A classifier has the outputs label
        int64 [batch] and probabilities float32 [batch, classes]; all else has variable
        float32 [batch, 1], and rankings scores.
run     such a file on cases: what LightGBM itself predicts.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from boosted import Booster  # noqa: E402
from protocol import Refused, inputs_of, main, options_of, versions, write  # noqa: E402
from running import run  # noqa: E402


def probe(_request):
    return versions("lightgbm", "onnx", "numpy")


def import_(request):
    options_of(request, {})
    files = inputs_of(request, "model")
    if len(files) != 1:
        raise Refused("bad_input", f"{len(files)} inputs of role model, expected one")
    booster = Booster(files[0]["path"])
    booster.load()
    write(request, "model.onnx", booster.onnx().SerializeToString(deterministic=True))
    return {"objective": booster.objective, "trees": len(booster.trees), "names": booster.names()}


def run_(request):
    options_of(request, {})
    return run(lambda path, threads, _options: Booster(path).engine(threads))(request)


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "run": run_}))
