"""Driver for llama.cpp, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one file source.gguf. Leaves model.gguf, the same bytes: llama.cpp loads such files as they are.
run      such files on cases: input_ids, int64 [batch, sequence], to logits, float32 [batch, sequence, tokens of the vocabulary].
"""

import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from library import Library, MOST_TOKENS  # noqa: E402
from protocol import Refused, main, model_of, options_of, output_path, versions  # noqa: E402
from running import number, only, run  # noqa: E402


def probe(_request):
    return versions("xllamacpp", "numpy")


def compile_(request):
    options_of(request, {})
    made = output_path(request, "model.gguf")
    shutil.copyfile(model_of(request, ".gguf"), made)
    Engine(made, 1, None)
    return {"engine": {"format": "gguf", "entry": "model.gguf"}}


class Engine:
    """A model, and the context that it computes in, which is made again when a case is longer than it."""

    def __init__(self, path, threads, options):
        import numpy

        if options is not None:
            only(options, "n_threads", "n_ubatch")
        self.threads, self.ubatch = (threads, None) if options is None else (number(options, "n_threads"), number(options, "n_ubatch"))
        self.numpy, self.library, self.context, self.room = numpy, Library(), None, 0
        self.model = self.library.model(path)
        self.inputs, self.outputs = {"input_ids": (numpy.dtype("int64"), [-1, -1])}, ["logits"]

    def run(self, feed):
        rows = feed["input_ids"]
        trained, tokens = self.library.trained(self.model), self.library.tokens(self.model)
        most = min(trained, MOST_TOKENS) if trained > 0 else MOST_TOKENS
        if rows.shape[1] == 0 or rows.shape[1] > most:
            raise Refused("bad_input", f"a case has {rows.shape[1]} tokens: expected 1 to {most}")
        if rows.size and (rows.min() < 0 or rows.max() >= tokens):
            wrong = rows.min() if rows.min() < 0 else rows.max()
            raise Refused("bad_input", f"a case has the token {wrong}: the vocabulary has those from 0 to {tokens - 1}")
        if rows.shape[1] > self.room:
            self.library.free(self.context)
            self.context = None
            self.room = rows.shape[1]
            self.context = self.library.context(self.model, self.room, self.threads, self.ubatch)
        made = self.numpy.empty((*rows.shape, tokens), self.numpy.float32)
        for row, logits in zip(rows, made):
            self.library.decode(self.context, row.astype(self.numpy.int32), logits)
        return [made]

    def __del__(self):
        if hasattr(self, "model"):
            self.library.free(self.context)
            self.library.free_model(self.model)


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(Engine)}))
