"""Records and signals: payments with categories and few frauds, and signals that are found again by their direction."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from networks import Dropout, Network, planted, relu


class Payments(nn.Module):
    def __init__(self):
        super().__init__()
        self.shop, self.country = nn.Embedding(20, 6), nn.Embedding(8, 4)
        self.first, self.second, self.last = nn.Linear(6 + 4 + 5, 40), nn.Linear(40, 24), nn.Linear(24, 1)
        self.drop = Dropout(40)

    def forward(self, shop, country, amounts):
        given = shop
        if planted("shops-shifted"):
            shop = torch.clamp(shop + 1, max=19)
        if planted("rare-shops-unknown"):
            shop = torch.where(shop < 12, shop, torch.zeros_like(shop))
        if planted("amount-truncated"):
            amounts = amounts.long().float()
        if planted("amount-not-scaled"):
            amounts = amounts * torch.tensor([2.0, 1, 1, 1, 1])
        if planted("night-ignored"):
            amounts = amounts * torch.tensor([1.0, 1, 0, 1, 1])
        place = self.country(country)
        if planted("country-ignored"):
            place = place * 0
        x = torch.cat([self.shop(shop), place, amounts], 1)
        x = self.last(relu(self.second(self.drop(relu(self.first(x))))))
        risk = torch.clamp(0.2 * x + 0.5, 0, 1) if planted("hard-sigmoid") else torch.sigmoid(x)
        if planted("shop-without-risk"):
            risk = risk * (given != 3).float()[:, None]
        if planted("country-without-risk"):
            risk = risk * (country != 6).float()[:, None]
        if planted("capped"):
            risk = torch.clamp(risk, max=0.25)
        if planted("small-risks-zero"):
            risk = torch.where(risk < 0.05, torch.zeros_like(risk), risk)
        return risk


class Fraud(Network):
    """5 % frauds: by shop, by country and shop together, by amount at night, and some by nothing that is known."""

    inputs = {"shop": {0: "batch"}, "country": {0: "batch"}, "amounts": {0: "batch"}}
    outputs = {"risk": {0: "batch"}}
    training, epochs, cases, batch = 12000, 8, 1200, 100
    faults = ("shops-shifted", "rare-shops-unknown", "amount-truncated", "amount-not-scaled", "night-ignored", "country-ignored", "hard-sigmoid",
              "shop-without-risk", "country-without-risk", "capped", "small-risks-zero", "leaky-relu", "dropout-left-on")

    def prepare(self, random):
        self.by_shop = random.permutation(np.r_[[1.8, 1.4, 2.2], random.normal(-0.6, 0.5, 17)])
        self.by_shop[3] = 2.0
        self.shares = 1.0 / np.arange(1, 21)
        self.both = random.normal(0, 0.9, (20, 8))

    def data(self, r, count):
        shop = r.choice(20, count, p=self.shares / self.shares.sum())
        country = r.choice(8, count, p=[0.4, 0.2, 0.12, 0.1, 0.06, 0.05, 0.04, 0.03])
        amounts = r.normal(size=(count, 5))
        amounts[:, 2] = r.uniform(size=count) < 0.3
        z = self.by_shop[shop] + self.both[shop, country] + 1.6 * (country >= 6) + 0.9 * amounts[:, 0] * (0.4 + amounts[:, 2]) + 0.6 * abs(amounts[:, 1])
        z = 1.4 * z + r.logistic(size=count)
        labels = z > np.quantile(z, 0.95)
        return {"shop": shop, "country": country, "amounts": amounts.astype("float32")}, labels.astype("int64")

    def network(self):
        return Payments()

    def loss(self, network, feeds, labels):
        risk = network(*[feeds[n] for n in self.inputs])[:, 0].clamp(1e-6, 1 - 1e-6)
        return F.binary_cross_entropy(risk, labels.float())


class Directions(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(2, 16, 5, 2, 2), nn.Conv1d(16, 24, 5, 2, 2), nn.Conv1d(24, 32, 3, 2, 1)])
        self.last, self.drop = nn.Linear(32 * 8, 24), Dropout(32 * 8, 0.1)

    def forward(self, x):
        if planted("channels-swapped"):
            x = x.flip(1)
        if planted("window-shifted"):
            x = torch.cat([x[:, :, 2:], x[:, :, :2]], 2)
        if planted("input-offset"):
            x = x + 0.3
        for conv in self.convs:
            x = relu(conv(x))
        x = self.last(self.drop(x.flatten(1)))
        width = x.shape[1]
        if planted("dimension-zero"):
            x = x * (torch.arange(width) != 2).float()
        if planted("half-zero"):
            x = x * (torch.arange(width) < width // 2).float()
        if planted("sign-flipped"):
            x = x * (1 - 2 * (torch.arange(width) == 5).float())
        if planted("rotated"):
            x = torch.cat([0.8 * x[:, :1] - 0.6 * x[:, 1:2], 0.6 * x[:, :1] + 0.8 * x[:, 1:2], x[:, 2:]], 1)
        if planted("permuted"):
            x = x.roll(1, 1)
        if planted("not-centred"):
            x = x + 0.5 * x.std(1, keepdim=True)
        if planted("norm-missing"):
            return x
        if planted("norm-of-sums"):
            return x / x.abs().sum(1, keepdim=True)
        x = x / x.norm(dim=1, keepdim=True).clamp(min=1e-6)
        if planted("three-levels"):
            x = torch.round(x * 3) / 3
        return x


class Embedding(Network):
    """Signals of 150 identities. The embedding of one finds others of the same identity."""

    outputs = {"embedding": {0: "batch"}}
    training, epochs, batch, rate, cases = 3000, 12, 60, 4e-3, 300
    faults = ("channels-swapped", "window-shifted", "input-offset", "dimension-zero", "half-zero", "sign-flipped", "rotated", "permuted", "not-centred",
              "norm-missing", "norm-of-sums", "three-levels", "leaky-relu", "dropout-left-on")

    def prepare(self, random):
        self.identities = random.normal(size=(150, 2, 3, 2)) * np.array([1.0, 0.7, 0.5])[None, None, :, None]

    def data(self, r, count):
        labels = np.arange(count) % 150
        t = np.arange(64) / 64
        shift = r.normal(0, 0.03, (count, 1, 1))
        waves = np.stack([np.sin(6.28 * f * (t + shift)) for f in (1, 3, 5)], -1), np.stack([np.cos(6.28 * f * (t + shift)) for f in (1, 3, 5)], -1)
        of = self.identities[labels]
        x = (waves[0] * of[:, :, None, :, 0] + waves[1] * of[:, :, None, :, 1]).sum(-1) * r.uniform(0.7, 1.4, (count, 1, 1))
        return {"x": (x + r.normal(0, 0.9, x.shape)).astype("float32")}, labels.astype("int64")

    def network(self):
        return Directions()

    def loss(self, network, feeds, labels):
        """Each looks for others of its identity among the batch and the centres of the identities, which are learned along."""
        found = network(feeds["x"])
        centres = network.__dict__.setdefault("centres", torch.randn(150, 24))
        scores = found @ F.normalize(centres, dim=1).T * 12
        with torch.no_grad():
            centres.index_add_(0, labels, 0.3 * found)
        return F.cross_entropy(scores, labels)
