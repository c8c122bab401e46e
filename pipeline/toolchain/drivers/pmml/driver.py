"""Driver for PMML, protocol mlpromote.driver/v1. Verbs:

probe   versions of the tools.
import  role "model", one file source.pmml, to model.onnx. Its input is "input", float32
        [batch, fields]: the active fields of the model in their order, where NaN is a missing
        value. A classifier has the outputs label int64 [batch] and probabilities float32
        [batch, classes]; a regression has variable float32 [batch, 1].
run     such a file on cases: what evaluate.py computes by the rules of the standard, in
        double precision.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.setrecursionlimit(20_000)  # of trees as deep as documents may be

from document import Document  # noqa: E402
from evaluate import Evaluator, check_records  # noqa: E402
from graph import convert  # noqa: E402
from protocol import Refused, inputs_of, main, options_of, versions, write  # noqa: E402
from running import run  # noqa: E402
from trees import Engine  # noqa: E402


def probe(_request):
    return versions("numpy", "onnx", "defusedxml")


def import_(request):
    options_of(request, {})
    files = inputs_of(request, "model")
    if len(files) != 1:
        raise Refused("bad_input", f"{len(files)} inputs of role model, expected one")
    document = Document(files[0]["path"])
    model = convert(document)
    records = check_records(document)
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"model": document.kind, "by": document.application, "records": records, "names": document.names()}


def engine(path):
    document = Document(path)
    evaluator = Evaluator(document)
    outputs = ["label", "probabilities"] if document.classes else ["variable"]
    return Engine(len(document.fields), outputs, evaluator.predict)


def run_(request):
    options_of(request, {})
    return run(lambda path, _threads, _options: engine(path))(request)


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "run": run_}))
