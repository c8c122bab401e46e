"""Files of the trained network: ONNX for the model, safetensors for the cases.

Both functions return bytes that depend on their arguments alone: no time, no
producer, no path.
"""

import json
import struct

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

import network

OPSET = 17
IR_VERSION = 8  # the one of opset 17; old runtimes refuse a newer one


class Graph:
    """Nodes and initializers in the making. Every node is named after its one output."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def dense(self, layer, x, name):
        product = self.node("MatMul", [x, self.constant(name + ".weight", layer.weight.value)], name + ".product")
        return self.node("Add", [product, self.constant(name + ".bias", layer.bias.value)], name)

    def norm(self, layer, x, name):
        scale = self.constant(name + ".scale", layer.scale.value)
        shift = self.constant(name + ".shift", layer.shift.value)
        return self.node("LayerNormalization", [x, scale, shift], name, axis=-1, epsilon=network.EPSILON)

    def heads(self, x, permutation, name):
        cut = self.node("Reshape", [x, "heads"], name + ".cut")
        return self.node("Transpose", [cut], name + ".heads", perm=permutation)

    def attention(self, layer, x, name):
        query = self.heads(self.dense(layer.query, x, name + ".query"), [0, 2, 1, 3], name + ".query")
        key = self.heads(self.dense(layer.key, x, name + ".key"), [0, 2, 3, 1], name + ".key")
        value = self.heads(self.dense(layer.value, x, name + ".value"), [0, 2, 1, 3], name + ".value")
        scores = self.node("MatMul", [query, key], name + ".scores")
        scores = self.node("Mul", [scores, "scale"], name + ".scaled")
        scores = self.node("Add", [scores, "bias"], name + ".masked")
        weights = self.node("Softmax", [scores], name + ".weights", axis=-1)
        context = self.node("MatMul", [weights, value], name + ".context")
        context = self.node("Transpose", [context], name + ".rows", perm=[0, 2, 1, 3])
        context = self.node("Reshape", [context, "width"], name + ".joined")
        return self.dense(layer.out, context, name + ".out")

    def block(self, layer, x, name):
        attended = self.attention(layer.attention, self.norm(layer.norm1, x, name + ".norm1"), name + ".attention")
        x = self.node("Add", [x, attended], name + ".attended")
        inner = self.dense(layer.dense1, self.norm(layer.norm2, x, name + ".norm2"), name + ".dense1")
        inner = self.node("Relu", [inner], name + ".relu")
        return self.node("Add", [x, self.dense(layer.dense2, inner, name + ".dense2")], name)


def onnx_bytes(net):
    """Return net (a network.TicketNet) as ONNX: input_ids and attention_mask [batch, seq]
    to logits [batch, classes] and tokens [batch, seq, width]."""
    g = Graph()
    g.constant("heads", np.array([0, 0, network.HEADS, network.WIDTH // network.HEADS], np.int64))
    g.constant("width", np.array([0, 0, network.WIDTH], np.int64))
    g.constant("scale", np.float32(net.blocks[0].attention.scale))
    for name, value in {"one": np.float32(1), "padding": np.float32(network.MASKED)}.items():
        g.constant(name, value)
    for name, value in {"first": [0], "second": [1], "axes": [1, 2], "last": [2]}.items():
        g.constant(name, np.array(value, np.int64))

    kept = g.node("Cast", ["attention_mask"], "kept", to=TensorProto.FLOAT)
    dropped = g.node("Mul", [g.node("Sub", ["one", kept], "dropped"), "padding"], "dropped.bias")
    g.node("Unsqueeze", [dropped, "axes"], "bias")

    shape = g.node("Shape", ["input_ids"], "shape")
    length = g.node("Gather", [shape, "second"], "length")
    places = g.node("Slice", [g.constant("positions", net.positions), "first", length, "first"], "places")
    words = g.node("Gather", [g.constant("embedding", net.embedding.value), "input_ids"], "words")
    x = g.node("Add", [words, places], "embedded")
    for i, block in enumerate(net.blocks):
        x = g.block(block, x, f"block{i}")
    tokens = g.norm(net.norm, x, "tokens")

    share = g.node("Div", [kept, g.node("ReduceSum", [kept, "second"], "count", keepdims=1)], "share")
    weighted = g.node("Mul", [tokens, g.node("Unsqueeze", [share, "last"], "share.column")], "weighted")
    g.dense(net.dense, g.node("ReduceSum", [weighted, "second"], "pooled", keepdims=0), "logits")

    classes = len(net.dense.bias.value)
    graph = helper.make_graph(
        g.nodes,
        "tickets",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes]),
         helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", "seq", network.WIDTH])],
        g.initializers,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


SAFETENSORS_DTYPES = {"float32": "F32", "int64": "I64"}


def safetensors_bytes(tensors):
    """Return a dict of arrays as safetensors: the header's length (uint64, little
    endian), the header (JSON, padded with spaces to 8 bytes), the arrays by name."""
    header, data = {}, b""
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
