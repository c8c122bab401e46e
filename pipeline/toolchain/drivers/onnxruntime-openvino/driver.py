"""Driver for ONNX Runtime with OpenVINO's execution provider, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, to model.onnx. By option form:
         onnx       the model as it is, once the provider has compiled it: it does so again
                    on every load.
         epcontext  the graph with EPContext nodes, which hold what the provider compiled.
         Option embed says whether what was compiled is a file beside the graph; provider_options
         what is asked of the provider, by its name, as a run of the engine does.
run      such engines on cases, with the providers that each declares.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from protocol import Refused, inputs_of, main, model_of, options_of, output_path, versions  # noqa: E402
from running import run  # noqa: E402

DEFAULTS = {"form": "onnx", "embed": True, "provider_options": {}}
CHOICES = {"form": ("onnx", "epcontext")}
OPENVINO = "OpenVINOExecutionProvider"
LEVELS = {"disable_all": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}


def probe(_request):
    return versions("onnxruntime-openvino", "onnx", "numpy")


def fixed(threads):
    """What a run gives the same bytes with: the provider optimizes its part itself."""
    return {"graph_optimization_level": "disable_all", "intra_op_num_threads": str(threads), "inter_op_num_threads": "1"}


def session_options(asked):
    """Session options by the names of a load profile; others than those of Python are entries."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for name, value in asked.items():
        if name == "graph_optimization_level":
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[value])
        elif name == "execution_mode":
            options.execution_mode = getattr(onnxruntime.ExecutionMode, "ORT_" + value.upper())
        elif name in ("intra_op_num_threads", "inter_op_num_threads"):
            setattr(options, name, int(value))
        elif name in ("enable_cpu_mem_arena", "enable_mem_pattern"):
            setattr(options, name, value == "1")
        elif "." in name:  # ONNX Runtime takes any entry, and ignores those that it does not know
            options.add_session_config_entry(name, value)
        else:
            raise Refused("bad_input", f"option {name}: ONNX Runtime has none of this name")
    return options


def session(path, threads, load, providers, configure=None):
    """A session with those of the providers that are here, as ONNX Runtime itself has it. load is
    None for a fixed run."""
    import onnxruntime

    options = session_options(fixed(threads) if load is None else load)
    if configure:
        configure(options)
    settings = {}
    if load is None:
        settings = {OPENVINO: {"device_type": "CPU", "precision": "FP32", "num_of_threads": str(threads), "num_streams": "1"}}
    here = onnxruntime.get_available_providers()
    asked = {name: given for name, given in map(named, providers) if name in here}
    try:
        # Without a fallback, which would leave out a provider that does not take its options.
        opened = onnxruntime.InferenceSession(path, options, providers=[(p, {**settings.get(p, {}), **given}) for p, given in asked.items()], enable_fallback=False)
    except RuntimeError as e:
        if "option" not in str(e).lower():
            raise
        raise Refused("bad_input", f"a provider does not take what is asked of it: {' '.join(str(e).split())[-300:]}") from None
    for name, given in asked.items():
        if given and name not in opened.get_providers():
            said = ", ".join(f"{key}={value}" for key, value in sorted(given.items()))
            raise Refused("bad_input", f"{name} does not start with what is asked of it ({said}): what it says is in the log")
    return opened


def named(provider):
    """Name and options of a provider, which is a name alone where nothing is asked of it."""
    return (provider, {}) if isinstance(provider, str) else (provider["name"], provider["options"])


def compile_(request):
    options = options_of(request, DEFAULTS, CHOICES)
    import onnx

    source, asked = model_of(request), options["provider_options"].get(OPENVINO)
    providers = [{"name": OPENVINO, "options": asked} if asked else OPENVINO]
    if options["form"] == "onnx":
        session(source, 1, None, providers)
        onnx.save(onnx.load(source), output_path(request, "model.onnx"), **external(request))
        return {"engine": {"format": "onnx", "entry": "model.onnx"}}

    def ask(settings):
        settings.add_session_config_entry("ep.context_enable", "1")
        settings.add_session_config_entry("ep.context_file_path", output_path(request, "model.onnx"))
        settings.add_session_config_entry("ep.context_embed_mode", "1" if options["embed"] else "0")

    session(source, 1, None, providers, ask)
    if not os.path.exists(output_path(request, "model.onnx")):
        raise Refused("unsupported_op", f"{OPENVINO} took no part of the graph, so there is nothing to keep")
    loads(request, providers)
    return {"engine": {"format": "onnx", "entry": "model.onnx"}}


def external(request):
    """How a model that came with external data is saved."""
    if len(inputs_of(request, "model")) == 1:
        return {}
    return {"save_as_external_data": True, "location": "model.onnx.data"}


def loads(request, providers):
    """Loads what was compiled, since an engine that nothing can load is none."""
    try:
        session(output_path(request, "model.onnx"), 1, None, providers)
    except Exception as e:
        reader = "" if any("ir_frontend" in name for name in libraries()) else ": the package is without OpenVINO's reader of models (libopenvino_ir_frontend), which the CPU needs for what it compiled"
        said = " ".join(str(e).split())[:200]
        raise Refused("unsupported_format", f"{OPENVINO} cannot load the EPContext model that it has just written{reader}: leave form out, or take toolchain openvino with form blob ({said})") from None


def libraries():
    import onnxruntime.capi

    return os.listdir(os.path.dirname(onnxruntime.capi.__file__))


class Engine:
    def __init__(self, path, threads, load, providers=(OPENVINO,)):
        import numpy

        self.opened = path, threads, load, providers
        self.session = session(*self.opened)
        self.inputs = {i.name: (numpy.dtype(dtype(i.type)), [n if isinstance(n, int) else -1 for n in i.shape]) for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, feed):
        try:
            return self.session.run(None, feed)
        except Exception as e:
            raise without_half(e)

    def shares(self, feed):
        """Who runs the nodes: of one run in a session that keeps a profile."""

        def profile(settings):
            settings.enable_profiling = True
            settings.profile_file_prefix = os.path.abspath("profile")

        profiled = session(*self.opened, profile)
        profiled.run(None, feed)
        with open(profiled.end_profiling(), encoding="utf-8") as f:
            events = json.load(f)
        found = {}
        for event in events:
            name = event.get("args", {}).get("provider")
            if event.get("cat") == "Node" and name:
                share = found.setdefault(name, {"name": name, "nodes": 0, "timeNs": 0})
                share["nodes"] += 1
                share["timeNs"] += event["dur"] * 1000
        return sorted(found.values(), key=lambda s: s["name"])


def without_half(e):
    """Names the operator of a node that ONNX Runtime does not compute in float16, which it finds out when the node runs."""
    found = re.search(r"running (\w+) node\..*MLFloat16 data type is not supported", str(e), re.DOTALL)
    return Refused("unsupported_op", " ".join(str(e).split()), op=found[1], dtype="float16") if found else e


def dtype(name):
    """The numpy dtype of "tensor(float)"."""
    words = {"float": "float32", "double": "float64"}
    inner = name.removeprefix("tensor(").removesuffix(")")
    return words.get(inner, inner)


# Classes of onnxruntime's errors that say what is wrong with the model.
KINDS = {"NotImplemented": "unsupported_op", "InvalidGraph": "bad_input", "InvalidProtobuf": "bad_input", "InvalidArgument": "bad_input", "Fail": "bad_input"}

if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(Engine)}, KINDS))
