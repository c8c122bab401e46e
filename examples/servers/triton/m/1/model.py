"""Serves model.onnx, the engine in this folder, with ONNX Runtime in Triton's Python backend.

It works for every model with tensors of the types below. Needs numpy 1: with numpy 2 this Triton mistakes the size of outputs.
"""

import os

import numpy as np
import onnxruntime as ort
import triton_python_backend_utils as pb

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.onnx")

TYPES = {  # of ONNX Runtime, and the same of Triton
    "tensor(bool)": "TYPE_BOOL",
    "tensor(double)": "TYPE_FP64",
    "tensor(float)": "TYPE_FP32",
    "tensor(float16)": "TYPE_FP16",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(string)": "TYPE_STRING",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(uint8)": "TYPE_UINT8",
}


def describe(value):
    """Return the name, type and shape of an input or output, -1 for a dimension of any size."""
    if value.type not in TYPES:
        raise pb.TritonModelException(f"{value.name} is {value.type}: want one of {', '.join(TYPES)}")
    dims = [d if isinstance(d, int) and d >= 0 else -1 for d in value.shape]
    return {"name": value.name, "data_type": TYPES[value.type], "dims": dims or [1]}  # Triton has no scalars


def load(optimize):
    options = ort.SessionOptions()
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        session = load(optimize=False)  # for its inputs and outputs alone
        for value in session.get_inputs():
            config.add_input(describe(value))
        for value in session.get_outputs():
            config.add_output(describe(value))
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        self.session = load(optimize=True)
        self.inputs = self.session.get_inputs()
        self.outputs = [o.name for o in self.session.get_outputs()]

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        try:
            feed = {}
            for value in self.inputs:
                array = pb.get_input_tensor_by_name(request, value.name).as_numpy()
                if value.type == "tensor(string)":  # Triton has bytes
                    texts = np.array([text.decode() for text in array.reshape(-1)], dtype=object)
                    array = texts.reshape(array.shape)
                feed[value.name] = array if value.shape else array.reshape(())
            wanted = [name for name in self.outputs if name in request.requested_output_names()]
            found = self.session.run(wanted, feed)
            return pb.InferenceResponse([pb.Tensor(name, self.encode(array)) for name, array in zip(wanted, found)])
        except Exception as problem:  # a request that the model refuses must not end the server
            return pb.InferenceResponse([], pb.TritonError(str(problem)))

    @staticmethod
    def encode(array):
        array = np.ascontiguousarray(array)  # and a scalar becomes [1]
        if array.dtype != object:
            return array
        texts = np.array([str(text).encode() for text in array.reshape(-1)], dtype=object)
        return texts.reshape(array.shape)
