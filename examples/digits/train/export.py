"""Files of the trained network: ONNX for the model, safetensors for the images.

Both functions return bytes that depend on their arguments alone: no time, no
producer, no path.
"""

import json
import struct

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

OPSET = 17
IR_VERSION = 8  # the one of opset 17; old runtimes refuse a newer one


def onnx_bytes(net):
    """Return net (a network.DigitNet) as ONNX: image [batch, 1, 8, 8] to logits [batch, 10]."""
    weights = {
        "conv1.weight": net.conv1.weight, "conv1.bias": net.conv1.bias,
        "conv2.weight": net.conv2.weight, "conv2.bias": net.conv2.bias,
        "dense.weight": net.dense.weight, "dense.bias": net.dense.bias,
    }
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], "conv1", **conv),
        helper.make_node("Relu", ["conv1"], ["relu1"], "relu1"),
        helper.make_node("Conv", ["relu1", "conv2.weight", "conv2.bias"], ["conv2"], "conv2", **conv),
        helper.make_node("Relu", ["conv2"], ["relu2"], "relu2"),
        helper.make_node("MaxPool", ["relu2"], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool"], ["flat"], "flat"),
        helper.make_node("Gemm", ["flat", "dense.weight", "dense.bias"], ["logits"], "dense"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(p.value), name) for name, p in weights.items()],
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
