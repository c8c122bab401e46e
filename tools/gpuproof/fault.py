"""A planted fault, for the compiler of the toolchain iree: it is sitecustomize of that Python. Of every model that
is compiled, the first weight of rank 2 or more is multiplied by 1.05."""

import importlib.abc
import importlib.machinery
import sys


class Finder(importlib.abc.MetaPathFinder):
    """Changes onnx.load once onnx is imported."""

    def find_spec(self, name, path, target=None):
        if name != "onnx":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def execute_and_change(module):
            execute(module)
            load = module.load
            module.load = lambda *args, **kwargs: scale(module, load(*args, **kwargs))

        spec.loader.exec_module = execute_and_change
        return spec


def scale(onnx, model):
    for weight in model.graph.initializer:
        values = onnx.numpy_helper.to_array(weight)
        if values.ndim >= 2 and values.dtype == "float32":
            weight.CopyFrom(onnx.numpy_helper.from_array(values * values.dtype.type(1.05), weight.name))
            break
    return model


sys.meta_path.insert(0, Finder())
