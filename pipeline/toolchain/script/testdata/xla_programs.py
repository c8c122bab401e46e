"""Writes programs of jax.export into this folder, with seeded weights: a network of convolutions and a transformer
encoder, each for any batch and for one, and programs that cannot be imported."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax import export, lax
from jax import numpy as jnp

random = np.random.RandomState(0)


def weights(*shape):
    return (random.randn(*shape) / np.sqrt(shape[0])).astype(np.float32)


K1, B1, K2, D, B2 = weights(3, 3, 1, 8), weights(8), weights(3, 3, 8, 4), weights(64, 10), weights(10)
NHWC = ("NHWC", "HWIO", "NHWC")


def convolutions(image):
    x = jax.nn.relu(lax.conv_general_dilated(image, K1, (1, 1), "SAME", dimension_numbers=NHWC) + B1)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.gelu(lax.conv_general_dilated(x, K2, (1, 1), "SAME", dimension_numbers=NHWC), approximate=False)
    y = x.reshape(x.shape[0], -1) @ D + B2
    return {"logits": y, "probability": jax.nn.softmax(y), "class": jnp.argmax(y, -1)}


E, P, G, B = weights(50, 16), weights(6, 16), weights(16), weights(16)
Q, K, V, O, U, W = weights(16, 2, 8), weights(16, 2, 8), weights(16, 2, 8), weights(2, 8, 16), weights(16, 32), weights(32, 16)


def norm(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * G + B


def encoder(ids, mask):
    x = jnp.asarray(E)[ids] + P
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, m) for m in (Q, K, V))
    scores = jnp.einsum("bthk,bshk->bhts", q, k) / np.float32(8**0.5)
    attention = jax.nn.softmax(jnp.where(mask[:, None, None, :] > 0, scores, -1e9), -1)
    x = norm(x + jnp.einsum("bhts,bshk,hkd->btd", attention, v, O))
    x = norm(x + jax.nn.gelu(x @ U) @ W)
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True), jnp.tanh(x[:, 0])


def save(name, function, platforms=("cpu",), **inputs):
    with open(name + ".jax", "wb") as f:
        f.write(export.export(jax.jit(function), platforms=list(platforms))(**inputs).serialize())


for batch in ("batch", "1"):
    scope = export.SymbolicScope()

    def spec(sizes, dtype, batch=batch, scope=scope):
        return jax.ShapeDtypeStruct(export.symbolic_shape(f"{batch}, {sizes}", scope=scope), dtype)

    save(f"convolutions-{batch}", convolutions, image=spec("8, 8, 1", np.float32))
    save(f"encoder-{batch}", encoder, ids=spec("6", np.int32), mask=spec("6", np.float32))

row = jax.ShapeDtypeStruct((4,), np.float32)
save("sorting", jnp.sort, a=row)
save("loop", lambda x: lax.fori_loop(0, 3, lambda i, v: v * x, x), x=row)
save("cuda", lambda x: jnp.tanh(x), platforms=("cuda",), x=row)
save("factors", lambda x: jnp.linalg.qr(x)[1], x=jax.ShapeDtypeStruct((3, 3), np.float32))
