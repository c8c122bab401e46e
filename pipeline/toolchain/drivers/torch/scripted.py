"""Modules of TorchScript: archives that torch.jit.save wrote. What their inputs are is said beside them."""

import warnings

from protocol import Refused

SUFFIX = ".torchscript"
OPTIONS = {"names": [], "dtypes": [], "shapes": [], "examples": []}


class Declared:
    """An input as the spec has it: its dimensions are sizes or names, and example is a shape that it may have."""

    def __init__(self, name, dtype, shape, example):
        self.name, self.dtype = name, dtype
        self.shape = [int(d) if d.isdigit() else d for d in shape.split(",") if d]
        self.example = [int(d) for d in example.split(",") if d]

    def open(self):
        """{position: name} of the dimensions that have no size."""
        return {i: d for i, d in enumerate(self.shape) if isinstance(d, str)}


def declared(options):
    return [Declared(*of) for of in zip(*(options[key] for key in OPTIONS), strict=True)]


def opened(path):
    import torch

    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        return torch.jit.load(path, map_location="cpu").eval()
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever a damaged archive makes it raise
        raise Refused("bad_input", f"torch {torch.__version__} cannot load the module: {one_line(e)}") from None


def one_line(error):
    return " ".join(str(error).split())[:300]


def examples(inputs):
    """Arguments for tracing. Ones, since a size of 0 or an index beyond a table would end it."""
    import torch

    return tuple(torch.ones(i.example, dtype=getattr(torch, i.dtype)) for i in inputs)


def tried(module, inputs):
    """The outputs of the module for its examples: {name: tensor}, as keys of a dictionary, output, or output0 and so on."""
    import torch
    import torch.utils._pytree as pytree

    try:
        with torch.no_grad():
            made = module(*examples(inputs))
    except (MemoryError, ImportError):
        raise
    except Exception as e:
        shapes = ", ".join(f"{i.name} {i.dtype}{i.example}" for i in inputs)
        raise Refused("bad_input", f"the module does not run with inputs {shapes}, which source.inputs and shapes name: {one_line(e)}") from None
    found = {}
    leaves = pytree.tree_flatten_with_path(made)[0]
    for i, (path, tensor) in enumerate(leaves):
        if not isinstance(tensor, torch.Tensor):
            raise Refused("unsupported_format", f"output {i} of the module is no tensor but {type(tensor).__name__}")
        words = [str(part.key) for part in path if hasattr(part, "key")]
        found[".".join(words) or ("output" if len(leaves) == 1 else f"output{i}")] = tensor
    if len(found) < len(leaves) or set(found) & {i.name for i in inputs}:
        raise Refused("unsupported_format", f"two tensors of the module would be called the same: {', '.join(found)}")
    return found


def program_of(module, inputs):
    """The module as a program of torch.export."""
    import torch
    from torch._export.converter import TS2EPConverter

    dims = {name: torch.export.Dim(name) for i in inputs for name in i.open().values()}
    program = TS2EPConverter(module, examples(inputs)).convert()
    shapes = tuple({at: dims[name] for at, name in i.open().items()} or None for i in inputs)
    return torch.export.export(program.module(), examples(inputs), dynamic_shapes=shapes)


def onnx_of(module, inputs, outputs, opset):
    """What PyTorch's exporter for TorchScript makes of it: of modules with branches and loops, which torch.export does not take."""
    import io

    import onnx
    import torch

    file = io.BytesIO()
    torch.onnx.export(
        module, examples(inputs), file, dynamo=False, opset_version=opset, input_names=[i.name for i in inputs], output_names=list(outputs),
        dynamic_axes={i.name: i.open() for i in inputs if i.open()},
    )
    return onnx.load_from_string(file.getvalue())


class Engine:
    def __init__(self, path, threads, inputs):
        import torch

        torch.set_num_threads(threads)
        self.torch, self.module = torch, opened(path)
        self.inputs = {}
        for i in inputs:
            dtype = torch.empty(0, dtype=getattr(torch, i.dtype)).numpy().dtype
            self.inputs[i.name] = (dtype, [-1 if isinstance(d, str) else d for d in i.shape])
        self.outputs = list(tried(self.module, inputs))

    def run(self, feed):
        import torch.utils._pytree as pytree

        with self.torch.no_grad():
            made = self.module(*(self.torch.from_numpy(feed[name]) for name in self.inputs))
            return [t.numpy() for t in pytree.tree_leaves(made)]
