"""Makes an encoder with seeded weights, as ONNX, and cases for it: python3 encoder.py FOLDER

Numbers have few digits, so that engines and cases compress well where they are carried to another machine.
"""

import json
import os
import struct
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

TOKENS, WIDTH, HEADS, LAYERS, CLASSES = 128, 192, 6, 4, 32


class Graph:
    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, *shape):
        scale = shape[0] ** -0.5
        values = numpy.round(self.random.standard_normal(shape) * 16) / 16 * scale
        return self.constant(values.astype(numpy.float32))

    def constant(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def add(self, kind, *inputs, **attributes):
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def dense(self, x, n, m):
        return self.add("Add", self.add("MatMul", x, self.weight(n, m)), self.constant(numpy.zeros(m, numpy.float32)))

    def norm(self, x):
        ones, zeros = numpy.ones(WIDTH, numpy.float32), numpy.zeros(WIDTH, numpy.float32)
        return self.add("LayerNormalization", x, self.constant(ones), self.constant(zeros), axis=-1)

    def heads(self, x, order):
        split = self.add("Reshape", x, self.constant(numpy.array([1, TOKENS, HEADS, WIDTH // HEADS], numpy.int64)))
        return self.add("Transpose", split, perm=order)

    def attention(self, x):
        q, k, v = (self.dense(x, WIDTH, WIDTH) for _ in range(3))
        scores = self.add("MatMul", self.heads(q, [0, 2, 1, 3]), self.heads(k, [0, 2, 3, 1]))
        scores = self.add("Mul", scores, self.constant(numpy.float32((WIDTH // HEADS) ** -0.5)))
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), self.heads(v, [0, 2, 1, 3]))
        mixed = self.add("Transpose", mixed, perm=[0, 2, 1, 3])
        return self.dense(self.add("Reshape", mixed, self.constant(numpy.array([1, TOKENS, WIDTH], numpy.int64))), WIDTH, WIDTH)

    def layer(self, x):
        x = self.add("Add", x, self.attention(self.norm(x)))
        return self.add("Add", x, self.dense(self.add("Relu", self.dense(self.norm(x), WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH))


def model():
    g = Graph(17)
    x = g.dense("patches", 48, WIDTH)
    for _ in range(LAYERS):
        x = g.layer(x)
    pooled = g.add("ReduceMean", g.norm(x), g.constant(numpy.array([1], numpy.int64)), keepdims=0)
    out = g.dense(pooled, WIDTH, CLASSES)
    g.nodes[-1].output[0] = "logits"
    graph = helper.make_graph(
        g.nodes, "encoder", [helper.make_tensor_value_info("patches", TensorProto.FLOAT, [1, TOKENS, 48])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])], g.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def cases(path, count):
    """Writes recorded inputs as one shard in safetensors."""
    patches = numpy.random.default_rng(18).integers(-8, 9, (count, TOKENS, 48)).astype(numpy.float32) / 8
    header = json.dumps({"patches": {"dtype": "F32", "shape": patches.shape, "data_offsets": [0, patches.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + patches.tobytes())


def main(folder):
    os.makedirs(os.path.join(folder, "cases"))
    onnx.save(model(), os.path.join(folder, "encoder.onnx"))
    cases(os.path.join(folder, "cases", "cases-00000.safetensors"), 128)


if __name__ == "__main__":
    main(sys.argv[1])
