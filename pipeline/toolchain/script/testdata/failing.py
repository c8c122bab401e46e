"""A driver whose engines fail on the values of a case: failing.py COMMON."""

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


sys.exit(main({"run": run(Engine)}))
