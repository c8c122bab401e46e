"""Driver for IREE, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, for the CPU or the device
         that the options name, be it here or not. Role "tuning", if it is there, is a tuning
         spec, a library of transformations that says how to compile what it matches. Leaves
         model.vmfb, the module, and model.json, the names and types that the module does
         not keep.
run      modules on cases, where this machine has the device.
"""

import json
import mmap
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from protocol import Refused, inputs_of, main, model_of, options_of, output_path, versions, write  # noqa: E402
from running import only, run  # noqa: E402

DEFAULTS = {
    "device": "local",  # where the module runs: local is the CPU
    "cpu": "",  # of device local, as LLVM calls it: "x86-64-v3"
    "features": [],  # of it, beyond what the name stands for: "+avx512vnni"
    "triple": "x86_64-unknown-linux-gnu",  # of device local
    "arch": "",  # of other devices: "sm_90", "gfx942"
}
CHOICES = {"device": ("local", "cuda", "hip")}
ENTRY = "main"


def probe(_request):
    """A Python that only runs engines has no compiler."""
    from importlib.metadata import distributions

    there = {d.metadata["Name"] for d in distributions()}
    return versions("iree-base-runtime", "numpy", *(n for n in ("iree-base-compiler", "onnx") if n in there))


def flags(options):
    """What the compiler is told of the target. Nothing of the machine that it runs on."""
    common = [
        f"--iree-hal-target-device={options['device']}",
        "--iree-vm-bytecode-module-strip-source-map=true",
        "--iree-hal-executable-debug-level=0",
    ]
    match options["device"]:
        case "local":
            if not options["cpu"]:
                raise Refused("bad_input", "device local wants option cpu, for example x86-64-v3: the machine that compiles is not the one that runs")
            return [
                *common,
                "--iree-hal-local-target-device-backends=llvm-cpu",
                f"--iree-llvmcpu-target-triple={options['triple']}",
                f"--iree-llvmcpu-target-cpu={options['cpu']}",
                *([f"--iree-llvmcpu-target-cpu-features={','.join(options['features'])}"] if options["features"] else []),
            ]
        case "cuda":
            return [*common, f"--iree-cuda-target={options['arch']}"]
        case "hip":
            return [*common, f"--iree-rocm-target={options['arch']}"]


