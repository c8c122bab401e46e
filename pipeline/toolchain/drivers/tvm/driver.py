"""Driver for Apache TVM, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, for an x86-64 CPU of the level that
         the options name. Leaves model.so, a shared object that says itself which level it
         needs (the property x86 ISA needed, which the dynamic linker checks), and model.json,
         the names and types that the module does not keep.
run      such modules on cases.
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from folding import fold_shapes  # noqa: E402
from graphs import fix_sizes, graph_inputs, load  # noqa: E402
from protocol import Refused, main, model_of, options_of, output_path, versions, write  # noqa: E402
from running import number, only, run  # noqa: E402

DEFAULTS = {
    "device": "local",  # the CPU
    "cpu": "",  # as LLVM calls it: "x86-64-v3"
    "features": [],  # beyond what the name stands for: "+avx512vnni"
    "sizes": {},  # of open dimensions, by their names in the model: [min, opt, max]
}
CHOICES = {"device": ("local",), "cpu": ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")}
TRIPLE = "x86_64-unknown-linux-gnu"
# What the linker is told: no names of the machine or the run.
LINK = ("-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,noexecstack")
# An object with nothing but a property, GNU_PROPERTY_X86_ISA_1_NEEDED of the x86-64 psABI, which the linker takes over. Its
# own option for that, -z x86-64-v2, ends binutils 2.40 with an internal error for some objects.
LEVEL = """
	.section .note.gnu.property,"a"
	.p2align 3
	.long 4, 16, 5
	.asciz "GNU"
	.long 0xc0008002, 4, {}, 0
	.section .note.GNU-stack,"",@progbits
"""
ENTRY = "main"


def probe(_request):
    return versions("apache-tvm", "apache-tvm-ffi", "onnx", "numpy")


def compile_(request):
    options = options_of(request, DEFAULTS, CHOICES)
    sizes = options.pop("sizes")
    model = fold_shapes(fix_sizes(load(model_of(request)), sizes)[0])
    about = {"inputs": [{"name": n, "dtype": str(d), "shape": s} for n, (d, s) in graph_inputs(model).items()], "outputs": [o.name for o in model.graph.output]}
    import tvm

    executable = compiled(model, tvm.target.Target({"kind": "llvm", "mtriple": TRIPLE, "mcpu": options["cpu"], **({"mattr": options["features"]} if options["features"] else {})}))
    os.makedirs("objects", exist_ok=True)  # whose path is in no object
    executable.export_library(output_path(request, "model.so"), workspace_dir="objects", fcompile=linker(options["cpu"]))
    write(request, "model.json", json.dumps({**about, **options}, sort_keys=True, indent=1).encode() + b"\n")
    return {"engine": {"format": "tvm-so", "entry": "model.so"}, "flags": [f"{k}={v}" for k, v in options.items()]}


def compiled(model, target):
    """What TVM makes of the model. Its kernels are as TVM writes them without tuning."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    try:
        module = from_onnx(model, keep_params_in_input=False)
        with target:
            module = relax.get_pipeline()(module)
        return tvm.compile(module, target=target)
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever the translation or the compiler stumbles upon
        raise refusal(str(e)) from e


def refusal(text):
    """What stands in the way, short, with the operators if it names some."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = (lines or ["it does not say why"])[-1]
    found = re.search(r"not supported for frontend ONNX:\s*(?:\[|\{)?'?(\w+)", text.replace("\n", " "))
    return Refused("unsupported_op", f"TVM cannot compile this model: {said[:300]}", op=found.group(1) if found else None)


def linker(cpu):
    """What TVM calls to make a shared object of object files, by the compiler of the system."""

    def link(output, objects, options=None, **_):
        with open("level.s", "w", encoding="ascii") as f:
            f.write(LEVEL.format(1 << CHOICES["cpu"].index(cpu)))
        for command in (["-c", "level.s", "-o", "level.o"], [*LINK, "-o", output, *objects, "level.o", *(options or [])]):
            try:
                done = subprocess.run(["cc", *command], capture_output=True, text=True, check=False)
            except FileNotFoundError:
                raise Refused("unavailable", "there is no cc, the compiler of the system, which links engines of tvm: on Debian: apt-get install gcc libc6-dev") from None
            if done.returncode:
                raise Refused("tool_failed", f"the linker fails: {' '.join(done.stderr.split())[:300] or 'it does not say why'}")

    link.output_format = "so"
    return link


class Engine:
    def __init__(self, path, threads, options):
        import numpy
        import tvm
        import tvm_ffi
        from tvm import relax

        if options is not None:
            only(options, "num_threads")
            threads = number(options, "num_threads")
        if threads is not None:
            tvm.get_global_func("runtime.config_threadpool")(1, threads)
        with open(os.path.join(os.path.dirname(path), "model.json"), encoding="utf-8") as f:
            about = json.load(f)
        try:
            machine = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
        except (OSError, RuntimeError) as e:
            if "ISA level" in str(e):
                raise Refused("target_mismatch", f"this machine cannot load a module for {about['cpu']}: its processor has not all instructions of that level") from None
            raise
        self.function, self.tensor = machine[ENTRY], tvm.runtime.tensor
        self.numpy, self.several = numpy, tvm_ffi.Array
        self.inputs = {i["name"]: (numpy.dtype(i["dtype"]), i["shape"]) for i in about["inputs"]}
        self.outputs = about["outputs"]

    def run(self, feed):
        found = self.function(*(self.tensor(feed[name]) for name in self.inputs))
        return [self.array(r) for r in (found if isinstance(found, self.several) else [found])]

    def array(self, result):
        """A result as an array. What TVM knows to be a shape or a size of one, it gives as numbers of its own."""
        return result.numpy() if hasattr(result, "numpy") else self.numpy.array(result, "int64")


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(Engine)}))
