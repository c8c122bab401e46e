"""Stands in for nrtpy, by neuron-runtime/nrtpy of AWS Neuron's documentation: tensors by name, and outputs without a type, as it warns of."""

import numpy
from conversation import tell, want
from network import Network, NoEngine


class NrtError(RuntimeError):
    pass


class TensorMetadata:
    def __init__(self, shape, size):
        self.shape, self.size = shape, size


class NrtpyTensor:
    def __init__(self, tensor_ref, shape, dtype, name=None):
        self.array, self.shape, self.dtype, self.tensor = tensor_ref, shape, dtype, name

    @classmethod
    def from_numpy(cls, array, name=None, core_id=0):
        want(isinstance(array, numpy.ndarray), "from_numpy takes an array")
        tell("NrtpyTensor.from_numpy", array, name=name, core_id=core_id)
        return cls(array.copy(), array.shape, array.dtype, name)

    def numpy(self):
        tell("NrtpyTensor.numpy", self.tensor)
        return self.array


class NrtpyModel:
    input_tensors_info = {"input0": TensorMetadata((1, 4), 16)}
    output_tensors_info = {"output0": TensorMetadata((1, 3), 12)}

    def __init__(self, network):
        self.network = network

    @classmethod
    def load_from_neff(cls, neff_path, name=None, core_id=0, cc_enabled=False, rank_id=0, world_size=1):
        tell("NrtpyModel.load_from_neff", name=name, core_id=core_id, cc_enabled=cc_enabled, rank_id=rank_id, world_size=world_size)
        with open(neff_path, "rb") as f:
            try:
                return cls(Network(f.read()))
            except NoEngine as e:
                raise NrtError("NRT Error NRT_FAILURE(1): Failed to load model") from e

    def __call__(self, inputs, outputs=None, save_trace=False, ntff_name=None):
        tell("NrtpyModel", {name: [t.tensor, t] for name, t in inputs.items()})
        want(set(inputs) == {"input0"} and inputs["input0"].shape == (1, 4) and outputs is None, "inputs of the NEFF")
        made = self.network(inputs["input0"].array)
        return {"output0": NrtpyTensor(made.view("V4"), made.shape, numpy.dtype("V4"), "output0")}
