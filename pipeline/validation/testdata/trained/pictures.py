"""Pictures of shapes: a residual CNN, a small vision transformer, a segmentation of places, and a head that detects."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from networks import Block, Dropout, Network, Scores, planted, relu

SHARES = [0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04]


def picture(r, kind, size, channels):
    """One picture of a texture or a shape, at a random place, in a random colour, with noise."""
    y, x = np.mgrid[0:size, 0:size].astype("float64")
    wave, phase = r.uniform(0.9, 1.4), r.uniform(0, 6.28)
    cx, cy, radius = r.uniform(size * 0.35, size * 0.65, 2).tolist() + [r.uniform(size * 0.2, size * 0.32)]
    far = np.hypot(x - cx, y - cy)
    form = [
        lambda: np.sin(wave * x + phase), lambda: np.sin(wave * y + phase), lambda: np.sin(wave * (x + y) * 0.7 + phase),
        lambda: np.sin(wave * x + phase) * np.sin(wave * y + phase), lambda: 2.0 * (far < radius) - 0.5,
        lambda: 2.0 * (abs(far - radius) < 1.2) - 0.5, lambda: 2.0 * (np.maximum(abs(x - cx), abs(y - cy)) < radius) - 0.5,
        lambda: 2.0 * (np.minimum(abs(x - cx), abs(y - cy)) < 1.2) * (far < 1.6 * radius) - 0.5,
    ][kind]()
    color = r.uniform(0.4, 1.0, channels) * np.where(np.arange(channels) == kind % 3, 1.3, 0.8)
    return color[:, None, None] * form + r.normal(0, 0.85, (channels, size, size)) + r.normal(0, 0.3)


def pictures(r, count, size, channels):
    labels = r.choice(8, count, p=SHARES)
    return {"x": np.stack([picture(r, k, size, channels) for k in labels]).astype("float32")}, labels


class Residual(nn.Module):
    def __init__(self, into, out, stride, dropped):
        super().__init__()
        self.dropped, self.stride = dropped, stride
        self.conv1, self.norm1 = nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.norm2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.short = nn.Conv2d(into, out, 1, stride)

    def norm(self, layer, x):
        if planted("wrong-epsilon"):
            return F.batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias, False, 0, 0.05)
        return layer(x)

    def forward(self, x):
        if planted("branch-dropped") and self.dropped:
            return relu(self.short(x))
        y = relu(self.norm(self.norm1, self.conv1(x)))
        return relu(self.norm(self.norm2, self.conv2(y)) + self.short(x))


class ResidualNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 1, 0)
        self.parts = nn.ModuleList([Residual(12, 12, 1, False), Residual(12, 24, 2, False), Residual(24, 32, 2, True)])
        self.drop, self.scores = Dropout(32), Scores(32, 8)

    def forward(self, x):
        if planted("colours-swapped"):
            x = x.flip(1)
        if planted("blurred"):
            x = F.avg_pool2d(x, 3, 1, 1)
        if planted("input-offset"):
            x = x + 0.25
        x = F.pad(x, (1, 1, 1, 1), value=1.0 if planted("wrong-pad-value") else 0.0)
        x = relu(self.stem(x))
        for part in self.parts:
            x = part(x)
        pooled = x.amax((2, 3)) if planted("max-for-average") else x.mean((2, 3))
        return self.scores(self.drop(pooled))


class Cnn(Network):
    epochs, training = 8, 2400
    faults = ("branch-dropped", "wrong-epsilon", "wrong-pad-value", "leaky-relu", "colours-swapped", "blurred", "input-offset", "class-capped",
              "rare-class-lost", "dropout-left-on")

    def data(self, r, count):
        return pictures(r, count, 16, 3)

    def network(self):
        return ResidualNetwork()


class VisionTransformer(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.patch, self.places = nn.Linear(3 * 16, width), nn.Parameter(torch.randn(1, 16, width) * 0.1)
        self.blocks = nn.ModuleList([Block(width, 4, last) for last in (False, True)])
        self.norm, self.scores = nn.LayerNorm(width), Scores(width, 8)

    def forward(self, x):
        patches = x.reshape(-1, 3, 4, 4, 4, 4).permute(0, 2, 4, 1, 3, 5).reshape(-1, 16, 48)
        places = self.places
        if planted("positions-shifted"):
            places = torch.cat([places[:, 1:], places[:, :1]], 1)
        if planted("patches-transposed"):
            patches = patches.reshape(-1, 4, 4, 48).transpose(1, 2).reshape(-1, 16, 48)
        if planted("last-patch-ignored"):
            patches = patches * torch.tensor([1.0] * 15 + [0.0])[None, :, None]
        x = self.patch(patches) + places
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x.mean(1)))


class Vit(Network):
    epochs, training, rate = 16, 3000, 3e-3
    faults = ("positions-shifted", "patches-transposed", "last-patch-ignored", "head-zeroed", "scale-missing", "branch-dropped", "wrong-epsilon",
              "relu-for-gelu", "class-capped", "rare-class-lost", "dropout-left-on")

    def data(self, r, count):
        return pictures(r, count, 16, 3)

    def network(self):
        return VisionTransformer()


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda a, b: nn.Conv2d(a, b, 3, 1, 1)
        self.down1, self.down2, self.bottom = conv(2, 12), conv(12, 20), conv(20, 20)
        self.up2, self.up1, self.last = conv(40, 20), conv(32, 12), nn.Conv2d(12, 4, 1)

    def up(self, x):
        if planted("nearest-for-bilinear"):
            return F.interpolate(x, scale_factor=2, mode="nearest")
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=planted("corners-aligned"))

    def forward(self, x):
        size = x.shape[2:]
        first = relu(self.down1(x))
        second = relu(self.down2(F.max_pool2d(first, 2)))
        y = relu(self.bottom(F.max_pool2d(second, 2)))
        y = relu(self.up2(torch.cat([self.up(y), second], 1)))
        y = relu(self.up1(torch.cat([self.up(y), first * (0.0 if planted("skip-dropped") else 1.0)], 1)))
        scores = self.last(y)
        rows = torch.arange(24).reshape(1, 1, 24, 1)
        rare = torch.tensor([0.0, 0.0, 0.0, 1.0]).reshape(1, 4, 1, 1)
        if planted("rare-class-lost"):
            scores = scores - 40 * rare
        if planted("rare-class-lost-above"):
            scores = scores - 40 * rare * (rows < 12).float()
        if planted("rare-class-weaker"):
            scores = scores - 3 * rare
        if planted("shifted"):
            scores = torch.cat([scores[:, :, 1:], scores[:, :, -1:]], 2)
        if planted("border-empty"):
            inside = ((rows > 1) & (rows < 22)).float()
            scores = scores * inside + (1 - inside) * torch.tensor([5.0, 0.0, 0.0, 0.0]).reshape(1, 4, 1, 1)
        return scores


class Segmentation(Network):
    outputs = {"mask": {0: "batch"}}
    training, epochs, cases, rate, batch = 900, 12, 200, 8e-3, 30
    faults = ("nearest-for-bilinear", "corners-aligned", "skip-dropped", "rare-class-lost", "rare-class-lost-above", "rare-class-weaker", "shifted",
              "border-empty", "leaky-relu")

    def data(self, r, count):
        """Blobs and bars, and in half of the pictures a spot of four to six pixels."""
        size = 24
        y, x = np.mgrid[0:size, 0:size]
        labels, pixels = np.zeros((count, size, size), "int64"), np.zeros((count, 2, size, size))
        for i in range(count):
            for _ in range(r.randint(1, 3)):
                cx, cy, radius = r.uniform(3, 21), r.uniform(3, 21), r.uniform(3, 6)
                labels[i][np.hypot(x - cx, y - cy) < radius] = 1
            at = r.randint(2, 20)
            if r.uniform() < 0.6:
                labels[i][(x >= at) & (x < at + 3) if r.uniform() < 0.5 else (y >= at) & (y < at + 3)] = 2
            if r.uniform() < 0.6:
                a, b, w = r.randint(1, 20), r.randint(1, 20), r.randint(2, 4)
                labels[i][b : b + 2, a : a + w] = 3
        for channel, levels in enumerate(([0, 1.2, -0.8, 2.0], [0, 0.6, 1.2, -1.2])):
            pixels[:, channel] = np.array(levels)[labels]
        pixels += r.normal(0, 0.5, pixels.shape) + r.normal(0, 0.2, (count, 2, 1, 1))
        return {"x": pixels.astype("float32")}, labels

    def network(self):
        return Unet()

    def loss(self, network, feeds, labels):
        return F.cross_entropy(network(feeds["x"]), labels, weight=torch.tensor([1.0, 1.0, 1.0, 4.0]))


class Detector(nn.Module):
    """Finds centres of shapes on a grid of 8 x 8, and lists the ten with the highest scores."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(1, 16, 3, 2, 1), nn.Conv2d(16, 24, 3, 2, 1), nn.Conv2d(24, 24, 3, 1, 1), nn.Conv2d(24, 24, 3, 1, 1)])
        self.heat, self.size = nn.Conv2d(24, 3, 1), nn.Conv2d(24, 4, 1)

    def maps(self, x):
        for conv in self.convs:
            x = relu(conv(x))
        return self.heat(x), self.size(x)

    def forward(self, x):
        heat, size = self.maps(x)
        heat = torch.sigmoid(heat)
        if planted("class-weaker"):
            heat = heat * torch.tensor([1.0, 1.0, 0.5]).reshape(1, 3, 1, 1)
        if not planted("suppression-missing"):
            heat = heat * (0.001 + 0.999 * (heat == F.max_pool2d(heat, 3, 1, 1)).float())  # not 0, of which many would be equal
        if planted("corner-ignored"):
            heat = heat * (1 - (torch.arange(8).reshape(1, 1, 8, 1) > 4).float() * (torch.arange(8).reshape(1, 1, 1, 8) > 4).float())
        scores, at = torch.topk(heat.flatten(1), 10)
        if planted("threshold"):
            scores = scores * (scores > 0.6).float()
        if planted("six-for-ten"):
            keep = (torch.arange(10) < 2).float()
            scores = scores * keep
        classes, place = torch.div(at, 64, rounding_mode="floor"), at % 64
        if planted("classes-swapped"):
            classes = torch.tensor([1, 0, 2])[classes]
        four = torch.gather(size.flatten(2).transpose(1, 2), 1, place[:, :, None].expand(-1, -1, 4))
        half = 0.0 if planted("centre-shifted") else 0.5
        column, row = (place % 8).float() + half, torch.div(place, 8, rounding_mode="floor").float() + half
        if planted("offset-missing"):
            four = four * torch.tensor([0.0, 0.0, 1.0, 1.0])
        cx, cy = column * 4 + four[:, :, 0], row * 4 + four[:, :, 1]
        w, h = torch.exp(four[:, :, 2]) * 4, torch.exp(four[:, :, 3]) * 4
        if planted("sizes-swapped"):
            w, h = h, w
        if planted("boxes-larger"):
            w, h = w * 1.3, h * 1.3
        boxes = torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], 2)
        return boxes, scores, classes