def read_model(path):
    """The model, its graph under a name of our own, since the module's function gets it."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path)
        onnx.checker.check_model(path)
    except (DecodeError, onnx.checker.ValidationError) as e:
        raise Refused("bad_input", f"the model is not valid ONNX: {e}") from None
    model.graph.name = ENTRY
    return model


def interface(model):
    """Names, dtypes and shapes of the inputs, -1 for open dimensions; names of the outputs."""
    import onnx

    initialized = {i.name for i in model.graph.initializer}
    inputs = []
    for value in model.graph.input:
        if value.name in initialized:
            continue
        tensor = value.type.tensor_type
        inputs.append({
            "name": value.name,
            "dtype": str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)),
            "shape": [d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim],
        })
    return {"function": ENTRY, "inputs": inputs, "outputs": [o.name for o in model.graph.output]}


def precise(model):
    """What keeps float64 of inputs and outputs. By itself the compiler computes them in float32, and the module still says float64."""
    import onnx

    double = any(v.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE for v in (*model.graph.input, *model.graph.output))
    return ["--iree-input-demote-f64-to-f32=false"] if double else []


def compile_(request):
    options = options_of(request, DEFAULTS, CHOICES)
    arguments = flags(options)
    import onnx
    from iree.compiler import tools
    from iree.compiler.tools.import_onnx import __main__ as importer

    model = read_model(model_of(request))
    about = interface(model)
    arguments += precise(model)
    onnx.save(model, "model.onnx")
    importer.main(importer.parse_arguments(["model.onnx", "-o", "model.mlir", "--opset-version", str(max(17, opset(model)))]))
    try:
        tools.compile_file("model.mlir", output_file=output_path(request, "model.vmfb"), input_type="onnx", extra_args=[*arguments, *tuning(request)])
    except tools.CompilerToolError as e:
        raise refusal(str(e), options) from None
    write(request, "model.json", json.dumps({**about, **options}, sort_keys=True, indent=1).encode() + b"\n")
    return {"engine": {"format": "iree-vmfb", "entry": "model.vmfb"}, "flags": arguments}


def tuning(request):
    """How the compiler is told of a tuning spec. Where that lies is no part of the answer."""
    arguments = []
    for item in inputs_of(request, "tuning"):
        try:
            with open(item["path"], encoding="utf-8") as f:
                f.read()
        except UnicodeDecodeError:
            raise Refused("bad_input", "the tuning spec is no text: want MLIR as it is written, not bytecode") from None
        arguments.append(f"--iree-codegen-tuning-spec-path={item['path']}")
    return arguments


def opset(model):
    return max((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), default=1)


def refusal(text, options):
    """The compiler's complaint, short, with the operator that it is about."""
    if "Failed to load tuning spec" in text:
        said = re.search(r"tuning\.mlir:(\d+:\d+: error: .*)", text)
        return Refused("bad_input", f"the tuning spec is none that this compiler takes: {said.group(1)[:300] if said else 'it does not say why'}")
    if "missing GPU target" in text or "nknown CUDA target" in text:
        return Refused("unsupported_format", f"this compiler knows no {options['device']} architecture {options['arch']}: "
                       "name an earlier one that it knows, such as sm_80, whose code later devices run (compatibility: version-compatible)")
    if found := re.search(r"undefined symbol: (\w+)", text):
        return Refused("unsupported_op", f"IREE has no code for {found.group(1)}, which the model computes in float64: convert the model to float32")
    for line in text.splitlines():
        if found := re.search(r"failed to legalize (?:operation )?'?(?:torch\.operator)?'?[^\"]*\"?(onnx\.\w+)?", line):
            op = found.group(1) or (re.search(r"onnx\.\w+", text) or [None])[0]
            return Refused("unsupported_op", line.split("error:")[-1].strip()[:300], op=op)
    errors = [line.split("error:")[-1].strip() for line in text.splitlines() if "error:" in line]
    return Refused("tool_failed", (errors or [text.strip()[-300:]])[0][:300])


def why(e):
    """What the runtime complains of, in one line. What it says of a device is in the cause."""
    text = str(e.__cause__ or e)
    found = re.search(r"CUDA error .*", text)
    return " ".join((found.group(0) if found else text.splitlines()[0]).split())[:300]


class Engine:
    def __init__(self, path, threads, options):
        import iree.runtime
        import numpy

        with open(os.path.join(os.path.dirname(path), "model.json"), encoding="utf-8") as f:
            about = json.load(f)
        local = "local-sync" if threads == 1 else "local-task"
        if options is not None:
            only(options, "driver")
            local = options.get("driver", "local-task")
        driver = {"local": local}.get(about["device"], about["device"])
        try:
            config = iree.runtime.Config(driver)
        except (RuntimeError, ValueError) as e:  # which says nothing of the engine
            raise Refused("unavailable", f"IREE can use no device {driver} of this machine: {why(e)}") from None
        try:
            # The runtime's own way to map a file opens it for writing.
            with open(path, "rb") as f:
                self.mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
            self.module = iree.runtime.load_vm_module(iree.runtime.VmModule.wrap_buffer(config.vm_instance, self.mapped), config)
        except (RuntimeError, ValueError) as e:
            raise Refused("target_mismatch", f"this machine cannot load a module for {about['device']} {about['cpu'] or about['arch']}: {why(e)}") from None
        self.function = self.module[about["function"]]
        self.inputs = {i["name"]: (numpy.dtype(i["dtype"]), i["shape"]) for i in about["inputs"]}
        self.outputs = about["outputs"]

    def run(self, feed):
        results = self.function(*(feed[name] for name in self.inputs))
        if len(self.outputs) == 1:
            results = (results,)
        return [r.to_host() for r in results]


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(Engine)}))
