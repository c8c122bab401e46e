"""A small convolutional network with its gradients, in numpy alone.

A layer has forward(x), which remembers what backward needs; backward(dy), which
returns dx and sets the gradients; and params, a list of Param. Images are
[n, channels, height, width] as in ONNX.
"""

import numpy as np


class Param:
    """A trained array and the gradient of the loss in it."""

    def __init__(self, value):
        self.value = value
        self.grad = np.zeros_like(value)


def he_normal(rng, shape, fan_in):
    """Initial weights before a relu (He et al. 2015, eq. 10)."""
    return (rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)


class Conv3x3:
    """A 3x3 convolution, stride 1, zero padding 1. Weights [out, in, 3, 3]."""

    def __init__(self, rng, channels_in, channels_out):
        self.weight = Param(he_normal(rng, (channels_out, channels_in, 3, 3), 9 * channels_in))
        self.bias = Param(np.zeros(channels_out, np.float32))
        self.params = [self.weight, self.bias]

    def forward(self, x):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        # One row per output pixel: the 3x3 patch of every input channel.
        self.patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.shape = x.shape
        out = self.patches @ self._matrix().T + self.bias.value
        return out.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, dy):
        n, c, h, w = self.shape
        rows = dy.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.weight.grad = (rows.T @ self.patches).reshape(self.weight.value.shape)
        self.bias.grad = rows.sum(axis=0)
        # Give every patch's gradient back to the pixels that it was cut from.
        patches = (rows @ self._matrix()).reshape(n, h, w, c, 3, 3)
        padded = np.zeros((n, c, h + 2, w + 2), dy.dtype)
        for i in range(3):
            for j in range(3):
                padded[:, :, i : i + h, j : j + w] += patches[..., i, j].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]

    def _matrix(self):
        return self.weight.value.reshape(len(self.weight.value), -1)


class Relu:
    params = ()

    def forward(self, x):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive


class MaxPool2:
    """The largest of each 2x2 block; of equals, the first one gets the gradient."""

    params = ()

    def forward(self, x):
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        blocks = blocks.reshape(n, c, h // 2, w // 2, 4)
        self.shape = x.shape
        self.largest = blocks.argmax(axis=-1)[..., None]
        return np.take_along_axis(blocks, self.largest, axis=-1)[..., 0]

    def backward(self, dy):
        n, c, h, w = self.shape
        blocks = np.zeros(dy.shape + (4,), dy.dtype)
        np.put_along_axis(blocks, self.largest, dy[..., None], axis=-1)
        blocks = blocks.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5)
        return blocks.reshape(n, c, h, w)


class Dense:
    """A fully connected layer over everything but the first axis. Weights [in, out]."""

    def __init__(self, rng, size_in, size_out):
        self.weight = Param(he_normal(rng, (size_in, size_out), size_in))
        self.bias = Param(np.zeros(size_out, np.float32))
        self.params = [self.weight, self.bias]

    def forward(self, x):
        self.shape = x.shape
        self.flat = x.reshape(len(x), -1)
        return self.flat @ self.weight.value + self.bias.value

    def backward(self, dy):
        self.weight.grad = self.flat.T @ dy
        self.bias.grad = dy.sum(axis=0)
        return (dy @ self.weight.value.T).reshape(self.shape)


class DigitNet:
    """conv 16, relu, conv 32, relu, max pool 2, dense 10: images to logits."""

    def __init__(self, rng):
        self.conv1 = Conv3x3(rng, 1, 16)
        self.conv2 = Conv3x3(rng, 16, 32)
        self.dense = Dense(rng, 32 * 4 * 4, 10)
        self.layers = [self.conv1, Relu(), self.conv2, Relu(), MaxPool2(), self.dense]
        self.params = [p for layer in self.layers for p in layer.params]

    def forward(self, images):
        for layer in self.layers:
            images = layer.forward(images)
        return images

    def backward(self, dlogits):
        for layer in reversed(self.layers):
            dlogits = layer.backward(dlogits)
        return dlogits


def cross_entropy(logits, labels):
    """Return the mean cross-entropy of softmax(logits) [n, 10] and its gradient."""
    rows = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    gradient = np.exp(log_p)
    gradient[rows, labels] -= 1
    return -log_p[rows, labels].mean(), gradient / len(labels)


class Adam:
    """Adam (Kingma & Ba 2015, algorithm 1) with decoupled weight decay on the
    weights, not the biases (Loshchilov & Hutter 2019)."""

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
