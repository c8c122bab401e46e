"""Runs models of the Edge TPU, for edgetpu.yaml: run_edgetpu.py VERSION LIBRARY. LIBRARY is libedgetpu, the delegate of LiteRT that runs them. It was never
run on an Edge TPU: with a stand-in of LiteRT, and with the real LiteRT and a delegate that leaves all to the processor."""

import sys

import numpy
from ai_edge_litert.interpreter import Interpreter, load_delegate
from mlpromote_runner import Refused, main

VERSION, LIBRARY = sys.argv[1:]
OPERATOR = b"edgetpu-custom-op"  # what edgetpu_compiler puts in place of operators


class Engine:
    def __init__(self, path):
        with open(path, "rb") as f:
            if OPERATOR not in f.read():
                raise Refused("bad_input", "the model has no operator for the Edge TPU, so the processor would run it")
        self.interpreter = Interpreter(model_path=path, experimental_delegates=[load_delegate(LIBRARY)])
        self.interpreter.allocate_tensors()
        given, made = self.interpreter.get_input_details(), self.interpreter.get_output_details()
        self.index = {d["name"]: d["index"] for d in given}
        self.inputs = {d["name"]: (numpy.dtype(d["dtype"]), d["shape"].tolist()) for d in given}
        self.outputs, self.made = [d["name"] for d in made], [d["index"] for d in made]

    def run(self, feed):
        for name, array in feed.items():
            self.interpreter.set_tensor(self.index[name], array)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(index) for index in self.made]


def load(path, threads, options):
    if options:
        raise Refused("bad_input", f"the Edge TPU has no load options, and there are {', '.join(options)}")
    return Engine(path)


main({"edgetpu": VERSION}, load)
