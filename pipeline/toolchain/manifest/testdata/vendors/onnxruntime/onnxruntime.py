"""Stands in for onnxruntime with TensorRT's provider, or with that of QNN as a plugin, by onnxruntime.ai: "EP Context Design" and "Plugin Execution Provider
Libraries". It compiles where ep.context_enable is set, and else loads what it compiled."""

import os

from conversation import tell, want
from network import Network

__version__ = "0.0.0"
TENSORRT, QNN = "TensorrtExecutionProvider", "QNNExecutionProvider"
registered = {}


class OrtEpDevice:
    def __init__(self, ep_name):
        self.ep_name = self.name = ep_name


def get_available_providers():
    return [TENSORRT, "CUDAExecutionProvider", "CPUExecutionProvider"]


def register_execution_provider_library(registration_name, library_path):
    tell("register_execution_provider_library", registration_name, os.path.basename(library_path))
    registered[registration_name] = library_path


def get_ep_devices():
    return [OrtEpDevice("CPUExecutionProvider"), *map(OrtEpDevice, registered)]


class SessionOptions:
    KNOWN = ("session.disable_cpu_ep_fallback", "ep.context_enable", "ep.context_file_path", "ep.context_embed_mode")

    def __init__(self):
        self.entries, self.chosen = {}, None

    def add_session_config_entry(self, key, value):
        want(key in self.KNOWN and isinstance(value, str), f"entry {key} = {value!r}")
        tell("SessionOptions.add_session_config_entry", key, os.path.basename(value))
        self.entries[key] = value

    def add_provider_for_devices(self, ep_devices, provider_options):
        tell("SessionOptions.add_provider_for_devices", ep_devices, provider_options)
        want(len(ep_devices) == 1 and all(isinstance(v, str) for v in provider_options.values()), "add_provider_for_devices takes devices and texts")
        want(set(provider_options) <= {"backend_type", "htp_arch", "soc_model", "enable_htp_fp16_precision"}, f"options {provider_options}")
        self.chosen = ep_devices[0].ep_name


class NodeArg:
    def __init__(self, name, shape):
        self.name, self.type, self.shape = name, "tensor(float)", shape


class InferenceSession:
    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        want(kwargs in ({}, {"enable_fallback": 0}), f"arguments {kwargs}")
        tell("InferenceSession", os.path.basename(path_or_bytes), providers, **kwargs)
        want(bool(providers) != bool(sess_options.chosen), "providers, or devices")
        want(sess_options.chosen or kwargs == {"enable_fallback": 0}, "a session that may fall back to the processor")
        want(sess_options.entries["session.disable_cpu_ep_fallback"] == "1", "a session that may leave nodes to the processor")
        self.provider = sess_options.chosen or providers[0][0]
        with open(path_or_bytes, "rb") as f:
            content = f.read()
        if sess_options.entries.get("ep.context_enable") == "1":
            context(content, sess_options.entries)
        else:
            self.network = Network(content)

    def get_providers(self):
        return [self.provider, "CPUExecutionProvider"]

    def get_inputs(self):
        return [NodeArg("x", [1, 4])]

    def get_outputs(self):
        return [NodeArg("y", [1, 3])]

    def run(self, output_names, input_feed, run_options=None):
        tell("InferenceSession.run", output_names, input_feed)
        want(output_names == ["y"] and input_feed["x"].shape == (1, 4), "outputs and inputs of the sample")
        return [self.network(input_feed["x"])]


def context(content, entries):
    """Writes an EPContext model, as a provider does that takes all of the graph."""
    from onnx import helper, load_model_from_string

    graph = load_model_from_string(content).graph
    sizes = [d.dim_value for value in (*graph.input, *graph.output) for d in value.type.tensor_type.shape.dim]
    want(all(sizes) and entries["ep.context_embed_mode"] == "1", "a context of fixed sizes, embedded")
    node = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", ep_cache_context=b"of a stand-in\n", embed_mode=1)
    made = helper.make_model(helper.make_graph([node], "context", graph.input, graph.output), opset_imports=[helper.make_opsetid("com.microsoft", 1)])
    with open(entries["ep.context_file_path"], "wb") as f:
        f.write(made.SerializeToString())
