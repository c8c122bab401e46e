"""Writes ONNX models into this folder that have most operators that the toolchain xla translates, with seeded weights."""

import numpy as np
import onnx
from ml_dtypes import int4
from onnx import TensorProto, helper, numpy_helper

random = np.random.RandomState(0)
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def weights(*shape):
    return random.randn(*shape).astype(np.float32)


def save(name, inputs, outputs, constants, *nodes, opset=17):
    """nodes are "Kind inputs -> outputs" with attributes behind them."""
    made = []
    for text, attributes in nodes:
        words, results = (side.split() for side in text.split("->"))
        made.append(helper.make_node(words[0], words[1:], results, **attributes))
    values = [[helper.make_tensor_value_info(n, t, s) for n, t, s in side] for side in (inputs, outputs)]
    graph = helper.make_graph(made, name, *values, [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(model, strict_mode=True), name + ".onnx")


def floats(*names):
    return [(n, FLOAT, None) for n in names]


save("shapes", [("x", FLOAT, ["n", 2, 3])], floats("y"),
     {"zero": np.array(0), "first": np.array([0]), "rest": np.array([-1]), "w": weights(6, 4), "c": weights(4)},
     ("Shape x -> s", {}), ("Gather s zero -> b", {"axis": 0}), ("Unsqueeze b first -> b1", {}), ("Concat b1 rest -> to", {"axis": 0}),
     ("Reshape x to -> f", {}), ("MatMul f w -> m", {}), ("Add m c -> a", {}), ("Erf a -> y", {}))
POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}
save("layers", [("x", FLOAT, [1, 4, 8, 8])], floats("a", "b", "c", "d", "e"), {"w": weights(4, 3, 3, 3), "k": weights(6, 2, 4, 4)},
     ("AveragePool x -> a", {**POOL, "pads": [1, 1, 1, 1]}), ("AveragePool x -> b", {**POOL, "pads": [1, 1, 1, 1], "count_include_pad": 1}),
     ("MaxPool x -> c", {**POOL, "ceil_mode": 1}), ("ConvTranspose x w -> d", {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
     ("Conv x k -> e", {"auto_pad": "SAME_LOWER", "group": 2}))
save("norms", [("x", FLOAT, ["n", 5, 8])], [*floats("m", "p", "z", "r", "q"), ("i", INT64, None)],
     {"g": weights(8), "b": weights(8), "from": np.array([1]), "to": np.array([2**62]), "one": np.array([1]), "pads": np.array([0, 1, 0, 0, 0, 2]),
      "low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32), "sizes": np.array([3, 8])},
     ("LayerNormalization x g b -> l", {"axis": -1}), ("Softmax l -> s", {"axis": 1}), ("ReduceMean s -> m", {"axes": [1], "keepdims": 0}),
     ("Slice x from to one -> t", {}), ("Pad t pads -> p", {}), ("Split x -> u v", {"axis": 2}), ("Greater u v -> more", {}), ("Where more u v -> z", {}),
     ("Clip x low high -> c", {}), ("ReduceSum c -> r", {"keepdims": 1}), ("ArgMax x -> i", {"axis": 2}), ("Expand g sizes -> q", {}))
save("bytes", [("x", FLOAT, ["n", 6])], floats("y", "d"),
     {"w": random.randint(-127, 127, (6, 3)).astype(np.int8), "scale": np.array([0.1, 0.2, 0.1, 0.1, 0.3, 0.05], np.float32), "zero": np.array([1, 0, 3, 0, 0, 9], np.int8)},
     ("DynamicQuantizeLinear x -> q s z", {}), ("MatMulInteger q w z -> i", {}), ("Cast i -> f", {"to": FLOAT}), ("Mul f s -> y", {}),
     ("QuantizeLinear x scale zero -> ql", {"axis": 1}), ("DequantizeLinear ql scale zero -> d", {"axis": 1}), opset=21)
save("tokens", [("i", INT64, ["batch", "tokens"])], [*floats("y", "t"), ("d", INT64, None)],
     {"table": weights(9, 4), "none": np.array(0), "last": np.array([2]), "small": weights(2, 3), "where": np.array([[0, -1], [2, 1]]), "times": np.array([1, 2]), "three": np.array(3)},
     ("Gather table i -> e", {"axis": 0}), ("Equal i none -> q", {}), ("Not q -> n", {}), ("Cast n -> f", {"to": FLOAT}), ("Unsqueeze f last -> u", {}), ("Mul e u -> y", {}),
     ("GatherElements small where -> g", {"axis": 1}), ("Tile g times -> t", {}), ("Div i three -> d", {}))
save("places", [("i", INT64, ["batch", "tokens"])], floats("y"),
     {"words": weights(9, 4), "table": weights(6, 4), "first": np.array([0]), "second": np.array([1]), "axis": np.array([0])},
     ("Shape i -> s", {}), ("Gather s second -> n", {}), ("Slice table first n axis -> p", {}), ("Gather words i -> e", {"axis": 0}), ("Add e p -> y", {}))
save("blocks", [("x", FLOAT, ["n", 6])], floats("y"),
     {"w": random.randint(-8, 8, (6, 3)).astype(int4), "scale": np.abs(weights(2, 3)), "zero": random.randint(-8, 8, (2, 3)).astype(int4)},
     ("DequantizeLinear w scale zero -> d", {"axis": 0, "block_size": 4}), ("MatMul x d -> y", {}), opset=21)
save("sizes", [("x", FLOAT, ["n"]), ("to", INT64, [2])], floats("y"), {}, ("Reshape x to -> y", {}))
save("loop", [("x", FLOAT, [4])], floats("y"), {}, ("Mish x -> m", {}), ("Hardmax m -> y", {}), opset=18)
