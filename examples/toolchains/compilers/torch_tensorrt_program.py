#!/bin/sh
''''exec "$(dirname -- "$0")/python" -s -B "$0" "$@" # '''
"""Compiles an ONNX model by Torch-TensorRT, for torch-tensorrt.yaml: torch_tensorrt_program.py MODEL OUT. onnx2torch makes it a module of PyTorch
first. It lies in the folder bin of a Python environment, beside its python. Open dimensions become 1, as with trtexec."""

import json
import os
import sys

import numpy
import onnx
import onnx2torch
import torch
import torch_tensorrt

if sys.argv[1] == "--version":
    print("torch_tensorrt", torch_tensorrt.__version__)
    sys.exit()

source, out = sys.argv[1:]
model = onnx.load(source)
fixed = {i.name for i in model.graph.initializer}
inputs = []
for value in model.graph.input:
    if value.name not in fixed:
        tensor = value.type.tensor_type
        dtype = numpy.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        inputs.append({"name": value.name, "dtype": dtype.name, "shape": [d.dim_value or 1 for d in tensor.shape.dim]})
given = [torch.from_numpy(numpy.zeros(i["shape"], i["dtype"])).to("cuda") for i in inputs]
module = torch_tensorrt.compile(onnx2torch.convert(model).eval().to("cuda"), ir="dynamo", arg_inputs=given, disable_tf32=True)
torch_tensorrt.save(module, os.path.join(out, "model.pt2"), output_format="exported_program", arg_inputs=given)
with open(os.path.join(out, "model.json"), "w", encoding="utf-8") as f:
    json.dump({"inputs": inputs, "outputs": [o.name for o in model.graph.output]}, f, sort_keys=True)
