"""Driver for PyTorch, protocol mlpromote.driver/v1. Verbs:

probe   versions of the tools.
import  role "model", either one file source.torch-export that torch.export.save wrote, or one file source.torchscript that
        torch.jit.save wrote, with options that say what its inputs are, or one file source.gguf, or the files of a folder that
        save_pretrained of transformers wrote below source/, to model.onnx, by torch.onnx.
run     such a model on cases: what PyTorch predicts.
"""

import os
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import exported  # noqa: E402
import ggml  # noqa: E402
import pretrained  # noqa: E402
import scripted  # noqa: E402
from protocol import Refused, inputs_of, main, model_of, options_of, versions, write  # noqa: E402
from running import run  # noqa: E402

OPSET = 18  # the earliest that torch.onnx writes


def probe(_request):
    return versions("torch", "transformers", "onnxscript", "onnx", "numpy")


def import_(request):
    options = options_of(request, scripted.OPTIONS)
    sizes = {}
    if options["names"]:
        names = {}
        model, dims = of_script(scripted.opened(model_of(request, scripted.SUFFIX)), scripted.declared(options))
    elif any(i["name"] == "source/" + pretrained.CONFIG for i in inputs_of(request, "model")):
        program, dims, outputs, names = pretrained.program_of(model_of(request, "source/" + pretrained.CONFIG))
        model = converted(program, list(dims), outputs)
    elif any(i["name"].endswith(ggml.SUFFIX) for i in inputs_of(request, "model")):
        program, dims, outputs = ggml.program_of(model_of(request, ggml.SUFFIX))
        model, names = converted(program, list(dims), outputs), {}
    else:
        program = exported.opened(model_of(request, exported.SUFFIX))
        inputs, names = list(exported.inputs_of(program)), {}
        model, dims = converted(program, inputs, exported.outputs_of(program)), exported.open_dims(program)
        sizes = exported.sizes_of(program)
    called(model, dims)
    checked(model)
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"operators": len(model.graph.node), "names": names, "sizes": sizes_by_name(model, sizes)}


def of_script(module, inputs):
    """A module of TorchScript as ONNX, and the names of the open dimensions of its inputs."""
    outputs = scripted.tried(module, inputs)
    dims = {i.name: i.open() for i in inputs}
    if scripted.depends(module, inputs):  # torch.export would take the branch of the examples for all
        return with_branches(module, inputs, outputs), dims
    try:
        return converted(scripted.program_of(module, inputs), list(dims), list(outputs)), dims
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever the conversion to a program stumbles upon
        first = e
    try:
        return without_origins(scripted.onnx_of(module, inputs, outputs, OPSET)), dims
    except (MemoryError, ImportError):
        raise
    except Exception as e:
        raise Refused("unsupported_op", f"PyTorch converts this module neither by torch.export ({scripted.one_line(first)}) nor by its older exporter: "
                      f"{scripted.one_line(e)}") from e


def with_branches(module, inputs, outputs):
    """What PyTorch's older exporter makes of a module whose branches and loops depend on values."""
    try:
        return without_origins(scripted.onnx_of(module, inputs, outputs, OPSET))
    except (MemoryError, ImportError):
        raise
    except Exception as e:
        raise Refused("unsupported_op", "a branch or loop of this module depends on values, or on sizes that are open, and PyTorch's older exporter, the one "
                      f"that keeps such, cannot convert it: {scripted.one_line(e)}") from e


def converted(program, inputs, outputs):
    """What torch.onnx makes of it."""
    import torch

    try:
        made = torch.onnx.export(program, dynamo=True, opset_version=OPSET, input_names=inputs, output_names=outputs, external_data=False, verbose=False)
        model = made.model_proto
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever the translation of an operator stumbles upon
        raise Refused("unsupported_op", f"torch.onnx cannot convert this model: {' '.join(str(e.__cause__ or e).split())[:300]}") from e
    return without_origins(model)


def without_origins(model):
    """The model without the lines of code that each node is from."""
    del model.metadata_props[:]
    for part in (model.graph, *model.functions):
        del part.metadata_props[:]
        for node in part.node:
            del node.metadata_props[:]
            node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
        value.doc_string = ""
    return model


def checked(model):
    import onnx

    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
        raise Refused("unsupported_op", f"what torch.onnx made of this model is not valid ONNX: {' '.join(str(e).split())[:300]}") from None


def called(model, names):
    """Names the open dimensions, {input: {position: name}}. torch calls them s77 or so, and those of two inputs differently."""
    new = {}
    for value in model.graph.input:
        for position, name in names.get(value.name, {}).items():
            dims = value.type.tensor_type.shape.dim
            if position < len(dims) and dims[position].dim_param:
                new[dims[position].dim_param] = name
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in new:
                dim.dim_param = new[dim.dim_param]


def sizes_by_name(model, sizes):
    """The same as {name of a dimension: [least, most]}. A dimension of several inputs has the bounds of all."""
    found = {}
    for value in model.graph.input:
        for position, bounds in sizes.get(value.name, {}).items():
            dims = value.type.tensor_type.shape.dim
            if position < len(dims) and dims[position].dim_param:
                found.setdefault(dims[position].dim_param, []).append(bounds)
    return {name: [tightest(max, (b[0] for b in of)), tightest(min, (b[1] for b in of))] for name, of in found.items()}


def tightest(which, bounds):
    return which((b for b in bounds if b is not None), default=None)


def run_(request):
    inputs = scripted.declared(options_of(request, scripted.OPTIONS))
    if inputs:
        return run(lambda path, threads, _options: scripted.Engine(path, threads, inputs))(request)
    return run(lambda path, threads, _options: kind(path).Engine(path, threads))(request)


def kind(path):
    """The module that knows files of this name."""
    if path.endswith(ggml.SUFFIX):
        return ggml
    return pretrained if os.path.basename(path) == pretrained.CONFIG else exported


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "run": run_}))
