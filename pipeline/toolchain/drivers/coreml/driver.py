"""Driver for Core ML, protocol mlpromote.driver/v1. Verbs:

probe    versions of the tools.
compile  role "model", one .onnx file and its external data, to an ML program: the folder
         model.mlpackage. Every dimension has one size.

It runs no engines: Core ML is part of Apple's systems.
"""

import json
import os
import shutil
import sys
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from graphs import fix_sizes  # noqa: E402
from protocol import Refused, main, model_of, options_of, output_path, versions, write  # noqa: E402

DEFAULTS = {
    "deployment": "macOS14",  # the oldest system that loads the engine; macOS14 and iOS17 are the same format
    "sizes": {},  # of open dimensions, by their names in the model: [min, opt, max]
}
CHOICES = {"deployment": ("macOS12", "macOS13", "macOS14", "macOS15")}
PACKAGE = "model.mlpackage"
DATA = "com.apple.CoreML"


def probe(_request):
    return versions("coremltools", "onnx2coreml", "onnx", "numpy")


def fix(model, sizes):
    """The model, whose open dimensions have the one size that they can have."""
    model, still = fix_sizes(model, sizes)
    for name in still:
        raise Refused("bad_input", f"dimension {name} of the model is open, and Core ML engines are made for one size: "
                      f"give it one under shapes in the spec, such as shapes: {{{name}: 1}}")
    return model


def converted(model, deployment):
    """Core ML's own description of the network, and the folder with its weights."""
    import onnx2coreml

    try:
        # The graph keeps its types: without this, fp32 would silently become fp16.
        made = onnx2coreml.convert(model, minimum_deployment_target=deployment, compute_precision="fp32")
    except onnx2coreml.UnsupportedOpError as e:
        raise Refused("unsupported_op", short(e), op=sorted(e.missing)[0]) from None
    except onnx2coreml.Onnx2CoreMLError as e:
        raise Refused("tool_failed", short(e)) from None
    return made.get_spec(), made.weights_dir


def short(e):
    return "onnx2coreml: " + " ".join(str(e).split())[:300]


def types():
    """Core ML's types of arrays, for those of ONNX. It has no int64."""
    from coremltools.proto import FeatureTypes_pb2
    from onnx import TensorProto as T

    array = FeatureTypes_pb2.ArrayFeatureType
    return {T.FLOAT: array.FLOAT32, T.FLOAT16: array.FLOAT16, T.INT32: array.INT32, T.INT64: array.INT32, T.DOUBLE: array.DOUBLE}, array.ArrayDataType


def compare(spec, model):
    """The interface of the engine, which has to be that of the model."""
    known, names = types()
    initialized = {i.name for i in model.graph.initializer}
    interface = {}
    for what, values, found in (
        ("inputs", [i for i in model.graph.input if i.name not in initialized], spec.description.input),
        ("outputs", model.graph.output, spec.description.output),
    ):
        if [v.name for v in values] != [f.name for f in found]:
            raise Refused("tool_failed", f"the engine has the {what} {', '.join(f.name for f in found)}, the model {', '.join(v.name for v in values)}")
        interface[what] = []
        for value, feature in zip(values, found, strict=True):
            array, tensor = feature.type.multiArrayType, value.type.tensor_type
            if array.dataType != known.get(tensor.elem_type):
                raise Refused("tool_failed", f"{value.name}: the engine has {names.Name(array.dataType)}, and the model type {tensor.elem_type} of ONNX")
            shape = [d.dim_value for d in tensor.shape.dim]
            if len(shape) != len(array.shape) or any(want and want != have for want, have in zip(shape, array.shape, strict=True)):
                raise Refused("tool_failed", f"{value.name}: the engine has {list(array.shape)}, the model {shape}")
            interface[what].append({"name": value.name, "dtype": names.Name(array.dataType), "shape": list(array.shape)})
    return interface


def clean(spec):
    """Takes out what the converter says of itself and of today, which is nothing of the model."""
    about = spec.description.metadata
    about.shortDescription = about.author = about.license = ""
    about.userDefined.pop("com.github.apple.coremltools.conversion_date", None)


def identifier(path):
    """An identifier of an item in the package; any that are unique there will do."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://mlpromote.dev/coreml/{path}"))


def manifest(with_weights):
    """Manifest.json of a package. Apple's library draws its identifiers at random."""
    items = [("model.mlmodel", "CoreML Model Specification")] + ([("weights", "CoreML Model Weights")] if with_weights else [])
    entries = {identifier(name): {"author": DATA, "description": what, "name": name, "path": f"{DATA}/{name}"} for name, what in items}
    return json.dumps({"fileFormatVersion": "1.0.0", "itemInfoEntries": entries, "rootModelIdentifier": identifier("model.mlmodel")},
                      sort_keys=True, indent=4).encode() + b"\n"


def compile_(request):
    options = options_of(request, DEFAULTS, CHOICES)
    import onnx

    model = onnx.load(model_of(request))
    onnx.checker.check_model(model)
    model = fix(model, options["sizes"])
    spec, weights = converted(model, options["deployment"])
    clean(spec)
    interface = compare(spec, model)
    stored = sorted(os.listdir(weights)) if weights and os.path.isdir(weights) else []
    for name in stored:
        shutil.copyfile(os.path.join(weights, name), output_path(request, f"{PACKAGE}/Data/{DATA}/weights/{name}"))
    write(request, f"{PACKAGE}/Data/{DATA}/model.mlmodel", spec.SerializeToString(deterministic=True))
    write(request, f"{PACKAGE}/Manifest.json", manifest(bool(stored)))
    write(request, "model.json", json.dumps(interface, sort_keys=True, indent=1).encode() + b"\n")
    check(os.path.join(request["out_dir"], PACKAGE), spec)
    return {"engine": {"format": "coreml-mlpackage", "entry": f"{PACKAGE}/Manifest.json"}}


def check(package, spec):
    """Apple's own reader takes the package, as far as it can be had without its systems."""
    import coremltools

    read = coremltools.models.MLModel(package, skip_model_load=True)
    if read.get_spec().description != spec.description:
        raise Refused("tool_failed", "coremltools reads another interface from the package than it wrote")


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "compile": compile_}, {"DecodeError": "bad_input", "ValidationError": "bad_input"}))
