"""Makes the ONNX files beside this script: python3 make.py, with onnx and numpy of the
digits example's training, and onnxruntime for quantized.onnx.

unshaped.onnx  the digits network whose output has no shape, with two nodes that do nothing
stuck.onnx     an output whose rank only the data says
late.onnx      an operator set that is not out yet
cubic.onnx     a node with a value that OpenVINO does not have for its attribute
recent.onnx    an operator set that ONNX Runtime has since 1.25
scaled.onnx    the digits network, one of whose channels is 300 times as large between its
               convolutions: the same function, and no 8 bits hold it beside the others
quantized.onnx the digits network as it comes from others who quantized it: QDQ, static int8
unscaled.onnx  the same, with a scale of 0 among those of its weights
halved.onnx    a dense layer behind an operator that only a library has (operators/halve.c)
tokens.onnx    a classifier of tokens: an embedding of 50 words, a table of 20 positions that bounds
               the length, and a mask
segments.onnx  a network that halves images of any size twice and doubles them again, where only
               multiples of 4 fit together
encoder/       weights of a small transformer encoder, and cases for it
"""

import json
import pathlib
import struct

import numpy
import onnx
import onnx.numpy_helper
from onnx import TensorProto, helper

here = pathlib.Path(__file__).resolve().parent


def save(model, name):
    (here / name).write_bytes(model.SerializeToString(deterministic=True))


def unshaped():
    model = onnx.load(here / "../../../../examples/digits/digits.onnx")
    graph = model.graph
    last = graph.node[-1]
    result = last.output[0]
    last.output[0] = "inner"
    graph.node.append(helper.make_node("Identity", ["inner"], ["same"], "pass"))
    graph.node.append(helper.make_node("Identity", ["same"], [result], "pass_again"))
    graph.output[0].type.tensor_type.ClearField("shape")
    save(model, "unshaped.onnx")


def small(nodes, inputs, output, opset):
    graph = helper.make_graph(nodes, "small", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
shape = helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"])
no_rank = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
reshape = helper.make_node("Reshape", ["x", "shape"], ["z"], "anyhow")
relu = helper.make_node("Relu", ["z"], ["y"], "last")

def quantized():
    from onnxruntime import quantization

    data = (here / "../../../../examples/digits/calibration/calibration-00000.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    start, end = json.loads(data[8 : 8 + length])["image"]["data_offsets"]
    images = numpy.frombuffer(data[8 + length + start : 8 + length + end], "<f4").reshape(-1, 1, 1, 8, 8)

    class Reader(quantization.CalibrationDataReader):
        feeds = iter(images)

        def get_next(self):
            image = next(self.feeds, None)
            return None if image is None else {"image": image}

    quantization.quantize_static(here / "../../../../examples/digits/digits.onnx", here / "quantized.onnx", Reader())


def unscaled():
    model = onnx.load(here / "quantized.onnx")
    node = next(n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] == "conv2.weight_quantized")
    scale = next(i for i in model.graph.initializer if i.name == node.input[1])
    scale.CopyFrom(onnx.numpy_helper.from_array(0 * onnx.numpy_helper.to_array(scale), scale.name))
    save(model, "unscaled.onnx")


def scaled(factor=300):
    model = onnx.load(here / "../../../../examples/digits/digits.onnx")
    weights = {i.name: i for i in model.graph.initializer}
    first, second = (n for n in model.graph.node if n.op_type == "Conv")

    def scale(name, at, by):
        array = onnx.numpy_helper.to_array(weights[name]).copy()
        array[at] *= numpy.float32(by)
        weights[name].CopyFrom(onnx.numpy_helper.from_array(array, name))

    scale(first.input[1], numpy.s_[0], factor)
    scale(first.input[2], numpy.s_[0], factor)
    scale(second.input[1], numpy.s_[:, 0], 1 / factor)
    save(model, "scaled.onnx")


scaled()
quantized()
unscaled()
unshaped()
save(small([reshape, relu], [x, shape], no_rank, 17), "stuck.onnx")
twice = onnx.numpy_helper.from_array(numpy.float32([1, 2]), "twice")
cubic = small([helper.make_node("Upsample", ["x", "twice"], ["y"], "up", mode="cubic")], [x], helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 8]), 9)
cubic.graph.initializer.append(twice)
save(cubic, "cubic.onnx")
for opset, name in ((26, "recent.onnx"), (27, "late.onnx")):
    save(small([helper.make_node("Relu", ["x"], ["y"])], [x], helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4]), opset), name)


