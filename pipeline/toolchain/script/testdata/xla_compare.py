"""Compares a program with a model: xla_compare.py FILE.jax FILE.onnx, or HLO: xla_compare.py FILE.hlo.pb FILE.onnx. Prints the largest difference of outputs on seeded
inputs, by JAX, and by the evaluator of ONNX."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

jax.config.update("jax_enable_x64", True)


def hlo(data, feeds, outputs):
    """What XLA computes of a serialized module, whose parameters are in the order of names."""
    from jax._src.lib import xla_client
    from jax.extend.backend import get_backend

    module = xla_client._xla.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(data))
    cpu = get_backend("cpu")
    devices = xla_client.DeviceList(tuple(cpu.local_devices()[:1]))
    made = cpu.compile_and_load(module, devices, xla_client.CompileOptions()).execute([jax.device_put(feeds[name]) for name in sorted(feeds)])
    return dict(zip(sorted(outputs), made))


with open(sys.argv[1], "rb") as f:
    data = f.read()
model = onnx.load(sys.argv[2])
random = np.random.RandomState(1)
feeds = {}
for value in model.graph.input:
    tensor = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else 3 for d in tensor.shape.dim]
    if tensor.elem_type == onnx.TensorProto.FLOAT:
        feeds[value.name] = (random.randint(1, 3, shape) - 1 if value.name == "mask" else random.randn(*shape)).astype(np.float32)
    else:
        feeds[value.name] = random.randint(0, 9, shape).astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
if "mask" in feeds:
    feeds["mask"][:, 0] = 1
if sys.argv[1].endswith(".pb"):
    found = hlo(data, feeds, [v.name for v in model.graph.output])
else:
    program = jax.export.deserialize(bytearray(data))
    given, named = jax.tree_util.tree_unflatten(program.in_tree, range(program.in_tree.num_leaves))
    found = program.call(feeds) if given else program.call(**feeds)
found = found if isinstance(found, dict) else {f"output{i}": v for i, v in enumerate(found)}
worst = 0.0
for value, want in zip(model.graph.output, ReferenceEvaluator(model).run(None, feeds)):
    got = np.asarray(found.pop(value.name))
    if got.shape != np.shape(want) or got.dtype != np.asarray(want).dtype:
        raise SystemExit(f"{value.name} is {got.dtype} {got.shape}, want {np.asarray(want).dtype} {np.shape(want)}")
    worst = max(worst, float(np.max(np.abs(got.astype(np.float64) - want))))
if found:
    raise SystemExit(f"{list(found)} are no outputs of the model")
print(worst)
