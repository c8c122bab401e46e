"""What a runner in Python needs: it defines load, and ends with main.

    from mlpromote_runner import Refused, main

    class Engine:
        inputs = {"image": ("float32", [-1, 1, 8, 8])}   # numpy dtype and shape, -1 for an open dimension
        outputs = ["logits"]
        def run(self, feed): return [array for each output]

    def load(path, threads, options): return Engine(path)

    main({"acc": VERSION}, load)

options are the load options of the spec, by name; they are None for a fixed run, which gives the same bytes each time.
Raise Refused("bad_input", "...") for an engine or an option that the runtime does not take. mlpromote puts this module and those
that it imports in front of the program's own; they need numpy alone.
"""

import sys

import protocol
import running
from protocol import Refused

__all__ = ["Refused", "main"]


def main(tool, load):
    """Answers the one request of this process. tool has the versions of the runtime: {"acc": "2.1"}."""
    sys.exit(protocol.main({"probe": lambda request: {"tool": tool}, "run": running.run(load)}))
