"""Makes the ONNX files beside this script: python3 make.py, with onnx and numpy of the
digits example's training, and onnxruntime for quantized.onnx.

unshaped.onnx  the digits network whose output has no shape, with two nodes that do nothing
stuck.onnx     an output whose rank only the data says
late.onnx      an operator set that is not out yet
scaled.onnx    the digits network, one of whose channels is 300 times as large between its
               convolutions: the same function, and no 8 bits hold it beside the others
quantized.onnx the digits network as it comes from others who quantized it: QDQ, static int8
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
unshaped()
save(small([reshape, relu], [x, shape], no_rank, 17), "stuck.onnx")
save(small([helper.make_node("Relu", ["x"], ["y"])], [x], helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4]), 27), "late.onnx")
