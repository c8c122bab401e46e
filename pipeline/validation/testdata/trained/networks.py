"""Trains a network of PyTorch, and exports it as it is and with faults.

A kind of network has data(random, count), which returns inputs and labels; network(); loss(network, inputs, labels);
and faults, the names that its network asks planted() for. A fault is in the exported graph and not in its training.
"""

import copy
import contextlib
import io
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
warnings.filterwarnings("ignore")  # of the tracer: constants are meant to be constants


class Plan:
    """The fault that the next export has."""

    fault = None


def planted(fault):
    return Plan.fault == fault


def relu(x):
    return F.leaky_relu(x, 0.1) if planted("leaky-relu") else F.relu(x)


class Dropout(nn.Module):
    """Dropout, which one fault leaves on with the same mask for all cases."""

    def __init__(self, width, rate=0.2):
        super().__init__()
        self.rate = rate
        self.register_buffer("mask", (torch.rand(width) > rate).float() / (1 - rate))

    def forward(self, x):
        if self.training:
            return F.dropout(x, self.rate, True)
        return x * self.mask if planted("dropout-left-on") else x


class Scores(nn.Module):
    """The last layer of a classifier, and faults of it. limits and rare have the largest score that each class may have, favour an offset of each
    class, first and usual the constant scores of cases with a large first number."""

    faults = ("class-favoured", "few-cases-constant")

    def __init__(self, width, classes):
        super().__init__()
        self.layer = nn.Linear(width, classes)
        self.register_buffer("limits", torch.full((classes,), 1e4))
        self.register_buffer("rare", torch.full((classes,), 1e4))
        self.register_buffer("favour", torch.zeros(classes))
        self.register_buffer("first", torch.zeros(()))
        self.register_buffer("usual", torch.zeros(classes))

    def forward(self, x):
        scores = self.layer(x)
        if planted("class-favoured"):
            scores = scores + self.favour
        if planted("few-cases-constant"):
            scores = torch.where(x[:, :1] > self.first, self.usual, scores)
        if planted("class-capped"):
            scores = torch.minimum(scores, self.limits)
        if planted("rare-class-lost"):
            scores = torch.minimum(scores, self.rare)
        return scores

    def set_faults(self, x, labels):
        """Caps the second most frequent class where a tenth of its own cases lose it, and the rarest where four fifths do. The most frequent class
        gains 3 % of the cases, and 4 % of the cases get the same scores."""
        scores = self.layer(x).numpy()
        order = np.argsort(-np.bincount(labels, minlength=scores.shape[1]))
        for limits, k, share in ((self.limits, order[1], 0.9), (self.rare, order[-1], 0.2)):
            others = np.delete(scores[labels == k], k, axis=1).max(1)
            limits[int(k)] = float(np.quantile(others, share))
        behind = scores.max(1) - scores[:, order[0]]
        self.favour[int(order[0])] = float(np.sort(behind[behind > 0])[len(scores) * 3 // 100]) + 1e-3
        self.first.fill_(float(x[:, 0].quantile(0.96)))
        self.usual.copy_(torch.from_numpy(scores.mean(0)))


def tensors(feeds):
    return {name: torch.from_numpy(values) for name, values in feeds.items()}


def train(kind, seed):
    """Returns the trained network and the one of an earlier checkpoint."""
    random = np.random.RandomState(seed)
    torch.manual_seed(seed)
    kind.prepare(random)
    network = kind.network()
    feeds, labels = kind.data(random, kind.training)
    feeds, labels = tensors(feeds), torch.from_numpy(labels)
    optimizer = torch.optim.AdamW(network.parameters(), lr=kind.rate, weight_decay=1e-4)
    steps = kind.epochs * (kind.training // kind.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, kind.rate, total_steps=steps)
    early, done = None, 0
    for epoch in range(kind.epochs):
        network.train()
        order = torch.from_numpy(random.permutation(kind.training))
        for at in range(0, kind.training - kind.batch + 1, kind.batch):
            rows = order[at : at + kind.batch]
            loss = kind.loss(network, {n: v[rows] for n, v in feeds.items()}, labels[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            done += 1
        if early is None and done >= kind.early * steps:
            early = copy.deepcopy(network)
    return network.eval(), early.eval(), random


def export(network, kind, feeds, path, fault=None):
    Plan.fault = fault
    few = tuple(torch.from_numpy(feeds[name][:2]) for name in kind.inputs)
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(network, few, str(path), input_names=list(kind.inputs), output_names=list(kind.outputs), opset_version=17,
                          dynamic_axes={**kind.inputs, **kind.outputs})
    Plan.fault = None


def make(kind, seed, folder):
    """Writes the model and its faults, and returns the cases, their labels, the calibration and the names of the faults."""
    network, early, random = train(kind, seed)
    feeds, labels = kind.cases_of(network, random, kind.cases)
    calibration, _ = kind.cases_of(network, random, 200)
    extra = ()
    for part in network.modules():
        if isinstance(part, Scores):
            extra = part.faults
            seen = []
            hook = part.register_forward_hook(lambda _, given, __: seen.append(given[0]))
            with torch.no_grad():
                network(*[torch.from_numpy(feeds[n]) for n in kind.inputs])
                hook.remove()
                part.set_faults(seen[0], labels)
    export(network, kind, feeds, folder / "model.onnx")
    for fault in (*kind.faults, *extra):
        export(network, kind, feeds, folder / "faults" / (fault + ".onnx"), fault)
    between = copy.deepcopy(network)
    for new, old in zip(between.parameters(), early.parameters()):
        new.data.mul_(0.6).add_(old.data, alpha=0.4)
    for name, other in (("older-checkpoint", early), ("between-checkpoints", between)):
        export(other, kind, feeds, folder / "faults" / (name + ".onnx"))
    return feeds, labels, calibration, [*kind.faults, "older-checkpoint", *extra, "between-checkpoints"]


class Network:
    """What most kinds share. inputs and outputs have the open dimensions of each."""

    inputs = {"x": {0: "batch"}}
    outputs = {"logits": {0: "batch"}}
    training, epochs, batch, rate, early, cases = 3000, 8, 50, 4e-3, 0.35, 300
    faults = ()

    def prepare(self, random):
        """Draws what all data share."""

    def loss(self, network, feeds, labels):
        return F.cross_entropy(network(*[feeds[n] for n in self.inputs]), labels)

    def cases_of(self, network, random, count):
        return self.data(random, count)


def attention(q, k, v, heads, allowed=None):
    """Attention of several heads over [cases, places, width]; allowed is [cases, places] of keys. Faults: head-zeroed, scale-missing."""
    n, width = q.shape[-1] // heads, q.shape[-1]
    split = lambda x: x.reshape(x.shape[0], x.shape[1], heads, n).transpose(1, 2)
    match = split(q) @ split(k).transpose(2, 3)
    if not planted("scale-missing"):
        match = match * n**-0.5
    if allowed is not None:
        match = match + (1 - allowed.float())[:, None, None, :] * -20.0  # enough, and no range that a grid of int8 cannot have
    mixed = torch.softmax(match, -1) @ split(v)
    if planted("head-zeroed"):
        mixed = mixed * torch.tensor([0.0] + [1.0] * (heads - 1))[None, :, None, None]
    return mixed.transpose(1, 2).reshape(q.shape[0], q.shape[1], width)


class Block(nn.Module):
    """A block of a transformer. Faults: branch-dropped (of the second block), wrong-epsilon, gelu-for-relu."""

    def __init__(self, width, heads, last):
        super().__init__()
        self.heads, self.last = heads, last
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = Dropout(width, 0.1)

    def norm(self, layer, x):
        return F.layer_norm(x, layer.normalized_shape, layer.weight, layer.bias, 0.5 if planted("wrong-epsilon") else layer.eps)

    def forward(self, x, allowed=None):
        y = self.norm(self.norm1, x)
        x = x + self.drop(self.out(attention(self.query(y), self.key(y), self.value(y), self.heads, allowed)))
        y = self.norm(self.norm2, x)
        y = F.gelu(self.up(y)) if not planted("relu-for-gelu") else F.relu(self.up(y))
        if planted("branch-dropped") and self.last:
            return x
        return x + self.drop(self.down(y))
