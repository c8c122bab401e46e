"""Quantization by torchao, PyTorch's own: linear layers of a model get weights of 8 bits, with a scale for each channel."""

import importlib.util

from protocol import Refused


def present():
    """The package, where it is installed."""
    return ["torchao"] if importlib.util.find_spec("torchao") else []


def quantize(model, method):
    """Quantizes the linear layers of a model in place; no method leaves them. Of dynamic-int8, what goes into a layer is rounded to 8
    bits, too, with a scale for each token."""
    if not method:
        return
    if not present():
        raise Refused("unavailable", "this Python has no torchao, which quantizes models before AOTInductor compiles them: install it, or torch-inductor from its lock file")
    import torch
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

    try:
        quantize_(model, Int8DynamicActivationInt8WeightConfig() if method == "dynamic-int8" else Int8WeightOnlyConfig())
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever a layer makes it raise
        raise Refused("unsupported_op", f"torchao cannot quantize {type(model).__name__}: {' '.join(str(e).split())[:300]}") from e
    if all(type(p) is torch.nn.Parameter for p in model.parameters()):
        raise Refused("unsupported_op", f"torchao quantized no layer of {type(model).__name__}: it knows torch.nn.Linear")
