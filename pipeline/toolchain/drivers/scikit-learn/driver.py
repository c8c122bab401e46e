"""Driver for scikit-learn, protocol mlpromote.driver/v1. Verbs:

probe   versions of the tools.
import  role "model", one file source.skops or source.pickle with a fitted estimator, to
        model.onnx, by skl2onnx. One that takes a matrix of numbers has the input "input",
        float32 [batch, features]. One that selects columns of a table by name has an input
        [batch, 1] for each column that it reads, of float32, int64 or text.
run     such a file on cases: what scikit-learn itself predicts, under the names of the
        outputs of model.onnx.

Option trusted: types in a skops file that may be loaded although skops does not know them.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from convert import convert, names  # noqa: E402
from loading import load  # noqa: E402
from predict import Engine  # noqa: E402
from protocol import Refused, inputs_of, main, options_of, versions, write  # noqa: E402
from running import run  # noqa: E402


def probe(_request):
    return versions("scikit-learn", "skops", "skl2onnx", "onnx", "numpy")


def import_(request):
    trusted = trusted_of(request)
    files = inputs_of(request, "model")
    if len(files) != 1:
        raise Refused("bad_input", f"{len(files)} inputs of role model, expected one")
    estimator = load(files[0]["path"], trusted)
    model, outputs = convert(estimator)
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"estimator": f"{type(estimator).__module__}.{type(estimator).__qualname__}", "outputs": outputs, "names": names(estimator, outputs)}


def run_(request):
    trusted = trusted_of(request)
    return run(lambda path, _threads, _options: Engine(load(path, trusted)))(request)


def trusted_of(request):
    return options_of(request, {"trusted": []})["trusted"]


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "run": run_}))
