"""Driver for OpenVINO on CPUs, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, to OpenVINO's intermediate
         representation: model.xml, the graph, and model.bin, its weights as they are. With
         option form blob to model.blob: what the CPU plugin makes of it for option isa.
run      such engines on cases.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from blobs import exported, imported, instructions, limit  # noqa: E402
from protocol import Refused, inputs_of, main, model_of, options_of, output_path, versions, write  # noqa: E402
from running import run  # noqa: E402

# How engines are run in a fixed run, and what a blob is compiled with: nothing in a precision
# that the model does not ask for, one stream of one thread.
SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1, "EXECUTION_MODE_HINT": "ACCURACY", "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False}


def core():
    import openvino

    return openvino.Core()


def probe(_request):
    return versions("openvino", "numpy")


def compile_(request):
    options = options_of(request, {"form": "ir", "isa": ""}, {"form": ("ir", "blob")})
    limit(options["isa"])
    import openvino

    source = model_of(request)
    try:
        model = core().read_model(source)
    except RuntimeError as e:
        raise refusal(e) from None
    forget_casts(model)
    if options["form"] == "blob":
        write(request, "model.blob", exported(core(), model, SETTINGS))
        return {"engine": {"format": "openvino-blob", "entry": "model.blob"}}
    openvino.save_model(model, output_path(request, "model.xml"), compress_to_fp16=False)
    return {"engine": {"format": "openvino-ir", "entry": "model.xml"}, "inputs": len(inputs_of(request, "model"))}


def forget_casts(model):
    """Takes the names of what lies behind casts of inputs and outputs away. The CPU plugin computes
    without such casts, and an input would then also have the name of its cast, perhaps as the first."""
    kept = {n for port in model.inputs + model.outputs for n in port.names}
    casts = [t.get_node() for i in model.inputs for t in i.get_target_inputs()]
    inner = [c.output(0) for c in casts if c.get_type_name() == "Convert"]
    casts = [o.get_node().input_value(0).get_node() for o in model.outputs]
    inner += [c.input_value(0) for c in casts if c.get_type_name() == "Convert"]
    for port in inner:
        if not kept & port.names:
            port.get_tensor().set_names(set())


# What the front end says of each kind of operator that it does not take, before a summary that has the kinds alone. A node is
# called after its first output.
FAILED = re.compile(r"^-- (\S+) with a message:\n(.*?)(?=^-- |^Summary:|\Z)", re.M | re.S)
NODE = re.compile(r"While validating ONNX node '<Node\(\w+\): (.*?)>':")
PLACES = ("Check '", "While validating", "Exception from")  # lines that say where in OpenVINO's code it was found


def failures(text):
    """Each operator that was not converted with its node and the cause, in some hundred characters."""
    for kind, told in FAILED.findall(text):
        node = NODE.search(told)
        cause = " ".join(line.strip() for line in told.splitlines() if not line.startswith(PLACES))
        yield f"{kind}{f' that makes {node.group(1)[:100]!r}' if node else ''}: {' '.join(cause.split())[:150] or 'it does not say why'}"


def refusal(e):
    """What OpenVINO's front end says of a model that it cannot take."""
    text = str(e).strip()
    for line in text.splitlines():
        if "No conversion rule found for operations" in line:
            return Refused("unsupported_op", line.strip(), op=line.rpartition(":")[2].strip())
    failed = list(failures(text))
    if failed:
        more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
        return Refused("unsupported_op", f"OpenVINO cannot convert {'; '.join(failed[:3])}{more}", op=failed[0].split()[0].rstrip(":"))
    return Refused("bad_input", text.splitlines()[-1] if text else "OpenVINO cannot read the model")


def name(port):
    """The name of an input or output: of several, that of its node, which is what the source calls it."""
    own = port.get_node().get_friendly_name()
    return own if own in port.names else port.get_any_name()


class Engine:
    def __init__(self, path, threads, options):
        settings = {**SETTINGS, "INFERENCE_NUM_THREADS": threads} if options is None else options
        if path.endswith(".blob"):
            limit(instructions(path))
            self.compiled, self.again = imported(core(), path, settings), None
            named = self.compiled
        else:
            # The compiled model adds names of its own to what it joined, such as an input and its cast.
            named = core().read_model(path)
            self.compiled = core().compile_model(named, "CPU", settings)
            self.again = lambda: core().compile_model(path, "CPU", {**settings, "PERF_COUNT": True})
        self.request = self.compiled.create_infer_request()
        self.inputs = {
            name(own): (i.get_element_type().to_dtype(), [-1 if d.is_dynamic else d.get_length() for d in i.get_partial_shape()])
            for own, i in zip(named.inputs, self.compiled.inputs)
        }
        self.outputs = [name(o) for o in named.outputs]

    def run(self, feed):
        return list(self.request.infer(feed).values())

    def profile(self, feed, runs):
        """Where the time goes, of a model that is compiled again to count it. A blob counts nothing, since it
        was compiled so."""
        if self.again is None:
            return {"runs": 0, "operators": []}
        request = self.again().create_infer_request()
        request.infer(feed)
        found = {}
        for _ in range(runs):
            request.infer(feed)
            for node in request.get_profiling_info():
                if node.status.name == "EXECUTED":
                    entry = found.setdefault(node.node_name, {"node": node.node_name, "operator": node.node_type, "provider": node.exec_type, "time_ns": 0})
                    entry["time_ns"] += round(node.real_time.total_seconds() * 1e9)
        return {"runs": runs, "operators": [{**o, "time_ns": o["time_ns"] // runs} for o in found.values()]}


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(Engine)}))
