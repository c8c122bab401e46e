"""A driver whose engines fail on the values of a case, and whose tools throw: failing.py COMMON."""

import sys

sys.path.insert(0, sys.argv[1])

from protocol import Refused, main
from running import run


class Engine:
    def __init__(self, path, threads, load):
        self.inputs, self.outputs = {"x": ("float32", [1])}, ["x"]

    def run(self, feed):
        if feed["x"][0] == 4:
            raise ValueError("no value for 4")
        if feed["x"][0] == 5:
            raise Refused("unsupported_op", "no kernel", op="Mul", dtype="float16")
        return [feed["x"]]


class Node:
    name, op_type = "conv1", "Conv"


def quantize_node(node):
    raise ValueError("no scale for an empty range")


def quantize(request):
    quantize_node(Node())


def compile_(request):
    raise KeyError("shape")


def compress(request):
    raise Refused("bad_input", "nothing to prune")


sys.exit(main({"run": run(Engine), "quantize": quantize, "compile": compile_, "compress": compress}, {"KeyError": "bad_input"}))
