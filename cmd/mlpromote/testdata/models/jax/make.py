"""Makes the programs of JAX beside this script: python3 make.py, with the packages of the toolchain
xla (pipeline/toolchain/drivers/xla/requirements.lock).

digits.jax   the trained network of examples/digits as JAX has it, channels last, for any batch
sorting.jax  a program with an operation that has no ONNX here
"""

import os
import pathlib

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import onnx  # noqa: E402
import onnx.numpy_helper  # noqa: E402
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

here = pathlib.Path(__file__).resolve().parent
digits = here / "../../../../../examples/digits"
trained = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(digits / "digits.onnx").graph.initializer}


def network(image):
    x = image
    for i in (1, 2):
        kernel = trained[f"conv{i}.weight"].transpose(2, 3, 1, 0)
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + trained[f"conv{i}.bias"])
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    # What was flattened with its channels first is flattened here with them last.
    dense = trained["dense.weight"].reshape(32, 4, 4, 10).transpose(1, 2, 0, 3).reshape(512, 10)
    logits = x.reshape((x.shape[0], 512)) @ dense + trained["dense.bias"]
    return {"logits": logits, "probability": jax.nn.softmax(logits)}


def save(name, function, **inputs):
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    (here / name).write_bytes(export.export(jax.jit(function), platforms=["cpu"])(**inputs).serialize())


def main():
    save("digits.jax", network, image=jax.ShapeDtypeStruct(export.symbolic_shape("batch, 8, 8, 1"), "float32"))
    save("sorting.jax", lambda x: jnp.sort(x), x=jax.ShapeDtypeStruct((4,), "float32"))


if __name__ == "__main__":
    main()
