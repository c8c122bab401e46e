"""Runs programs of Torch-TensorRT, for torch-tensorrt.yaml: model.pt2, which torch_tensorrt.save wrote, with the names of its tensors in model.json
beside it. It was never run on a GPU: only with stand-ins of the packages."""

import json
import os

import numpy
import torch
import torch_tensorrt  # which knows the operator that holds an engine
from mlpromote_runner import Refused, main


class Engine:
    def __init__(self, path):
        with open(os.path.join(os.path.dirname(path), "model.json"), encoding="utf-8") as f:
            about = json.load(f)
        self.inputs = {i["name"]: (i["dtype"], i["shape"]) for i in about["inputs"]}
        self.outputs = about["outputs"]
        self.module = torch.export.load(path).module()

    def run(self, feed):
        # A copy, since PyTorch takes no arrays that cannot be written to.
        given = [torch.from_numpy(numpy.array(feed[name])).to("cuda") for name in self.inputs]
        with torch.no_grad():
            found = self.module(*given)
        found = found if isinstance(found, (tuple, list)) else [found]
        return [tensor.cpu().numpy() for tensor in found]  # cpu() waits for the device


def load(path, threads, options):
    if options:
        raise Refused("bad_input", f"Torch-TensorRT has no load options here, and there are {', '.join(options)}")
    return Engine(path)


main({"torch-tensorrt": torch_tensorrt.__version__.partition("+")[0], "torch": torch.__version__.partition("+")[0]}, load)
