"""Driver for PyTorch, protocol mlpromote.driver/v1. Verbs:

probe   versions of the tools.
import  role "model", one file source.torch-export that torch.export.save wrote, to model.onnx, by
        torch.onnx.
run     such a program on cases: what PyTorch predicts.
"""

import os
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from protocol import Refused, main, model_of, options_of, versions, write  # noqa: E402
from running import run  # noqa: E402

OPSET = 18  # the earliest that torch.onnx writes


def probe(_request):
    return versions("torch", "onnxscript", "onnx", "numpy")


def import_(request):
    options_of(request, {})
    import exported

    program = exported.opened(model_of(request, exported.SUFFIX))
    model = converted(program, list(exported.inputs_of(program)), exported.outputs_of(program))
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"operators": len(model.graph.node)}


def converted(program, inputs, outputs):
    """What torch.onnx makes of it, without the lines of code that each node is from."""
    import onnx
    import torch

    try:
        made = torch.onnx.export(program, dynamo=True, opset_version=OPSET, input_names=inputs, output_names=outputs, external_data=False, verbose=False)
        model = made.model_proto
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever the translation of an operator stumbles upon
        raise Refused("unsupported_op", f"torch.onnx cannot convert this program: {' '.join(str(e.__cause__ or e).split())[:300]}") from e
    del model.metadata_props[:]
    for part in (model.graph, *model.functions):
        del part.metadata_props[:]
        for node in part.node:
            del node.metadata_props[:]
            node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
        value.doc_string = ""
    called(model)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
        raise Refused("unsupported_op", f"what torch.onnx made of this program is not valid ONNX: {' '.join(str(e).split())[:300]}") from None
    return model


def called(model):
    """The first dimension of the first input is the batch where it is open: torch calls it s77 or so."""
    first = [v.type.tensor_type.shape.dim for v in model.graph.input][:1]
    old = first[0][0].dim_param if first and len(first[0]) else ""
    if not old:
        return
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == old:
                dim.dim_param = "batch"


def run_(request):
    options_of(request, {})
    import exported

    return run(lambda path, threads, _options: exported.Engine(path, threads))(request)


if __name__ == "__main__":
    sys.exit(main({"probe": probe, "import": import_, "run": run_}))
