"""Stands in for tensorrt, by NVIDIA's Python API reference of TensorRT 10: plans of a sample with an open batch from 1 to 8. What is enqueued is done when
the stream is waited for."""

import enum

import numpy
from conversation import tell, want
from cuda.bindings import runtime as device
from network import Network, NoEngine

__version__ = "0.0.0.stand-in"


class Severity(enum.Enum):
    WARNING = 2


class Logger:
    WARNING = Severity.WARNING

    def __init__(self, min_severity):
        want(min_severity is Severity.WARNING, "a Logger of warnings")


class TensorIOMode(enum.Enum):
    INPUT = 1
    OUTPUT = 2


class DataType(enum.Enum):
    FLOAT = 0


def nptype(trt_type):
    want(trt_type is DataType.FLOAT, f"nptype of {trt_type}")
    return numpy.float32


class Runtime:
    def __init__(self, logger):
        want(isinstance(logger, Logger), "Runtime takes a Logger")
        tell("Runtime", logger)

    def deserialize_cuda_engine(self, serialized_engine):
        want(isinstance(serialized_engine, bytes), "deserialize_cuda_engine takes a buffer")
        tell("Runtime.deserialize_cuda_engine", serialized_engine)
        try:
            return ICudaEngine(Network(serialized_engine))
        except NoEngine:
            return None  # as TensorRT does, after a line in its log


class ICudaEngine:
    SHAPES = {"x": (-1, 4), "y": (-1, 3)}
    num_io_tensors = 2

    def __init__(self, network):
        self.network = network

    def get_tensor_name(self, index):
        tell("ICudaEngine.get_tensor_name", index)
        return ("x", "y")[index]

    def get_tensor_mode(self, name):
        tell("ICudaEngine.get_tensor_mode", name)
        return {"x": TensorIOMode.INPUT, "y": TensorIOMode.OUTPUT}[name]

    def get_tensor_dtype(self, name):
        want(name in self.SHAPES, f"there is no tensor {name}")
        return DataType.FLOAT

    def get_tensor_shape(self, name):
        tell("ICudaEngine.get_tensor_shape", name)
        return self.SHAPES[name]

    def get_tensor_profile_shape(self, name, profile_index):
        tell("ICudaEngine.get_tensor_profile_shape", name, profile_index)
        want((name, profile_index) == ("x", 0), "a profile has shapes of inputs")
        return [(1, 4), (4, 4), (8, 4)]

    def create_execution_context(self):
        tell("ICudaEngine.create_execution_context")
        return IExecutionContext(self)


class IExecutionContext:
    def __init__(self, engine):
        self.engine, self.addresses, self.batch = engine, {}, None

    def set_input_shape(self, name, shape):
        want(name == "x" and isinstance(shape, tuple), "set_input_shape takes an input and a shape")
        tell("IExecutionContext.set_input_shape", name, shape)
        if len(shape) != 2 or not 1 <= shape[0] <= 8 or shape[1] != 4:
            return False
        self.batch = shape[0]
        return True

    def get_tensor_shape(self, name):
        tell("IExecutionContext.get_tensor_shape", name)
        return (-1 if self.batch is None else self.batch, self.engine.SHAPES[name][1])

    def set_tensor_address(self, name, memory):
        want(type(memory) is int and memory % 256 == 0, "set_tensor_address takes an aligned address")
        tell("IExecutionContext.set_tensor_address", name, memory)
        self.addresses[name] = memory
        return name in self.engine.SHAPES

    def execute_async_v3(self, stream_handle):
        want(type(stream_handle) is int, "execute_async_v3 takes the handle of a stream")
        tell("IExecutionContext.execute_async_v3", stream_handle)
        want(self.batch and set(self.addresses) == {"x", "y"}, "execute_async_v3 without all shapes and addresses")
        given, made, batch = self.addresses["x"], self.addresses["y"], self.batch

        def compute():
            x = numpy.frombuffer(device.memory(given, 16 * batch), numpy.float32).reshape(batch, 4)
            device.memory(made, 12 * batch)[:] = self.engine.network(x).tobytes()

        device.streams[stream_handle].append(compute)
        return True
