"""Driver for TensorRT-RTX, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, for one compute capability. That
         needs no GPU. Leaves model.engine, and model.json with the sizes that the engine takes.

It runs no engines: these need a GPU of the RTX families and its driver.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from protocol import Refused, main, model_of, options_of, output_path, versions, write  # noqa: E402

DEFAULTS = {
    "device": "cuda",
    "arch": "",  # compute capability: "sm_86"
    "sizes": {},  # of open dimensions, by their names in the model: [min, opt, max]
}
CHOICES = {"device": ("cuda",)}


def probe(_request):
    return versions("tensorrt-rtx-cu13-libs", "tensorrt-rtx-cu13-bindings", "onnx", "numpy")


def logger(trt):
    """What the compiler prints, on standard error; its errors are kept for the answer."""

    class Logger(trt.ILogger):
        def __init__(self):
            trt.ILogger.__init__(self)
            self.errors = []

        def log(self, severity, message):
            if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                self.errors.append(message)
            if severity != trt.ILogger.Severity.VERBOSE:
                print(severity.name, message, file=sys.stderr)

    return Logger()


def capability(trt, arch):
    """The compiler's own constant for an architecture such as sm_86."""
    known = {name.lower().replace("sm", "sm_"): value for name, value in trt.ComputeCapability.__members__.items() if name.startswith("SM")}
    if arch not in known:
        raise Refused("unsupported_format", f"TensorRT-RTX {trt.__version__} compiles for {', '.join(known)}, not for {arch or 'no architecture'}")
    return known[arch]


def parsed(trt, log, path):
    """Builder and network of the model."""
    builder = trt.Builder(log)
    network = builder.create_network()
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(path):
        raise refusal([parser.get_error(i) for i in range(parser.num_errors)])
    return builder, network, parser  # the network uses memory of its parser


def refusal(errors):
    """The parser's first complaint."""
    if not errors:
        return Refused("bad_input", "the parser of TensorRT-RTX rejects the model, and does not say why")
    first = errors[0]
    message = " ".join(first.desc().split())[:300]
    op = first.node_operator() or None
    if "UNSUPPORTED" in str(first.code()).upper():
        return Refused("unsupported_op", f"TensorRT-RTX: {message}", op=op)
    return Refused("bad_input", f"TensorRT-RTX cannot read the model: {message}", op=op)


def shapes(network, sizes):
    """For each input, the smallest shape that the engine takes, the one that it is best for, and the largest."""
    found = {}
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        ranges = []
        for axis, size in enumerate(tensor.shape):
            name = tensor.get_dimension_name(axis)
            if size < 0 and name not in sizes:
                raise Refused("bad_input", f"input {tensor.name} has an open dimension {axis} {name!r}, and option sizes does not say how large that can be")
            ranges.append([size] * 3 if size >= 0 else sizes[name])
        found[tensor.name] = [list(shape) for shape in zip(*ranges, strict=True)]
    return found


def open_sizes(builder, network, config, found):
    """Tells the compiler the ranges of open dimensions, without which it builds nothing."""
    if all(size >= 0 for i in range(network.num_inputs) for size in network.get_input(i).shape):
        return
    profile = builder.create_optimization_profile()
    for name, (smallest, best, largest) in found.items():
        profile.set_shape(name, smallest, best, largest)
    config.add_optimization_profile(profile)


def compile_(request):
    options = options_of(request, DEFAULTS, CHOICES)
    path = model_of(request)
    # The package tensorrt_rtx only renames this one, and is a source distribution that a lock of wheels cannot have.
    import tensorrt_rtx_bindings as trt

    target = capability(trt, options["arch"])
    log = logger(trt)
    builder, network, _parser = parsed(trt, log, path)
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    if not config.set_compute_capability(target, 0):
        raise Refused("tool_failed", f"TensorRT-RTX does not take {options['arch']}: {last(log)}")
    found = shapes(network, options["sizes"])
    open_sizes(builder, network, config, found)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise Refused("unsupported_op" if "not supported" in last(log) else "tool_failed", f"TensorRT-RTX for {options['arch']}: {last(log)}")
    with open(output_path(request, "model.engine"), "wb") as f:
        f.write(engine)
    outputs = [network.get_output(i).name for i in range(network.num_outputs)]
    about = {"inputs": {name: dict(zip(("min", "opt", "max"), s, strict=True)) for name, s in found.items()}, "outputs": outputs, "arch": options["arch"]}
    write(request, "model.json", json.dumps(about, sort_keys=True, indent=1).encode() + b"\n")
    return {"engine": {"format": "tensorrt-rtx-engine", "entry": "model.engine"}}


def last(log):
    """The compiler's last error, short."""
    return " ".join(log.errors[-1].split())[:300] if log.errors else "it does not say why"


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_}))
