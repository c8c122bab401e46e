"""Stands in for torch_tensorrt, by docs.pytorch.org/TensorRT: "Saving models compiled with Torch-TensorRT"."""

import onnx2torch
from conversation import tell, want

__version__ = "0.0.0+standin"


class GraphModule:
    def __init__(self, model):
        self.model = model


def compile(module, ir="default", arg_inputs=None, disable_tf32=False):
    tell("torch_tensorrt.compile", module, ir=ir, arg_inputs=arg_inputs, disable_tf32=disable_tf32)
    want(isinstance(module, onnx2torch.Module) and module.device == "cuda" and not module.training and ir == "dynamo" and disable_tf32, "a module that infers, on cuda")
    want([(t.device, t.shape) for t in arg_inputs] == [("cuda", (1, 4))], "inputs of a fixed size, on cuda")
    return GraphModule(module.model)


def save(module, file_path="", *, output_format="exported_program", arg_inputs=None):
    want(isinstance(module, GraphModule) and output_format == "exported_program" and arg_inputs, "save takes a compiled module and its inputs")
    tell("torch_tensorrt.save", module, output_format=output_format, arg_inputs=arg_inputs)
    with open(file_path, "wb") as f:
        f.write(b"of a stand-in, not of Torch-TensorRT\n" + module.model.SerializeToString())
