"""A small transformer encoder with its gradients, in numpy alone.

A layer has forward(x), which remembers what backward needs; backward(dy), which
returns dx and sets the gradients; and params, a list of Param. Activations are
[batch, seq, width]. The encoder is the one of Vaswani et al. 2017 with the norms in
front of the sublayers, as in Xiong et al. 2020.
"""

import numpy as np

LAYERS, WIDTH, HEADS, INNER = 2, 64, 4, 128
MASKED = -1e4  # added to the scores of padding; half precision holds it
EPSILON = 1e-5


class Param:
    """A trained array and the gradient of the loss in it."""

    def __init__(self, value):
        self.value = value
        self.grad = np.zeros_like(value)


class Dense:
    """y = x W + b over the last axis. Weights [in, out] (Glorot & Bengio 2010, eq. 16)."""

    def __init__(self, rng, size_in, size_out):
        bound = np.sqrt(6.0 / (size_in + size_out))
        self.weight = Param(rng.uniform(-bound, bound, (size_in, size_out)).astype(np.float32))
        self.bias = Param(np.zeros(size_out, np.float32))
        self.params = [self.weight, self.bias]

    def forward(self, x):
        self.x = x
        return x @ self.weight.value + self.bias.value

    def backward(self, dy):
        rows = dy.reshape(-1, dy.shape[-1])
        self.weight.grad = self.x.reshape(-1, self.x.shape[-1]).T @ rows
        self.bias.grad = rows.sum(axis=0)
        return dy @ self.weight.value.T


class LayerNorm:
    """Mean 0 and variance 1 over the last axis, then a scale and a shift (Ba et al. 2016)."""

    def __init__(self, width):
        self.scale = Param(np.ones(width, np.float32))
        self.shift = Param(np.zeros(width, np.float32))
        self.params = [self.scale, self.shift]

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        self.inverse = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
        self.normal = centred * self.inverse
        return self.normal * self.scale.value + self.shift.value

    def backward(self, dy):
        axes = tuple(range(dy.ndim - 1))
        self.scale.grad = (dy * self.normal).sum(axis=axes)
        self.shift.grad = dy.sum(axis=axes)
        d = dy * self.scale.value
        return self.inverse * (d - d.mean(axis=-1, keepdims=True) - self.normal * (d * self.normal).mean(axis=-1, keepdims=True))


class Relu:
    params = ()

    def forward(self, x):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Attention:
    """Every token looks at every token that is no padding, in HEADS ways."""

    def __init__(self, rng, width):
        self.query, self.key, self.value, self.out = (Dense(rng, width, width) for _ in range(4))
        self.params = [p for d in (self.query, self.key, self.value, self.out) for p in d.params]
        self.scale = 1 / np.sqrt(width // HEADS)

    def forward(self, x, bias):
        """bias is what padding adds to scores, [batch, 1, 1, seq]."""
        self.q, self.k, self.v = (split(d.forward(x)) for d in (self.query, self.key, self.value))
        self.weights = softmax(self.q @ self.k.swapaxes(-1, -2) * np.float32(self.scale) + bias)
        return self.out.forward(join(self.weights @ self.v))

    def backward(self, dy):
        dcontext = split(self.out.backward(dy))
        dweights = dcontext @ self.v.swapaxes(-1, -2)
        dv = self.weights.swapaxes(-1, -2) @ dcontext
        dscores = self.weights * (dweights - (dweights * self.weights).sum(axis=-1, keepdims=True)) * np.float32(self.scale)
        dq, dk = dscores @ self.k, dscores.swapaxes(-1, -2) @ self.q
        return self.query.backward(join(dq)) + self.key.backward(join(dk)) + self.value.backward(join(dv))


def split(x):
    """[batch, seq, width] to [batch, heads, seq, width/heads]."""
    return x.reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2)


def join(x):
    """The inverse of split."""
    x = x.swapaxes(1, 2)
    return x.reshape(*x.shape[:2], -1)


