"""Serves an ONNX model with ONNX Runtime in MLServer.

It works for every model with tensors of the types below, and reports the names, types and shapes of its inputs and outputs.
"""

import asyncio

import numpy as np
import onnxruntime as ort
from mlserver import MLModel
from mlserver.errors import InferenceError
from mlserver.types import Datatype, InferenceResponse, MetadataTensor, ResponseOutput
from mlserver.utils import get_model_uri

TYPES = {  # of ONNX Runtime, and the same of the protocol and of numpy
    "tensor(bool)": (Datatype.BOOL, "bool"),
    "tensor(double)": (Datatype.FP64, "float64"),
    "tensor(float)": (Datatype.FP32, "float32"),
    "tensor(float16)": (Datatype.FP16, "float16"),
    "tensor(int16)": (Datatype.INT16, "int16"),
    "tensor(int32)": (Datatype.INT32, "int32"),
    "tensor(int64)": (Datatype.INT64, "int64"),
    "tensor(int8)": (Datatype.INT8, "int8"),
    "tensor(string)": (Datatype.BYTES, "object"),
    "tensor(uint16)": (Datatype.UINT16, "uint16"),
    "tensor(uint32)": (Datatype.UINT32, "uint32"),
    "tensor(uint64)": (Datatype.UINT64, "uint64"),
    "tensor(uint8)": (Datatype.UINT8, "uint8"),
}


def describe(value):
    if value.type not in TYPES:
        raise InferenceError(f"{value.name} is {value.type}: want one of {', '.join(TYPES)}")
    shape = [d if isinstance(d, int) and d >= 0 else -1 for d in value.shape]
    return MetadataTensor(name=value.name, datatype=TYPES[value.type][0], shape=shape)


class OnnxModel(MLModel):
    async def load(self):
        path = await get_model_uri(self._settings)
        self.session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.inputs = [describe(value) for value in self.session.get_inputs()]
        self.outputs = [describe(value) for value in self.session.get_outputs()]
        return True

    async def predict(self, payload):
        sent = {value.name: value for value in payload.inputs}
        try:
            feed = {value.name: decode(sent.pop(value.name), TYPES[value.type]) for value in self.session.get_inputs()}
        except KeyError as missing:
            raise InferenceError(f"the request has no input {missing}")
        if sent:
            raise InferenceError(f"the model has no input {', '.join(sent)}")
        wanted = [o.name for o in payload.outputs or self.outputs]
        try:
            found = await asyncio.to_thread(self.session.run, wanted, feed)
        except Exception as problem:
            raise InferenceError(str(problem))
        types = {o.name: Datatype(o.datatype) for o in self.outputs}
        return InferenceResponse(
            id=payload.id, model_name=self.name, model_version=self.version,
            outputs=[encode(name, types[name], array) for name, array in zip(wanted, found)],
        )


def decode(value, types):
    datatype, dtype = types
    if Datatype(value.datatype) != datatype:
        raise InferenceError(f"input {value.name} is {Datatype(value.datatype).value}: want {datatype.value}")
    data = value.data.root
    if datatype == Datatype.BYTES:
        data = [text.decode() if isinstance(text, bytes) else text for text in data]
    try:
        return np.array(data, dtype).reshape(value.shape)
    except ValueError as problem:
        raise InferenceError(f"input {value.name}: {problem}")


def encode(name, datatype, array):
    data = array.reshape(-1).tolist()
    if datatype == Datatype.BYTES:
        data = [str(text).encode() for text in data]
    return ResponseOutput(name=name, datatype=datatype, shape=list(array.shape), data=data)
