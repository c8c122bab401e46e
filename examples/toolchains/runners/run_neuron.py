"""Runs NEFF files of AWS Neuron, for neuron.yaml: run_neuron.py VERSION, by nrtpy, AWS' Python layer over the Neuron runtime. A NEFF does not keep the names and
types of the model's tensors, which names.json beside it has. It was never run on a NeuronCore: only with a stand-in of nrtpy.

Unknown here: what neuronx-cc calls the tensors of a NEFF. Where they have not the model's names, they are taken in the order of their numbers, as in
input0 and input1, which is the order of the parameters of the HLO."""

import json
import os
import re
import sys
from importlib import metadata

import numpy
from mlpromote_runner import Refused, main
from nrtpy import NrtpyModel, NrtpyTensor


def named(names, infos):
    """The model's names with those of the NEFF."""
    if len(names) != len(infos):
        raise Refused("bad_input", f"the NEFF has the tensors {', '.join(infos)}, and the model {', '.join(names)}")
    if set(names) == set(infos):
        return {name: name for name in names}
    return dict(zip(names, sorted(infos, key=lambda name: [int(n) for n in re.findall("[0-9]+", name)])))


class Engine:
    def __init__(self, path):
        with open(os.path.join(os.path.dirname(path), "names.json"), encoding="utf-8") as f:
            about = json.load(f)
        self.model = NrtpyModel.load_from_neff(path)
        self.inputs = {i["name"]: (i["dtype"], i["shape"]) for i in about["inputs"]}
        self.outputs, self.made = [o["name"] for o in about["outputs"]], about["outputs"]
        self.given, self.found = named(list(self.inputs), self.model.input_tensors_info), named(self.outputs, self.model.output_tensors_info)

    def run(self, feed):
        feed = {self.given[name]: NrtpyTensor.from_numpy(numpy.ascontiguousarray(array), name=self.given[name]) for name, array in feed.items()}
        found = self.model(inputs=feed)
        # The runtime does not always know the type of what it allocates.
        return [found[self.found[o["name"]]].numpy().view(o["dtype"]).reshape(o["shape"]) for o in self.made]


def load(path, threads, options):
    if options:
        raise Refused("bad_input", f"Neuron has no load options here, and there are {', '.join(options)}")
    return Engine(path)


main({"neuron": sys.argv[1], "nrtpy": metadata.version("nrtpy")}, load)
