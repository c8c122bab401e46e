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


# What makes a number of the values of a tensor, and of its sizes.
VALUES = {"aten::item", "aten::Bool", "aten::Int", "aten::Float", "aten::is_nonzero", "aten::equal", "aten::allclose", "aten::ScalarImplicit",
          "aten::IntImplicit", "aten::FloatImplicit", "prim::tolist"}
SIZES = {"aten::size", "aten::len", "aten::numel"}


def depends(module, inputs):
    """Whether a branch or a loop of the module depends on values, or on sizes of inputs that are open. What raises an error does not count."""
    import torch

    try:
        graph = torch.jit.freeze(module, optimize_numerics=False).inlined_graph  # without branches that are never taken
    except RuntimeError:
        graph = module.inlined_graph
    given = list(graph.inputs())[1:]  # behind the module itself
    unsized = {v.debugName() for v, i in zip(given, inputs) if i.open()}
    known = {v.debugName() for v in given if not tensor(v)}
    before, found = -1, False
    while before < len(known):  # what a loop gives is known only after its end
        before, found = len(known), follow(graph, known, unsized)
    return found


def follow(block, known, unsized):
    """Adds the names of numbers in this block that depend on values or on sizes of these tensors, and says whether a branch or a loop does."""
    found = False
    for node in block.nodes():
        inner, read = list(node.blocks()), {v.debugName() for v in node.inputs()}
        for each in inner:
            found = follow(each, known, unsized) or found
            read |= {v.debugName() for v in each.outputs()}
        if node.kind() in VALUES or node.kind() in SIZES and read & unsized or read & known:
            made = [*node.outputs(), *(v for each in inner for v in each.inputs())]
            known.update(v.debugName() for v in made if not tensor(v))
        if node.kind() == "prim::If" and not any(raises(each) for each in inner):
            found = found or node.inputsAt(0).debugName() in known
        if node.kind() == "prim::Loop":
            decides = [node.inputsAt(0), node.inputsAt(1), next(inner[0].outputs())]
            found = found or any(v.debugName() in known for v in decides)
    return found


def tensor(value):
    import torch

    return isinstance(value.type(), torch.TensorType)


def raises(block):
    return any(node.kind() == "prim::RaiseException" for node in block.nodes())


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
