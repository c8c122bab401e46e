"""Driver for PyTorch's compiler, AOTInductor, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", a source of PyTorch as its importer takes it: source.torch-export, or the files of a folder below
         source/. Leaves model.pt2, a package with a shared object and, for a GPU, its kernels, and model.json, the names
         and types that the package does not keep.
run      such packages on cases.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import building  # noqa: E402

building.environment()  # read when PyTorch is imported

import exported  # noqa: E402
import pretrained  # noqa: E402
import quantizing  # noqa: E402
from protocol import Refused, inputs_of, main, model_of, options_of, output_path, versions, write  # noqa: E402
from running import number, only, run  # noqa: E402

DEFAULTS = {
    "device": "local",  # local is the CPU
    "cpu": "",  # level of the code for the processor, which is all of device local, as LLVM calls it: "x86-64-v3"
    "arch": "",  # of device cuda: "sm_90"
    "quantize": "",  # of folders of transformers, by torchao: layers with weights of 8 bits
}
CHOICES = {"device": ("local", "cuda"), "cpu": ("", *building.LEVELS), "quantize": ("", "dynamic-int8", "weights-int8")}


def probe(_request):
    return versions("torch", "numpy", *quantizing.present())


def compile_(request):
    options = options_of(request, DEFAULTS, CHOICES)
    program, inputs, outputs = source(request, options["quantize"])
    import torch

    about = {"inputs": list(described(program, inputs)), "outputs": outputs}
    if options["device"] == "cuda":
        device(options["arch"])
        if "CUDA_HOME" not in os.environ:
            raise Refused("unavailable", "there is no CUDA toolkit, whose headers the compiler of the system needs: expected one in /usr/local/cuda")
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, "cuda")
    building.compiler(options["cpu"] or building.LOWEST)
    made = package(torch, program)
    building.settled(made, output_path(request, "model.pt2"))
    write(request, "model.json", json.dumps({**about, **options, "torch": plain(torch)}, sort_keys=True, indent=1).encode() + b"\n")
    return {"engine": {"format": "torch-aoti", "entry": "model.pt2"}}


def source(request, method):
    """The program of a source, and the names of its inputs and outputs, which are those of the ONNX reference."""
    if any(i["name"] == "source/" + pretrained.CONFIG for i in inputs_of(request, "model")):
        program, dims, outputs, _ = pretrained.program_of(model_of(request, "source/" + pretrained.CONFIG), lambda model: quantizing.quantize(model, method))
        return program, list(dims), outputs
    if method:
        raise Refused("unsupported_format", "torchao quantizes layers of a model, and a program of torch.export has none: expected a folder of transformers")
    program = exported.opened(model_of(request, exported.SUFFIX))
    return program, list(exported.inputs_of(program)), exported.outputs_of(program)


def described(program, names):
    import torch

    for name, node in zip(names, exported.inputs_of(program).values(), strict=True):
        tensor = node.meta["val"]
        if not isinstance(tensor, torch.Tensor):
            raise Refused("unsupported_format", f"input {name!r} is no tensor: export the program with its value in it")
        if tensor.dtype == torch.bfloat16:
            raise Refused("unsupported_format", f"input {name!r} is bfloat16, which cases do not have")
        yield {"name": name, "dtype": str(torch.empty(0, dtype=tensor.dtype).numpy().dtype), "shape": [s if isinstance(s, int) else -1 for s in tensor.shape]}


def plain(torch):
    return torch.__version__.partition("+")[0]


def device(arch):
    """Looks for the GPU that code is compiled for: Inductor has its kernels tried on it."""
    import torch

    if not torch.cuda.is_available():
        raise Refused("unavailable", f"PyTorch {torch.__version__} can use no GPU of this machine, and compiles for one only where it is")
    here = "sm_{}{}".format(*torch.cuda.get_device_capability())
    if here != arch:
        raise Refused("target_mismatch", f"the GPU of this machine is {here}, and the target asks for {arch}: PyTorch compiles for the GPU that it runs on")


def package(torch, program):
    if program.example_inputs is None:
        raise Refused("bad_input", "the program has no example inputs, which PyTorch's compiler wants: save it as torch.export made it")
    settings = {
        "aot_inductor.metadata": {"torch": plain(torch)},
        "aot_inductor.precompile_headers": False,
        "aot_inductor.model_name_for_generated_files": "model",
        "cpp.dynamic_threads": True,  # not as many as the machine has that compiles
        "max_autotune": False,
        "fx_graph_cache": False,
    }
    try:
        made = torch._inductor.aoti_compile_and_package(program, package_path=os.path.abspath("model.pt2"), inductor_configs=settings)
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever the compiler stumbles upon
        said = " ".join(str(e.__cause__ or e).split())
        raise Refused("tool_failed" if "C++ compile error" in said else "unsupported_op", f"PyTorch's compiler cannot compile this program: {said[-400:]}") from e
    return made


class Engine:
    def __init__(self, path, threads, options):
        import numpy
        import torch

        if options is not None:
            only(options, "num_threads")
            threads = number(options, "num_threads")
        if threads is not None:
            torch.set_num_threads(threads)
        with open(os.path.join(os.path.dirname(path), "model.json"), encoding="utf-8") as f:
            about = json.load(f)
        if about["torch"] != plain(torch):
            raise Refused("target_mismatch", f"the engine is for torch {about['torch']}, and this is {torch.__version__}")
        self.torch, self.device = torch, "cuda" if about["device"] == "cuda" else "cpu"
        if self.device == "cuda":
            device(about["arch"])
        building.vectors(building.LEVELS[about["cpu"] or building.LOWEST])
        try:
            self.loader = torch._inductor.aoti_load_package(path).loader
        except RuntimeError as e:
            said = " ".join(str(e).split())
            if "ISA level" in said:
                raise Refused("target_mismatch", f"this machine cannot load an engine for {about['cpu']}: its processor has not all instructions of that level") from None
            raise Refused("bad_input", f"PyTorch {torch.__version__} cannot load the package: {said[:300]}") from None
        self.inputs = {i["name"]: (numpy.dtype(i["dtype"]), i["shape"]) for i in about["inputs"]}
        self.outputs = about["outputs"]

    def run(self, feed):
        found = self.loader.run([self.torch.from_numpy(feed[name]).to(self.device) for name in self.inputs])
        elsewhere = {t.device.type for t in found} - {self.device}
        if elsewhere:
            raise Refused("tool_failed", f"the engine computed on {', '.join(sorted(elsewhere))}, and it is for {self.device}")
        return [t.detach().cpu().numpy() for t in found]


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_, "run": run(Engine)}))
