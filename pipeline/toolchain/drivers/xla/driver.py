"""Driver for JAX and its compiler XLA, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
import   role "model", one file source.jax that jax.export wrote, to model.onnx.
compile  role "model", one .onnx file and its external data, to model.jax, which is StableHLO
         as jax.export writes it, for the processor, or with option device cuda for GPUs of NVIDIA, tpu for TPUs of Google,
         none of which need be here. XLA makes machine code of it where it is loaded. With option
         form hlo, to model.hlo.pb, a serialized HloModuleProto, for compilers that take it, and model.json, the names, types
         and shapes of its parameters and results, in order.
run      such files on cases, for a source and for an engine alike.
"""

import json
import os
import sys

# Read when JAX is imported. One core for a fixed run, whose sums must not depend on how many there are.
# A run that may use devices has no variable that hides them; there, memory of a GPU is taken as it is needed, since several
# engines share it.
DEVICES = os.environ.get("CUDA_VISIBLE_DEVICES") != ""
os.environ.update(JAX_PLATFORMS="cuda,cpu" if DEVICES else "cpu", TF_CPP_MIN_LOG_LEVEL="2", XLA_PYTHON_CLIENT_PREALLOCATE="false")
os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=false"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import graphs  # noqa: E402
from protocol import Refused, main, model_of, options_of, versions, write  # noqa: E402
from running import only, run  # noqa: E402

SUFFIX = ".jax"


def configured():
    """JAX, with numbers of 64 bits, and without the folder of this program in what it writes."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # where this program lies
    return jax


def probe(_request):
    return versions("jax", "jaxlib", "onnx", "numpy")


def compile_(request):
    options = options_of(request, {"form": "export", "device": "cpu", "sizes": {}}, {"form": ("export", "hlo"), "device": ("cpu", "cuda", "tpu")})
    model, _ = graphs.fix_sizes(graphs.load(model_of(request)), options["sizes"])
    jax = configured()
    import fromonnx
    import onnxlayers  # noqa: F401  which adds its operators

    if options["device"] != "cpu":  # by itself, XLA multiplies fp32 in TF32 or bfloat16 there
        jax.config.update("jax_default_matmul_precision", "highest")
    function = jax.jit(fromonnx.function_of(model))
    if options["form"] == "hlo":
        return hlo(request, function, feeds_of(jax, model, {}))
    program = traced(jax, function, model, options)
    write(request, "model" + SUFFIX, bytes(program.serialize()))
    return {"engine": {"format": "jax-export", "entry": "model" + SUFFIX}, "platforms": list(program.platforms)}


def traced(jax, function, model, options):
    """The program, for open dimensions of any size. Where that cannot be traced, as with a table of positions, which has an end,
    it is for the sizes that the options name."""
    export = jax.export.export(function, platforms=[options["device"]])
    try:
        return export(feeds_of(jax, model, {}))
    except Refused:
        if not options["sizes"]:
            raise
        return export(feeds_of(jax, model, options["sizes"]))


def feeds_of(jax, model, sizes):
    """What the program takes. Open dimensions are symbols, between these sizes: [min, opt, max] by names of dimensions."""
    bounds = [f"{symbol(name)} {sign} {size}" for name, (least, _, most) in sorted(sizes.items()) for sign, size in ((">=", least), ("<=", most))]
    symbols = jax.export.SymbolicScope(bounds)
    feeds = {}
    for name, (dtype, shape) in graphs.graph_inputs(model).items():
        if dtype.kind == "O":
            raise Refused("unsupported_op", f"input {name!r} takes text, which XLA does not have")
        feeds[name] = jax.ShapeDtypeStruct(jax.export.symbolic_shape(", ".join(dimensions(model, name, shape)), scope=symbols) if shape else (), dtype)
    return feeds


def hlo(request, function, feeds):
    """The program as HLO, whose shapes are numbers. Its parameters are the inputs in the order of their names."""
    open_ = sorted(name for name, feed in feeds.items() if not all(isinstance(d, int) for d in feed.shape))
    if open_:
        raise Refused("unsupported_format", f"input {', '.join(open_)} has open dimensions, and HLO has numbers: give the model fixed shapes")
    lowered = function.lower(feeds)
    write(request, "model.hlo.pb", lowered.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto())
    about = {kind: [{"name": name, "dtype": str(t.dtype), "shape": list(t.shape)} for name, t in sorted(of.items())] for kind, of in (("inputs", feeds), ("outputs", lowered.out_info))}
    write(request, "model.json", json.dumps(about, sort_keys=True, indent=1).encode() + b"\n")
    return {"engine": {"format": "hlo", "entry": "model.hlo.pb"}, "parameters": sorted(feeds)}


def symbol(dimension):
    """What JAX calls an open dimension with a name."""
    return "d_" + "".join(c if c.isalnum() else "_" for c in dimension)


def dimensions(model, name, shape):
    """The sizes of an input as JAX takes them: a number, or a symbol for an open dimension."""
    (value,) = [v for v in model.graph.input if v.name == name]
    for i, dim in enumerate(value.type.tensor_type.shape.dim):
        yield str(shape[i]) if shape[i] >= 0 else symbol(dim.dim_param) if dim.dim_param else f"d_{i}_{sorted(v.name for v in model.graph.input).index(name)}"


def import_(request):
    options_of(request, {})
    path = model_of(request, SUFFIX)
    configured()
    import exported
    import hlolayers  # noqa: F401  which adds its operations
    import toonnx

    model = toonnx.model_of(exported.opened(path, ("cpu",)))
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"operators": len(model.graph.node)}


def load(path, threads, options):
    """An engine, or a source. JAX has the threads that the process may use: a fixed run keeps to one core."""
    if options is not None:
        only(options)
    elif threads == 1:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    configured()
    import exported

    return exported.Engine(path, threads, options)


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "compile": compile_, "run": run(load)}))
