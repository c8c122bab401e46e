"""Runs models of Vitis AI on a DPU, for vitis-ai.yaml: run_vitis_ai.py VERSION, by VART. A DPU takes and makes 8 bits with a fixed point, which the tensors of
the model name. It was never run on a DPU: only with stand-ins of xir and vart.

Unknown here: what a quantizer calls the tensors of an .xmodel. This takes the names of the model, with _fix after them. Images of an .xmodel have their
channels last; those of the cases have them first."""

import sys

import numpy
import vart
import xir
from mlpromote_runner import Refused, main


def first(dims):
    """The shape of a tensor for one case, channels first."""
    return [1, dims[3], dims[1], dims[2]] if len(dims) == 4 else [1, *dims[1:]]


class Engine:
    def __init__(self, path):
        self.graph = xir.Graph.deserialize(path)  # it has to outlive its subgraphs
        parts = self.graph.get_root_subgraph().toposort_child_subgraph()
        parts = [p for p in parts if p.has_attr("device") and p.get_attr("device").upper() in ("DPU", "CPU")]
        if [p.get_attr("device").upper() for p in parts] != ["DPU"]:
            raise Refused("unsupported_format", "this runner takes models that one DPU subgraph computes, and none on the processor")
        self.runner = vart.Runner.create_runner(parts[0], "run")
        self.given, self.made = self.runner.get_input_tensors(), self.runner.get_output_tensors()
        self.inputs = {t.name.removesuffix("_fix"): ("float32", first(t.dims)) for t in self.given}
        self.outputs = [t.name.removesuffix("_fix") for t in self.made]

    def run(self, feed):
        # A DPU with several cores takes as many cases: the others stay 0.
        given, made = ([numpy.zeros(tuple(t.dims), numpy.int8) for t in tensors] for tensors in (self.given, self.made))
        for tensor, room, array in zip(self.given, given, feed.values()):
            array = array.transpose(0, 2, 3, 1) if array.ndim == 4 else array
            room[0] = numpy.clip(numpy.rint(array[0] * 2.0 ** tensor.get_attr("fix_point")), -128, 127)
        self.runner.wait(self.runner.execute_async(given, made))
        found = [(room[:1] * 2.0 ** -tensor.get_attr("fix_point")).astype("float32") for tensor, room in zip(self.made, made)]
        return [array.transpose(0, 3, 1, 2) if array.ndim == 4 else array for array in found]


def load(path, threads, options):
    if options:
        raise Refused("bad_input", f"Vitis AI has no load options here, and there are {', '.join(options)}")
    return Engine(path)


main({"vitis-ai": sys.argv[1]}, load)
