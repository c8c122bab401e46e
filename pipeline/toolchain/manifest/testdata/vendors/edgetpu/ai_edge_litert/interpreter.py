"""Stands in for ai_edge_litert.interpreter, by the reference of tf.lite.Interpreter and load_delegate."""

import numpy
from conversation import tell, want
from network import Network


class Delegate:
    def __init__(self, library):
        self.name = library


def load_delegate(library, options=None):
    tell("load_delegate", library, options)
    want(library == "libedgetpu.so.1", "the library of the Edge TPU")
    return Delegate(library)


class Interpreter:
    def __init__(self, model_path=None, experimental_delegates=None):
        tell("Interpreter", experimental_delegates=experimental_delegates)
        want([type(d) for d in experimental_delegates] == [Delegate], "the model takes its delegate")
        with open(model_path, "rb") as f:
            self.network = Network(f.read())
        self.tensors = None

    def allocate_tensors(self):
        tell("Interpreter.allocate_tensors")
        self.tensors = {}

    def get_input_details(self):
        return [{"name": "x", "index": 0, "shape": numpy.array([1, 4], numpy.int32), "dtype": numpy.float32, "quantization": (0.0, 0)}]

    def get_output_details(self):
        return [{"name": "y", "index": 5, "shape": numpy.array([1, 3], numpy.int32), "dtype": numpy.float32, "quantization": (0.0, 0)}]

    def set_tensor(self, tensor_index, value):
        tell("Interpreter.set_tensor", tensor_index, value)
        want(self.tensors is not None and tensor_index == 0 and value.dtype == numpy.float32 and value.shape == (1, 4), "a value of the input")
        self.tensors[0] = numpy.array(value)

    def invoke(self):
        tell("Interpreter.invoke")
        self.tensors[5] = self.network(self.tensors[0])

    def get_tensor(self, tensor_index):
        tell("Interpreter.get_tensor", tensor_index)
        return self.tensors[tensor_index]
