"""What jax.export writes: a flatbuffer with StableHLO, and the trees of names of what goes in and out."""

import re

from protocol import Refused

# Calls of functions outside of the program that are none: they say how arrays are spread over
# devices, or check shapes. Any other may reach into the process that runs the program.
HARMLESS = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "shape_assertion"}
# What engines are for, the first that a program has.
PLATFORMS = ("cpu", "cuda", "tpu")


def opened(path, platforms):
    """The program of a file for one of these platforms, after a look at what it calls."""
    import jax

    with open(path, "rb") as f:
        data = f.read()
    try:
        program = jax.export.deserialize(bytearray(data))
        text = program.mlir_module()
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever damaged bytes make of the reader
        said = " ".join(str(e).split())
        raise Refused("bad_input", f"JAX {jax.__version__} cannot read the file: {type(e).__name__}: {said[:300]}") from None
    foreign = sorted({name for name in re.findall(r'custom_call"?\s*@?(?:"([^"]*)"|([\w.$]+))', text) for name in name if name} - HARMLESS)
    named = sorted(set(re.findall(r'call_target_name\s*=\s*"([^"]*)"', text)) - HARMLESS)
    if foreign or named:
        raise Refused("unsupported_op", f"the program calls {', '.join((foreign + named)[:4])}, which is outside of it: export it without callbacks and without kernels of libraries", op=(foreign + named)[0])
    if program.nr_devices != 1:
        raise Refused("unsupported_format", f"the program is for {program.nr_devices} devices: want one")
    if program.ordered_effects or program.unordered_effects:
        raise Refused("unsupported_format", "the program has effects beside its outputs: export it without")
    if not set(platforms) & set(program.platforms):
        raise Refused("unsupported_format", f"the program is for {', '.join(program.platforms)}: export it with platforms=['cpu']")
    return program


def names(tree, avals, alone, other):
    """Names for the leaves of a tree: keys of dictionaries and fields; a position is other0, other1,
    and so on, or alone where it is the only one."""
    import jax

    leaves = jax.tree_util.tree_flatten_with_path(jax.tree_util.tree_unflatten(tree, range(len(avals))))[0]
    found = []
    for path, i in leaves:
        words = [str(key) for part in path if (key := getattr(part, "key", getattr(part, "name", None))) is not None and not isinstance(key, int)]
        found.append(".".join(words) if words else alone if len(leaves) == 1 else f"{other}{i}")
    if len(set(found)) < len(found):
        raise Refused("unsupported_format", f"two tensors would be called the same: {', '.join(found[:8])}: give them keys of one dictionary")
    return found


def inputs_of(program):
    return names(program.in_tree, program.in_avals, "input", "input")


def outputs_of(program):
    return names(program.out_tree, program.out_avals, "output", "output")


def device_of(program):
    """The device that runs a program: the processor where it is one of its platforms, or else the first GPU or TPU."""
    import jax

    platform = next(p for p in PLATFORMS if p in program.platforms)
    try:
        return jax.devices(platform)[0]
    except RuntimeError as e:  # which says nothing of the engine
        said = " ".join(str(e).split())
        raise Refused("unavailable", f"JAX {jax.__version__} can use no device {platform} of this machine: {said[:300]}") from None


class Engine:
    """A program that XLA compiles for this machine."""

    def __init__(self, path, _threads, _options):
        import jax
        import numpy

        program = opened(path, PLATFORMS)
        device = device_of(program)
        dims = {i: [d if isinstance(d, int) else -1 for d in a.shape] for i, a in enumerate(program.in_avals)}
        self.inputs = {name: (numpy.dtype(program.in_avals[i].dtype), dims[i]) for i, name in enumerate(inputs_of(program))}
        self.outputs = outputs_of(program)
        call, tree = jax.jit(program.call), program.in_tree
        ready = device == jax.devices()[0] and device.platform == "cpu"  # which takes arrays of numpy as they are

        def run(arrays):
            given, named = jax.tree_util.tree_unflatten(tree, arrays if ready else jax.device_put(arrays, device))
            made = jax.tree_util.tree_leaves(call(*given, **named))
            elsewhere = {d.platform for a in made for d in a.devices()} - {device.platform}
            if elsewhere:
                raise Refused("tool_failed", f"XLA computed on {', '.join(sorted(elsewhere))}, and the program is for {device.platform}")
            return made

        self.call, self.array = run, numpy.asarray

    def run(self, feed):
        return [self.array(a) for a in self.call([feed[name] for name in self.inputs])]
