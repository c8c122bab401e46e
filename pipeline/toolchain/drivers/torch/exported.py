"""Programs of torch.export: archives that end in .pt2."""

from protocol import Refused

SUFFIX = ".torch-export"
UNBOUNDED = 2**31  # what some versions write in place of infinity is larger


def opened(path):
    """The program. Its sample inputs are a pickle, which torch reads as data, and its operators have to be torch's own."""
    import torch

    try:
        with open(path, "rb") as f:
            program = torch.export.load(f)
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever a damaged archive makes it raise
        raise Refused("bad_input", f"torch {torch.__version__} cannot load the program: {' '.join(str(e).split())[:300]}") from None
    foreign = sorted({str(n.target) for n in program.graph.nodes if n.op == "call_function" and not known(n.target)})
    if foreign:
        raise Refused("unsupported_op", f"the program has the operators {', '.join(foreign[:8])}, which torch itself does not have", op=foreign[0])
    return program


def known(target):
    return str(getattr(target, "namespace", "")) in ("aten", "prim", "prims", "higher_order") or getattr(target, "__module__", "") in ("_operator", "math")


def inputs_of(program):
    """{name: placeholder} of what a caller gives, in order."""
    return {node.name: node for node in program.graph.nodes if node.op == "placeholder" and node.name in program.graph_signature.user_inputs}


def number(size):
    """The size of a dimension; None if it is open. A symbol that the code of a model gave a value is none."""
    return size if isinstance(size, int) else size.node.maybe_as_int()


def open_dims(program):
    """{input: {0: "batch"}} where all inputs but scalars have the same symbol in front. Otherwise the first dimension may be anything, such
    as the nodes of a graph, and symbols stay as torch calls them: a file keeps no names of torch.export.Dim."""
    shapes = {name: getattr(node.meta["val"], "shape", ()) for name, node in inputs_of(program).items()}
    first = [(name, shape[0]) for name, shape in shapes.items() if len(shape)]
    same = first and all(number(size) is None and size.node.expr.is_symbol and str(size) == str(first[0][1]) for _, size in first)
    return {first[0][0]: {0: "batch"}} if same else {}


def sizes_of(program):
    """{input: {position: [least, most]}} of open dimensions, by torch.export.Dim(min=, max=). None is no bound: a least size of 2 is none,
    since torch.export writes it for most dimensions, and a program that has it runs with 1 too."""
    from torch.utils._sympy.value_ranges import bound_sympy

    found = {}
    for name, node in inputs_of(program).items():
        for position, size in enumerate(getattr(node.meta["val"], "shape", ())):
            if number(size) is None:
                bounds = bound_sympy(size.node.expr, program.range_constraints)
                least, most = bounds.lower, bounds.upper
                found.setdefault(name, {})[position] = [int(least) if least > 2 else None, int(most) if most < UNBOUNDED else None]
    return found


def outputs_of(program):
    """Names of what it gives: keys of a dictionary, output where it is one, or output0 and so on."""
    import torch.utils._pytree as pytree

    spec = program.call_spec.out_spec
    leaves = pytree.tree_flatten_with_path(pytree.tree_unflatten(list(range(spec.num_leaves)), spec))[0]
    found = []
    for path, i in leaves:
        words = [str(part.key) for part in path if hasattr(part, "key")] or [str(part.name) for part in path if hasattr(part, "name")]
        found.append(".".join(words) if words else "output" if len(leaves) == 1 else f"output{i}")
    if len(set(found)) < len(found) or set(found) & set(inputs_of(program)):
        raise Refused("unsupported_format", f"two tensors of the program would be called the same: {', '.join(found[:8])}")
    return found


class Engine:
    def __init__(self, path, threads):
        import torch

        torch.set_num_threads(threads)
        program = opened(path)
        self.inputs = {}
        for name, node in inputs_of(program).items():
            tensor = node.meta["val"]
            if not isinstance(tensor, torch.Tensor):
                raise Refused("unsupported_format", f"input {name!r} is no tensor: export the program with its value in it")
            shape = [s if isinstance(s, int) else -1 for s in tensor.shape]
            self.inputs[name] = (torch.empty(0, dtype=tensor.dtype).numpy().dtype, shape)
        self.outputs = outputs_of(program)
        self.torch, self.module, self.spec = torch, program.module(), program.call_spec.in_spec

    def run(self, feed):
        import torch.utils._pytree as pytree

        with self.torch.no_grad():
            given, named = pytree.tree_unflatten([self.torch.from_numpy(feed[name]) for name in self.inputs], self.spec)
            return [t.numpy() for t in pytree.tree_leaves(self.module(*given, **named))]
