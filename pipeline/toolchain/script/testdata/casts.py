"""Makes float64 of the constants of a model, which a Cast makes float32 again: casts.py MODEL MADE."""

import sys

import onnx
from onnx import TensorProto, helper, numpy_helper

model = onnx.load(sys.argv[1])
casts = []
for tensor in model.graph.initializer:
    if tensor.data_type != TensorProto.FLOAT:
        continue
    double = numpy_helper.from_array(numpy_helper.to_array(tensor).astype("float64"), tensor.name + "_double")
    casts.append(helper.make_node("Cast", [double.name], [tensor.name], name=tensor.name + "_cast", to=TensorProto.FLOAT))
    tensor.CopyFrom(double)
nodes = [*casts, *model.graph.node]
del model.graph.node[:]
model.graph.node.extend(nodes)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, sys.argv[2])