class Block:
    """x + attention(norm(x)), then y + dense(relu(dense(norm(y))))."""

    def __init__(self, rng, width, inner):
        self.norm1, self.attention = LayerNorm(width), Attention(rng, width)
        self.norm2, self.dense1, self.relu, self.dense2 = LayerNorm(width), Dense(rng, width, inner), Relu(), Dense(rng, inner, width)
        self.params = [p for layer in (self.norm1, self.attention, self.norm2, self.dense1, self.dense2) for p in layer.params]

    def forward(self, x, bias):
        x = x + self.attention.forward(self.norm1.forward(x), bias)
        return x + self.dense2.forward(self.relu.forward(self.dense1.forward(self.norm2.forward(x))))

    def backward(self, dy):
        dy = dy + self.norm2.backward(self.dense1.backward(self.relu.backward(self.dense2.backward(dy))))
        return dy + self.norm1.backward(self.attention.backward(dy))


def positions(count, width):
    """Sines and cosines of the place, [count, width] (Vaswani et al. 2017, section 3.5)."""
    place = np.arange(count)[:, None]
    rate = 10000.0 ** (-np.arange(0, width, 2) / width)
    out = np.empty((count, width))
    out[:, 0::2], out[:, 1::2] = np.sin(place * rate), np.cos(place * rate)
    return (0.3 * out).astype(np.float32)


class TicketNet:
    """Tokens and mask [batch, seq] to logits [batch, classes]; self.tokens is what became
    of every token, [batch, seq, width]."""

    def __init__(self, rng, vocabulary, classes, longest):
        self.embedding = Param((0.3 * rng.standard_normal((vocabulary, WIDTH))).astype(np.float32))
        self.positions = positions(longest, WIDTH)
        self.blocks = [Block(rng, WIDTH, INNER) for _ in range(LAYERS)]
        self.norm, self.dense = LayerNorm(WIDTH), Dense(rng, WIDTH, classes)
        self.params = [self.embedding, *(p for layer in (*self.blocks, self.norm, self.dense) for p in layer.params)]

    def forward(self, ids, mask):
        self.ids = ids
        kept = mask.astype(self.embedding.value.dtype)
        bias = ((1 - kept) * MASKED)[:, None, None, :]
        x = self.embedding.value[ids] + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block.forward(x, bias)
        self.tokens = self.norm.forward(x)
        self.share = (kept / kept.sum(axis=1, keepdims=True))[..., None]
        return self.dense.forward((self.tokens * self.share).sum(axis=1))

    def backward(self, dlogits):
        dx = self.norm.backward(self.dense.backward(dlogits)[:, None, :] * self.share)
        for block in reversed(self.blocks):
            dx = block.backward(dx)
        self.embedding.grad = np.zeros_like(self.embedding.value)
        np.add.at(self.embedding.grad, self.ids, dx)


def cross_entropy(logits, labels):
    """Return the mean cross-entropy of softmax(logits) [n, classes] and its gradient."""
    rows = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    gradient = np.exp(log_p)
    gradient[rows, labels] -= 1
    return -log_p[rows, labels].mean(), gradient / len(labels)


class Adam:
    """Adam (Kingma & Ba 2015, algorithm 1) with decoupled weight decay on the
    matrices (Loshchilov & Hutter 2019)."""

    def __init__(self, params, decay, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.params, self.decay, self.epsilon = params, decay, epsilon
        self.beta1, self.beta2, self.steps = beta1, beta2, 0
        self.mean = [np.zeros_like(p.value) for p in params]
        self.square = [np.zeros_like(p.value) for p in params]

    def step(self, rate):
        self.steps += 1
        unbias1 = 1 - self.beta1**self.steps
        unbias2 = 1 - self.beta2**self.steps
        for p, m, v in zip(self.params, self.mean, self.square):
            m += (1 - self.beta1) * (p.grad - m)
            v += (1 - self.beta2) * (p.grad * p.grad - v)
            if p.value.ndim > 1:
                p.value -= rate * self.decay * p.value
            p.value -= rate * (m / unbias1) / (np.sqrt(v / unbias2) + self.epsilon)
