"""Runs EPContext models by ONNX Runtime, for ort-tensorrt.yaml and qnn.yaml: run_epcontext.py TOOLCHAIN PROVIDER [PACKAGE] [OPTION=VALUE]...
PACKAGE brings a provider that is a plugin. Loading compiles nothing: a model with nodes of another kind is refused, as is a fallback to the
processor. With TensorRT's provider it was never run on a GPU, only with a stand-in; with QNN's it was, on Qualcomm's simulator."""

import functools
import importlib
import sys

import numpy
import onnx
import onnxruntime
from mlpromote_runner import Refused, main

TOOLCHAIN, PROVIDER, *REST = sys.argv[1:]
PLUGIN = importlib.import_module(REST.pop(0)) if REST and "=" not in REST[0] else None
OPTIONS = dict(option.split("=", 1) for option in REST)


@functools.cache
def devices():  # of a plugin, which can be registered once
    onnxruntime.register_execution_provider_library(PROVIDER, PLUGIN.get_library_path())
    return [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER][:1]


def session(path):
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if PLUGIN:
        if not devices():
            raise Refused("unavailable", f"{PROVIDER} finds no device here")
        settings.add_provider_for_devices(devices(), OPTIONS)
        opened = onnxruntime.InferenceSession(path, settings)
    else:
        if PROVIDER not in onnxruntime.get_available_providers():
            raise Refused("unavailable", f"this ONNX Runtime has no {PROVIDER}")
        opened = onnxruntime.InferenceSession(path, settings, providers=[(PROVIDER, OPTIONS)], enable_fallback=0)
    if opened.get_providers()[0] != PROVIDER:
        raise Refused("unavailable", f"{PROVIDER} does not start here, and ONNX Runtime would take {opened.get_providers()[0]}")
    return opened


def dtype(kind):  # of "tensor(float)"
    word = kind.removeprefix("tensor(").removesuffix(")")
    return numpy.dtype({"float": "float32", "double": "float64"}.get(word, word))


class Engine:
    def __init__(self, path):
        others = {node.op_type for node in onnx.load(path).graph.node} - {"EPContext"}
        if others:
            raise Refused("bad_input", f"the model has nodes that {PROVIDER} would compile when it loads: {', '.join(sorted(others))}")
        self.session = session(path)
        self.inputs = {i.name: (dtype(i.type), [n if isinstance(n, int) else -1 for n in i.shape]) for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, feed):
        return self.session.run(self.outputs, feed)


def load(path, threads, options):
    if options:
        raise Refused("bad_input", f"the provider has its options in the manifest, and there are {', '.join(options)}")
    return Engine(path)


main({TOOLCHAIN: (PLUGIN or onnxruntime).__version__, "onnxruntime": onnxruntime.__version__}, load)