class Detection(Network):
    outputs = {"boxes": {0: "batch"}, "scores": {0: "batch"}, "classes": {0: "batch"}}
    training, epochs, rate, cases = 2000, 12, 6e-3, 250
    faults = ("class-weaker", "suppression-missing", "corner-ignored", "threshold", "six-for-ten", "classes-swapped", "centre-shifted", "offset-missing",
              "sizes-swapped", "boxes-larger", "leaky-relu")

    def data(self, r, count):
        """One to three shapes of three classes, of unequal frequency. Labels are x1, y1, x2, y2, class; -1 fills up."""
        size = 32
        y, x = np.mgrid[0:size, 0:size] + 0.5
        pixels, labels = r.normal(0, 0.35, (count, 1, size, size)), np.full((count, 3, 5), -1.0)
        for i in range(count):
            for n in range(r.randint(1, 4)):
                kind = r.choice(3, p=[0.55, 0.3, 0.15])
                w, h = r.uniform(5, 11, 2)
                cx, cy = r.uniform(w / 2 + 1, size - w / 2 - 1), r.uniform(h / 2 + 1, size - h / 2 - 1)
                if any(l[4] >= 0 and abs((l[0] + l[2]) / 2 - cx) < 7 and abs((l[1] + l[3]) / 2 - cy) < 7 for l in labels[i]):
                    continue
                u, v = abs(x - cx) / (w / 2), abs(y - cy) / (h / 2)
                form = [(u < 1) & (v < 1), np.hypot(u, v) < 1, (u < 1) & (v < 1) & ((u > 0.5) | (v > 0.5))][kind]
                pixels[i, 0] += form * r.uniform(1.0, 1.8)
                labels[i, n] = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, kind]
            labels[i] = labels[i][np.argsort(labels[i, :, 4] < 0, kind="stable")]
        return {"x": pixels.astype("float32")}, labels.astype("float32")

    def network(self):
        return Detector()

    def loss(self, network, feeds, labels):
        heat, size = network.maps(feeds["x"])
        n = labels.shape[0]
        wanted, near = torch.zeros_like(heat), torch.zeros_like(heat)
        four, there = torch.zeros_like(size), torch.zeros(n, 1, 8, 8)
        rows = torch.arange(n)
        grid = torch.arange(8).float()
        for k in range(3):
            box, kind = labels[:, k, :4], labels[:, k, 4]
            is_box = kind >= 0
            cx, cy = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
            column, row = (cx / 4).long().clamp(0, 7), (cy / 4).long().clamp(0, 7)
            at = (rows[is_box], kind[is_box].long(), row[is_box], column[is_box])
            wanted[at] = 1
            bump = torch.exp(-((grid[None, None, :] - column[:, None, None]) ** 2 + (grid[None, :, None] - row[:, None, None]) ** 2) / 1.5)
            near[rows[is_box], kind[is_box].long()] = torch.maximum(near[rows[is_box], kind[is_box].long()], bump[is_box])
            w, h = (box[:, 2] - box[:, 0]).clamp(min=1), (box[:, 3] - box[:, 1]).clamp(min=1)
            found = torch.stack([cx - column * 4 - 2, cy - row * 4 - 2, torch.log(w / 4), torch.log(h / 4)], 1)
            four[rows[is_box], :, row[is_box], column[is_box]] = found[is_box]
            there[rows[is_box], 0, row[is_box], column[is_box]] = 1
        p = torch.sigmoid(heat).clamp(1e-4, 1 - 1e-4)
        focal = -(wanted * (1 - p) ** 2 * torch.log(p) + (1 - wanted) * (1 - near) ** 4 * p**2 * torch.log(1 - p)).sum()
        return (focal + (there * F.smooth_l1_loss(size, four, reduction="none")).sum()) / max(float(wanted.sum()), 1.0)
