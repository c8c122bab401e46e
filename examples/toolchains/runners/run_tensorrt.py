"""Runs plans of TensorRT, for tensorrt.yaml, through its Python API. Memory of the device is by cuda-python, as in NVIDIA's own
samples: PyTorch could give it too, and brings gigabytes along. It was never run on a GPU: only with stand-ins of the two packages."""

import numpy
import tensorrt as trt
from cuda.bindings import runtime as cuda  # cuda-python from 12.6 on
from mlpromote_runner import Refused, main

LOGGER = trt.Logger(trt.Logger.WARNING)
UP, DOWN = cuda.cudaMemcpyKind.cudaMemcpyHostToDevice, cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost


def checked(answer):
    error, *values = answer
    if error != cuda.cudaError_t.cudaSuccess:
        raise RuntimeError(f"CUDA: {error}")
    return values[0] if values else None


class Engine:
    def __init__(self, path):
        self.runtime = trt.Runtime(LOGGER)  # it has to outlive its engines
        with open(path, "rb") as f:
            self.engine = self.runtime.deserialize_cuda_engine(f.read())
        if self.engine is None:
            raise Refused("bad_input", "TensorRT takes no such plan: it is for another version or GPU, or no plan at all")
        self.context, self.stream, self.memory = self.engine.create_execution_context(), checked(cuda.cudaStreamCreate()), {}
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        self.inputs = {n: (self.dtype(n), self.shape(n)) for n in names if self.engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT}
        self.outputs = [n for n in names if n not in self.inputs]

    def dtype(self, name):
        return numpy.dtype(trt.nptype(self.engine.get_tensor_dtype(name)))

    def shape(self, name):  # a dimension is open if the profile has a range for it
        if -1 not in (shape := list(self.engine.get_tensor_shape(name))):
            return shape
        least, _, most = self.engine.get_tensor_profile_shape(name, 0)
        return [a if a == b else -1 for a, b in zip(least, most)]

    def room(self, name, size):  # memory of the device for a tensor
        address, had = self.memory.get(name, (0, 0))
        if size > had:
            checked(cuda.cudaFree(address)) if had else None
            address = checked(cuda.cudaMalloc(size))
            self.memory[name] = address, size
            if not self.context.set_tensor_address(name, address):
                raise RuntimeError(f"TensorRT takes no memory for {name}")
        return address

    def run(self, feed):
        feed = {name: numpy.ascontiguousarray(array) for name, array in feed.items()}
        for name, array in feed.items():
            if not self.context.set_input_shape(name, array.shape):
                raise Refused("bad_input", f"input {name}: the plan takes no shape {list(array.shape)}")
            checked(cuda.cudaMemcpyAsync(self.room(name, array.nbytes), array.ctypes.data, array.nbytes, UP, self.stream))
        found = [numpy.empty(tuple(self.context.get_tensor_shape(name)), self.dtype(name)) for name in self.outputs]
        places = [self.room(name, array.nbytes) for name, array in zip(self.outputs, found)]
        if not self.context.execute_async_v3(int(self.stream)):
            raise RuntimeError("TensorRT did not run the plan: its log has the reason")
        for place, array in zip(places, found):
            checked(cuda.cudaMemcpyAsync(array.ctypes.data, place, array.nbytes, DOWN, self.stream))
        checked(cuda.cudaStreamSynchronize(self.stream))
        return found


def load(path, threads, options):
    if options:
        raise Refused("bad_input", f"TensorRT has no load options here, and there are {', '.join(options)}")
    return Engine(path)


major, minor, patch = map(int, trt.__version__.split(".")[:3])
main({"tensorrt": str(10000 * major + 100 * minor + patch)}, load)  # as trtexec prints it from TensorRT 10 on