def halved():
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], [(i % 5 - 2) / 4 for i in range(12)])
    nodes = [helper.make_node("Halve", ["x"], ["h"], "halve", domain="mlpromote.test"), helper.make_node("MatMul", ["h", "w"], ["y"], "dense")]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph(nodes, "small", [x], [y], [weight])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mlpromote.test", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "halved.onnx")


halved()


def safetensors(name, tensors):
    header, body = {}, b""
    for key, array in sorted(tensors.items()):
        dtype = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[key] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (here / name).parent.mkdir(parents=True, exist_ok=True)
    (here / name).write_bytes(struct.pack("<Q", len(text)) + text + body)


def encoder():
    random = numpy.random.RandomState(7)
    words, tokens, width, inner, classes = 50, 6, 16, 24, 4

    def normal(*shape, scale=1.0, around=0.0):
        return (around + random.normal(size=shape) * scale).astype("float32")

    weights = {"tokens.weight": normal(words, width), "positions.weight": normal(tokens, width), "head.weight": normal(classes, width), "head.bias": normal(classes)}
    for block in ("block0", "block1"):
        for part, (o, i) in {"query": (width, width), "key": (width, width), "value": (width, width), "out": (width, width), "up": (inner, width), "down": (width, inner)}.items():
            weights[f"{block}.{part}.weight"], weights[f"{block}.{part}.bias"] = normal(o, i, scale=i**-0.5), normal(o, scale=0.2)
        for part in ("norm1", "norm2"):
            weights[f"{block}.{part}.weight"], weights[f"{block}.{part}.bias"] = normal(width, scale=0.2, around=1), normal(width, scale=0.2)
    safetensors("encoder/encoder.safetensors", weights)
    safetensors("encoder/cases/cases.safetensors", {"input": random.randint(0, words, size=(32, tokens)).astype("int64")})


encoder()


def seeded(random, name, *shape):
    values = random.normal(size=shape, scale=0.5).astype("float32")
    return onnx.numpy_helper.from_array(values, name)


def whole(name, values):
    return onnx.numpy_helper.from_array(numpy.array(values, dtype="int64"), name)


def tokens():
    random = numpy.random.RandomState(3)
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["word"]),
        node("Shape", ["input_ids"], ["sizes"]),
        node("Gather", ["sizes", "one"], ["length"]),
        node("Range", ["zero", "length", "one"], ["numbers"]),
        node("Gather", ["positions", "numbers"], ["position"]),
        node("Add", ["word", "position"], ["embedded"]),
        node("Cast", ["attention_mask"], ["counted"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["counted", "last"], ["rows"]),
        node("Mul", ["embedded", "rows"], ["masked"]),
        node("ReduceSum", ["masked", "second"], ["sum"], keepdims=0),
        node("MatMul", ["sum", "head"], ["logits"]),
    ]
    constants = [seeded(random, "words", 50, 8), seeded(random, "positions", 20, 8), seeded(random, "head", 8, 4),
                 whole("zero", 0), whole("one", 1), whole("second", [1]), whole("last", [2])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 4])
    graph = helper.make_graph(nodes, "tokens", inputs, [output], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "tokens.onnx")


def segments():
    random = numpy.random.RandomState(4)
    node = helper.make_node
    half = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    double = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("Conv", ["image", "w1"], ["c1"], **half), node("Relu", ["c1"], ["halved"]),
        node("Conv", ["halved", "w2"], ["c2"], **half), node("Relu", ["c2"], ["quartered"]),
        node("ConvTranspose", ["quartered", "w3"], ["back"], **double),
        node("Concat", ["halved", "back"], ["both"], axis=1),
        node("ConvTranspose", ["both", "w4"], ["classes"], **double),
    ]
    constants = [seeded(random, "w1", 4, 3, 3, 3), seeded(random, "w2", 4, 4, 3, 3), seeded(random, "w3", 4, 4, 2, 2), seeded(random, "w4", 8, 2, 2, 2)]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])
    output = helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["batch", 2, "height", "width"])
    graph = helper.make_graph(nodes, "segments", [image], [output], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "segments.onnx")


tokens()
segments()
