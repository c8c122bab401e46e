"""A network of named layers for tests, and faults in single layers of it.

layers.py make MODEL CASES        writes the network and cases for it
layers.py fault KIND NODE MODEL   damages a node: coarse weights, or another epsilon
"""

import sys

import numpy
import onnx
from onnx import helper, numpy_helper


def weights(name, array):
    return numpy_helper.from_array(numpy.asarray(array, numpy.float32), name)


def make(model, cases):
    random = numpy.random.default_rng(7)
    nodes, inits, from_ = [], [], "x"
    for n in (1, 2, 3):
        inits += [weights(f"w{n}", random.normal(0, 0.3, (16, 16))), weights(f"scale{n}", random.uniform(0.8, 1.2, 16)), weights(f"shift{n}", random.normal(0, 0.1, 16))]
        nodes += [
            helper.make_node("MatMul", [from_, f"w{n}"], [f"product{n}"], name=f"dense{n}"),
            helper.make_node("LayerNormalization", [f"product{n}", f"scale{n}", f"shift{n}"], [f"normal{n}"], name=f"norm{n}", epsilon=1e-5),
            helper.make_node("Tanh", [f"normal{n}"], [f"active{n}"], name=f"tanh{n}"),
        ]
        from_ = f"active{n}"
    inits.append(weights("w4", random.normal(0, 0.3, (16, 4))))
    nodes.append(helper.make_node("MatMul", [from_, "w4"], ["y"], name="dense4"))
    graph = helper.make_graph(
        nodes, "layers", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 16])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 4])], inits,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    x = random.normal(0, 1, (24, 16)).astype("<f4")
    header = b'{"x":{"dtype":"F32","shape":[24,16],"data_offsets":[0,%d]}}' % x.nbytes
    header += b" " * (-len(header) % 8)
    with open(cases, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header + x.tobytes())


def fault(kind, name, path):
    model = onnx.load(path)
    node = next(n for n in model.graph.node if n.name == name)
    if kind == "epsilon":
        for attribute in node.attribute:
            if attribute.name == "epsilon":
                attribute.f = 0.3
    elif kind == "coarse":
        for init in model.graph.initializer:
            if init.name == node.input[1]:
                array = numpy_helper.to_array(init)
                step = abs(array).max() / 2
                init.CopyFrom(weights(init.name, numpy.round(array / step) * step))
    onnx.save(model, path)


{"make": make, "fault": fault}[sys.argv[1]](*sys.argv[2:])
