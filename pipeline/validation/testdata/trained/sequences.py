"""Sequences: a text encoder with a mask, a recurrent cell with a state, one step of a decoder with a cache, and waveforms."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from networks import Block, Dropout, Network, Scores, attention, planted, relu


class Encoder(nn.Module):
    def __init__(self, words, width=32):
        super().__init__()
        self.words, self.table, self.places = words, nn.Embedding(words, width), nn.Parameter(torch.randn(1, 32, width) * 0.1)
        self.blocks = nn.ModuleList([Block(width, 4, last) for last in (False, True)])
        self.norm, self.scores = nn.LayerNorm(width), Scores(width, 5)

    def forward(self, ids, mask):
        allowed = mask
        if planted("mask-ignored"):
            allowed = torch.ones_like(mask)
        where = torch.arange(ids.shape[1])
        if planted("truncated"):
            allowed = allowed * (where < 10)[None].long()
        if planted("last-token-ignored"):
            allowed = allowed * torch.cat([allowed[:, 1:], torch.zeros_like(allowed[:, :1])], 1)
        if planted("first-token-ignored"):
            allowed = allowed * (where > 0)[None].long()
        if planted("vocabulary-truncated"):
            ids = torch.where(ids < self.words * 3 // 4, ids, torch.ones_like(ids))
        shift = 1 if planted("positions-shifted") else 0
        x = self.table(ids) + self.places[:, shift : shift + ids.shape[1]]
        for block in self.blocks:
            x = block(x, allowed)
        x = self.norm(x)
        if planted("padding-pooled"):
            return self.scores(x.mean(1))
        weight = allowed.float()[:, :, None]
        return self.scores((x * weight).sum(1) / weight.sum(1).clamp(min=1))


class Text(Network):
    """Texts of words of a topic between frequent ones. Two of the five classes differ by which of two words comes first."""

    inputs = {"ids": {0: "batch", 1: "seq"}, "mask": {0: "batch", 1: "seq"}}
    training, epochs, rate, words = 3000, 14, 4e-3, 160
    faults = ("mask-ignored", "truncated", "last-token-ignored", "first-token-ignored", "vocabulary-truncated", "positions-shifted", "padding-pooled",
              "head-zeroed", "scale-missing", "branch-dropped", "wrong-epsilon", "class-capped", "rare-class-lost", "dropout-left-on")

    def prepare(self, random):
        self.topics = random.permutation(np.arange(40, self.words))[:60].reshape(4, 15)
        common = 1.0 / np.arange(1, 39)
        self.common = common / common.sum()

    def data(self, r, count):
        labels = r.choice(5, count, p=[0.35, 0.25, 0.2, 0.12, 0.08])
        ids, mask = np.zeros((count, 24), "int64"), np.zeros((count, 24), "int64")
        for i, k in enumerate(labels):
            n = r.randint(8, 25)
            line = 2 + r.choice(38, n, p=self.common)
            of = min(k, 3)
            for at in r.permutation(n)[: r.randint(2, 4)]:
                line[at] = r.choice(self.topics[of if r.uniform() < 0.9 else r.randint(0, 4)])
            if k >= 3:
                a, b = np.sort(r.permutation(n)[:2])
                line[a], line[b] = self.topics[3][:2] if k == 3 else self.topics[3][1::-1]
            ids[i, :n], mask[i, :n] = line, 1
        return {"ids": ids, "mask": mask}, labels

    def network(self):
        return Encoder(self.words)


class Cell(nn.Module):
    """A gated recurrent cell over the steps of a window, from a state that comes in."""

    def __init__(self, width=32):
        super().__init__()
        self.width = width
        self.gates_x, self.gates_h = nn.Linear(4, 2 * width), nn.Linear(width, 2 * width)
        self.new_x, self.new_h = nn.Linear(4, width), nn.Linear(width, width)
        self.scores = Scores(width, 5)

    def step(self, x, h):
        update, reset = torch.sigmoid(self.gates_x(x) + self.gates_h(h)).split(self.width, 1)
        if planted("reset-ignored"):
            reset = torch.ones_like(reset)
        if planted("gate-inverted"):
            update = 1 - update
        new = self.new_x(x) + reset * self.new_h(h)
        new = torch.clamp(new, -1, 1) if planted("hard-tanh") else torch.tanh(new)
        return (1 - update) * new + update * h

    def run(self, x, h):
        steps, states = x.shape[1], []
        for t in range(steps):
            if planted("last-step-ignored") and t == steps - 1 or planted("every-second-step") and t % 2:
                continue
            h = self.step(x[:, t], h)
            states.append(h)
        return states

    def forward(self, x, state):
        if planted("state-ignored"):
            state = torch.zeros_like(state)
        if planted("state-faded"):
            state = state * 0.7
        if planted("channel-frozen"):
            x = x * torch.tensor([1.0, 1.0, 1.0, 0.0])
        states = self.run(x, state)
        out = states[-2] if planted("stale-state") else states[-1]
        if planted("state-rounded"):
            out = torch.round(out * 8) / 8
        return self.scores(states[-1]), out


class Recurrent(Network):
    """Windows of four channels. The class follows from a motion in this window and, for some, one in the window before."""

    inputs = {"x": {0: "batch"}, "state": {0: "batch"}}
    outputs = {"logits": {0: "batch"}, "new_state": {0: "batch"}}
    training, epochs, rate, steps = 3000, 16, 6e-3, 8
    faults = ("reset-ignored", "gate-inverted", "hard-tanh", "last-step-ignored", "every-second-step", "state-ignored", "state-faded", "channel-frozen",
              "stale-state", "state-rounded", "class-capped", "rare-class-lost")

    def windows(self, r, kinds):
        t = np.arange(self.steps)
        x = r.normal(0, 0.7, (len(kinds), self.steps, 4))
        for i, k in enumerate(kinds):
            phase, size = r.uniform(0, 0.8), r.uniform(0.8, 1.4)
            motion = [np.sin(0.8 * t + phase), np.sin(1.7 * t + phase), (t - 3.5) / 3, -(t - 3.5) / 3][k]
            x[i] += size * motion[:, None] * np.array([[1.0, 0.6, -0.8, 0.3], [0.4, -1.0, 0.6, 0.8], [0.9, 0.2, 0.5, -0.6], [0.9, 0.2, 0.5, -0.6]][k])
        return x

    def data(self, r, count):
        before, now = r.choice(4, count, p=[0.4, 0.3, 0.2, 0.1]), r.choice(4, count, p=[0.4, 0.3, 0.2, 0.1])
        labels = np.where((now == 0) & (before >= 2), 4, now)
        both = np.concatenate([self.windows(r, before), self.windows(r, now)], 1)
        return {"x": both.astype("float32")}, labels

    def network(self):
        return Cell()

    def loss(self, network, feeds, labels):
        x = feeds["x"]
        states = network.run(x, torch.zeros(len(x), network.width))
        return F.cross_entropy(network.scores(states[-1]), labels)

    def cases_of(self, network, random, count):
        feeds, labels = self.data(random, count)
        x = torch.from_numpy(feeds["x"])
        with torch.no_grad():
            state = network.run(x[:, : self.steps], torch.zeros(count, network.width))[-1]
        return {"x": feeds["x"][:, self.steps :], "state": state.numpy()}, labels


class Language(nn.Module):
    """Two layers of attention over a text, or over the keys and values of a cache and one more token."""

    def __init__(self, words, width=32, heads=4):
        super().__init__()
        self.width, self.heads, self.table = width, heads, nn.Embedding(words, width)
        self.register_buffer("waves", 10000.0 ** (-torch.arange(width // 2) / (width // 2)))
        part = lambda out: nn.ModuleList([nn.Linear(width, out) for _ in range(2)])
        self.key, self.value, self.query, self.out, self.up = part(width), part(width), part(width), part(width), part(2 * width)
        self.down = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(5)])
        self.last = nn.Linear(width, words)

    def places(self, at):
        """Codes of positions by sines (Vaswani and others, Attention is all you need, 2017, 3.5)."""
        return 0.5 * torch.cat([torch.sin(at[:, None] * self.waves), torch.cos(at[:, None] * self.waves)], 1)

    def norm(self, n, x):
        layer = self.norms[n]
        return F.layer_norm(x, layer.normalized_shape, layer.weight, layer.bias, 0.3 if planted("wrong-epsilon") else layer.eps)

    def layer(self, n, x, mix):
        y = self.norm(2 * n, x)
        x = x + self.out[n](mix(n, y))
        y = self.down[n](relu(self.up[n](self.norm(2 * n + 1, x))))
        return x if planted("branch-dropped") and n == 1 else x + y

    def text(self, ids):
        """Scores at all places, and the keys and values [cases, layer and part, places, width]."""
        steps, kept = ids.shape[1], []
        x = self.table(ids) + self.places(torch.arange(steps).float())
        later = torch.full((steps, steps), -1e4).triu(1)

        def mix(n, y):
            q, k, v = self.query[n](y), self.key[n](y), self.value[n](y)
            kept.extend([k, v])
            split = lambda z: z.reshape(z.shape[0], steps, self.heads, -1).transpose(1, 2)
            match = split(q) @ split(k).transpose(2, 3) * (self.width // self.heads) ** -0.5 + later
            return (torch.softmax(match, -1) @ split(v)).transpose(1, 2).reshape(y.shape)

        for n in range(2):
            x = self.layer(n, x, mix)
        return self.last(self.norm(4, x)), torch.stack(kept, 1)

    def forward(self, token, past):
        at = torch.ones_like(past[:1, 0, :, 0]).sum(1) + (1 if planted("positions-shifted") else 0)
        x = self.table(token) + self.places(at)
        kept = []

        def mix(n, y):
            q, k, v = self.query[n](y), self.key[n](y), self.value[n](y)
            keys, values = torch.cat([past[:, 2 * n], k], 1), torch.cat([past[:, 2 * n + 1], v], 1)
            kept.extend([keys, values])
            if planted("newest-ignored"):
                keys, values = keys[:, :-1], values[:, :-1]
            if planted("oldest-ignored"):
                keys, values = keys[:, -4:], values[:, -4:]
            return attention(q, keys, values, self.heads)

        for n in range(2):
            x = self.layer(n, x, mix)
        logits = self.last(self.norm(4, x))
        if planted("temperature"):
            logits = logits * 1.5
        if planted("token-never"):
            logits = logits - 40 * (torch.arange(logits.shape[-1]) == 3).float()
        if planted("stale-cache"):
            kept = [torch.cat([past[:, i], past[:, i, -1:]], 1) for i in range(4)]
        if planted("parts-swapped"):
            kept = [kept[1], kept[0], kept[2], kept[3]]
        return logits, torch.stack(kept, 1)


class Decoder(Network):
    """Texts of a grammar: the next word follows from the last two, and some open a bracket that is closed five words later."""

    inputs = {"token": {0: "batch"}, "past": {0: "batch", 2: "past"}}
    outputs = {"logits": {0: "batch"}, "present": {0: "batch", 2: "total"}}
    training, epochs, rate, words = 2000, 14, 4e-3, 24
    faults = ("positions-shifted", "newest-ignored", "oldest-ignored", "temperature", "token-never", "stale-cache", "parts-swapped", "head-zeroed",
              "scale-missing", "branch-dropped", "wrong-epsilon")

    def prepare(self, random):
        share = random.dirichlet(np.full(self.words, 0.08), (self.words, 4))
        self.share = 0.97 * share + 0.03 / self.words

    def data(self, r, count):
        ids = r.randint(0, self.words, (count, 20))
        for t in range(2, 20):
            pick = r.uniform(size=count)
            total = self.share[ids[:, t - 1], ids[:, t - 2] % 4].cumsum(1)
            ids[:, t] = np.minimum((total < pick[:, None]).sum(1), self.words - 1)
            if t >= 5:
                closes = ids[:, t - 5] >= self.words - 3
                ids[closes, t] = ids[closes, t - 5] - (self.words - 3)
        return {"ids": ids}, ids

    def network(self):
        return Language(self.words)

    def loss(self, network, feeds, labels):
        scores, _ = network.text(labels[:, :-1])
        return F.cross_entropy(scores.reshape(-1, self.words), labels[:, 1:].reshape(-1))

    def cases_of(self, network, random, count):
        ids = self.data(random, count)[1]
        with torch.no_grad():
            _, past = network.text(torch.from_numpy(ids[:, :18]))
        return {"token": ids[:, 18:19], "past": past.numpy()}, ids[:, 19:20]


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(1, 12, 9, 4, 4), nn.Conv1d(12, 20, 7, 2, 3), nn.Conv1d(20, 24, 5, 2, 2)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(c) for c in (12, 20, 24)])
        self.drop, self.scores = Dropout(24), Scores(24, 6)

    def forward(self, x):
        if planted("second-half-silent"):
            x = x * (torch.arange(512) < 256).float()
        if planted("gain"):
            x = x * 0.5
        if planted("clipped"):
            x = torch.clamp(x, -0.5, 0.5)
        if planted("reversed"):
            x = x.flip(2)
        if planted("sixteen-levels"):
            x = torch.round(x * 4) / 4
        if planted("constant-offset"):
            x = x + 0.3
        for n, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            if planted("wrong-pad-value"):
                x = F.conv1d(F.pad(x, (conv.padding[0],) * 2, value=0.5), conv.weight, conv.bias, conv.stride)
            else:
                x = conv(x)
            x = relu(x if planted("norm-missing") and n == 2 else norm(x))
        return self.scores(self.drop(x.amax(2) if planted("max-for-average") else x.mean(2)))


class Audio(Network):
    """Six kinds of waveforms in noise."""

    training, epochs = 2400, 8
    faults = ("second-half-silent", "gain", "clipped", "reversed", "sixteen-levels", "constant-offset", "wrong-pad-value", "norm-missing", "leaky-relu",
              "class-capped", "rare-class-lost", "dropout-left-on")

    def data(self, r, count):
        labels, t = r.choice(6, count, p=[0.3, 0.22, 0.18, 0.14, 0.1, 0.06]), np.arange(512) / 512
        x = np.zeros((count, 1, 512))
        for i, k in enumerate(labels):
            f, phase, at = r.uniform(25, 45), r.uniform(0, 6.28), r.uniform(0.15, 0.85)
            x[i, 0] = [
                lambda: np.sin(6.28 * f * t + phase), lambda: np.sin(6.28 * (f * t + 0.6 * f * t * t) + phase),
                lambda: np.sin(6.28 * (1.6 * f * t - 0.6 * f * t * t) + phase), lambda: np.sin(6.28 * 1.6 * f * t + phase) * (1 + np.sin(6.28 * 5 * t + phase)),
                lambda: 3 * np.exp(-abs(t - at) * 60) * np.sin(6.28 * 2 * f * t + phase), lambda: np.sign(np.sin(6.28 * f * t + phase)) * (t > at),
            ][k]() * r.uniform(0.5, 1.2)
        return {"x": (x + r.normal(0, 0.45, x.shape)).astype("float32")}, labels

    def network(self):
        return Waves()
