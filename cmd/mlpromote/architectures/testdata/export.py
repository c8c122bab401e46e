"""Exports an architecture as its users do: export.py ARCHITECTURE SEED FOLDER.

The architectures are those of torchvision and transformers, and three that are written here from
torch's own modules. Weights are drawn from the seed, and trained for a minute on what is drawn: none
are loaded. Beside the model lie cases, a calibration, and torch's own outputs for the cases.
"""

import json
import os
import pathlib
import sys
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1")

import numpy as np
import torch
import torchvision
from torch import nn

OPSET = 17
CASES, CALIBRATION = 300, 64


class Architecture:
    """One model: net, and sample(count), which draws inputs by name and the right answers."""

    outputs = ["logits"]
    dynamic = {"image": {0: "batch"}, "logits": {0: "batch"}}
    labels = True
    classes, axis = 10, 1
    steps, rate = 100, 3e-3
    training = torch.onnx.TrainingMode.EVAL

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.r = np.random.RandomState(seed)
        self.setup()
        self.net = self.make()

    def setup(self):
        small = self.r.normal(size=(self.classes, 3, 8, 8))
        self.kinds = np.kron(small, np.ones((1, 1, self.size // 8, self.size // 8)))

    def sample(self, count):
        """Images of ten kinds, with contrast, noise and a cast that differ."""
        labels = self.r.randint(0, self.classes, count)
        contrast = self.r.uniform(0.6, 1.4, (count, 1, 1, 1))
        cast = self.r.normal(0, 0.3, (count, 3, 1, 1))
        x = self.kinds[labels] * contrast + self.r.normal(0, 1.0, (count, 3, self.size, self.size)) + cast
        return {"image": torch.tensor(x, dtype=torch.float32)}, torch.tensor(labels)

    def run(self, feeds, batch=50):
        with torch.no_grad():
            count = len(next(iter(feeds.values())))
            parts = [self.net(*[v[i:i + batch] for v in feeds.values()]) for i in range(0, count, batch)]
        parts = [(p,) if torch.is_tensor(p) else p for p in parts]
        return {name: torch.cat(part) for name, part in zip(self.outputs, zip(*parts))}

    def train(self):
        """A minute of training, after which activations and scores are spread as those of trained networks are."""
        self.net.train()
        steps = torch.optim.AdamW(self.net.parameters(), self.rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(steps, self.rate, self.steps)
        for _ in range(self.steps):
            feeds, answers = self.sample(32)
            scores = self.net(*feeds.values())
            scores = scores if torch.is_tensor(scores) else scores[0]
            loss = nn.functional.cross_entropy(scores.movedim(self.axis, -1).reshape(-1, self.classes), answers.reshape(-1))
            steps.zero_grad()
            loss.backward()
            steps.step()
            schedule.step()
        self.settle()

    def settle(self):
        """Gives batch norms the statistics of drawn data, as the mean over four passes."""
        self.net.eval()
        norms = [m for m in self.net.modules() if isinstance(m, nn.BatchNorm2d)]
        for m in norms:
            m.reset_running_stats()
            m.momentum = None
            m.train()
        if norms:
            self.run(self.sample(200)[0])
        self.net.eval()


class ResNet(Architecture):
    size = 64

    def make(self):
        return torchvision.models.resnet18(weights=None, num_classes=self.classes)


class MobileNet(ResNet):
    def make(self):
        return torchvision.models.mobilenet_v2(weights=None, num_classes=self.classes)


class MobileNetV3(ResNet):
    def make(self):
        return torchvision.models.mobilenet_v3_small(weights=None, num_classes=self.classes)


class EfficientNet(ResNet):
    def make(self):
        return torchvision.models.efficientnet_b0(weights=None, num_classes=self.classes)


class ViT(Architecture):
    size, training = 32, torch.onnx.TrainingMode.PRESERVE

    def make(self):
        net = torchvision.models.VisionTransformer(
            image_size=32, patch_size=8, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=self.classes)
        nn.init.normal_(net.heads.head.weight, 0, 0.1)  # which torchvision starts with zeros
        return net

    def settle(self):
        super().settle()
        for m in self.net.modules():  # else torch takes a path that its exporter does not know
            if isinstance(m, nn.MultiheadAttention):
                m.train()


class Encoder(Architecture):
    """BERT, small, with an open number of tokens."""

    dynamic = {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}, "logits": {0: "batch"}}
    classes, words, length = 4, 500, 24

    def setup(self):
        self.topics = self.r.dirichlet(np.full(self.words - 1, 0.1), self.classes)

    def make(self):
        import transformers

        config = transformers.BertConfig(
            vocab_size=self.words, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256,
            max_position_embeddings=64, num_labels=self.classes)
        net = transformers.BertForSequenceClassification(config)

        class Logits(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, input_ids, attention_mask):
                return self.net(input_ids=input_ids, attention_mask=attention_mask).logits

        return Logits()

    def sample(self, count):
        labels = self.r.randint(0, self.classes, count)
        share = 0.9 * self.topics[labels] + 0.1 / (self.words - 1)
        ids = np.stack([1 + self.r.choice(self.words - 1, self.length, p=p) for p in share])
        mask = np.arange(self.length) < self.r.randint(6, self.length + 1, (count, 1))
        return {"input_ids": torch.tensor(ids * mask), "attention_mask": torch.tensor(mask.astype("int64"))}, torch.tensor(labels)


class UNet(Architecture):
    """Ronneberger, Fischer and Brox (2015), with batch norm and half as deep: a class for each pixel."""

    size, classes, labels = 32, 4, False
    dynamic = {"image": {0: "batch"}, "mask": {0: "batch"}}
    outputs = ["mask"]

    def setup(self):
        self.colours = self.r.normal(size=(self.classes, 3))

    def make(self):
        def double(into, out):
            return nn.Sequential(
                nn.Conv2d(into, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(),
                nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU())

        class Net(nn.Module):
            def __init__(self, classes):
                super().__init__()
                self.down1, self.down2, self.bottom = double(3, 16), double(16, 32), double(32, 64)
                self.up2, self.up1 = nn.ConvTranspose2d(64, 32, 2, stride=2), nn.ConvTranspose2d(32, 16, 2, stride=2)
                self.join2, self.join1 = double(64, 32), double(32, 16)
                self.head = nn.Conv2d(16, classes, 1)

            def forward(self, image):
                one = self.down1(image)
                two = self.down2(nn.functional.max_pool2d(one, 2))
                x = self.bottom(nn.functional.max_pool2d(two, 2))
                x = self.join2(torch.cat([self.up2(x), two], 1))
                return self.head(self.join1(torch.cat([self.up1(x), one], 1)))

        return Net(self.classes)

    def sample(self, count):
        small = self.r.randint(0, self.classes, (count, 4, 4))
        regions = np.kron(small, np.ones((1, 8, 8), dtype="int64"))
        x = self.colours[regions].transpose(0, 3, 1, 2) + self.r.normal(0, 0.6, (count, 3, self.size, self.size))
        return {"image": torch.tensor(x, dtype=torch.float32)}, torch.tensor(regions)


class CRNN(Architecture):
    """Shi, Bai and Yao (2015), small, with GRU: a line of text gives scores of characters by step."""

    classes, labels, axis, length = 12, False, -1, 8
    dynamic = {"image": {0: "batch"}, "tokens": {0: "batch"}}
    outputs = ["tokens"]

    def setup(self):
        self.glyphs = np.kron(self.r.normal(size=(self.classes, 8, 4)), np.ones((1, 2, 2)))

    def make(self):
        class Net(nn.Module):
            def __init__(self, classes):
                super().__init__()
                self.cnn = nn.Sequential(
                    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(32, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d((4, 2)))
                self.rnn = nn.GRU(48, 48, num_layers=2, bidirectional=True, batch_first=True)
                self.head = nn.Linear(96, classes)

            def forward(self, image):
                x, _ = self.rnn(self.cnn(image).squeeze(2).transpose(1, 2))
                return self.head(x)

        return Net(self.classes)

    def sample(self, count):
        text = self.r.randint(0, self.classes, (count, self.length))
        x = self.glyphs[text].transpose(0, 2, 1, 3).reshape(count, 1, 16, 8 * self.length)
        x = x * self.r.uniform(0.6, 1.4, (count, 1, 1, 1)) + self.r.normal(0, 0.7, x.shape)
        return {"image": torch.tensor(x, dtype=torch.float32)}, torch.tensor(text)


class LSTM(Architecture):
    """Two layers, with their state as inputs and outputs, batch first as servers stack requests."""

    classes, labels, length, width = 6, False, 10, 48
    outputs = ["logits", "hidden_out", "cell_out"]
    dynamic = {n: {0: "batch"} for n in ("x", "hidden", "cell", "logits", "hidden_out", "cell_out")}

    def setup(self):
        self.kinds = self.r.normal(size=(self.classes, self.length, 16))

    def make(self):
        class Net(nn.Module):
            def __init__(self, width, classes):
                super().__init__()
                self.rnn = nn.LSTM(16, width, num_layers=2, batch_first=True)
                self.head = nn.Linear(width, classes)

            def forward(self, x, hidden, cell):
                out, (h, c) = self.rnn(x, (hidden.transpose(0, 1), cell.transpose(0, 1)))
                return self.head(out[:, -1]), h.transpose(0, 1), c.transpose(0, 1)

        return Net(self.width, self.classes)

    def sample(self, count):
        kinds = self.r.randint(0, self.classes, count)
        x = self.kinds[kinds] + self.r.normal(0, 0.5, (count, self.length, 16))
        state = lambda: torch.tensor(np.tanh(self.r.normal(0, 0.5, (count, 2, self.width))), dtype=torch.float32)
        return {"x": torch.tensor(x, dtype=torch.float32), "hidden": state(), "cell": state()}, torch.tensor(kinds)


ARCHITECTURES = {
    "encoder": Encoder, "vit": ViT, "mobilenet": MobileNet, "mobilenetv3": MobileNetV3, "resnet": ResNet,
    "efficientnet": EfficientNet, "unet": UNet, "crnn": CRNN, "lstm": LSTM,
}


def main(name, seed, folder):
    torch.set_num_threads(1)  # so that sums have one order
    warnings.simplefilter("ignore")  # of the tracer
    a = ARCHITECTURES[name](seed)
    a.train()
    feeds, answers = a.sample(CASES)
    outputs = a.run(feeds)
    for output, values in outputs.items():
        if not torch.isfinite(values).all() or not values.std() > 1e-3:
            sys.exit(f"{name}: {output} has no spread: {values.std()}")
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        a.net, tuple(v[:2] for v in feeds.values()), str(folder / "model.onnx"), input_names=list(feeds), output_names=a.outputs,
        dynamic_axes=a.dynamic, opset_version=OPSET, training=a.training)
    arrays = lambda tensors: {k: v.contiguous().numpy() for k, v in tensors.items()}
    np.savez(folder / "cases.npz", **arrays(feeds), **({"label": answers.numpy()} if a.labels else {}))
    np.savez(folder / "calibration.npz", **arrays(a.sample(CALIBRATION)[0]))
    np.savez(folder / "outputs.npz", **arrays(outputs))
    scores = next(iter(outputs.values()))
    right = float((scores.argmax(a.axis) == answers).float().mean())
    about = {"torch": torch.__version__, "parameters": sum(p.numel() for p in a.net.parameters()), "right": round(right, 4),
             "spread": {k: round(float(v.std()), 4) for k, v in outputs.items()}}
    (folder / "about.json").write_text(json.dumps(about))  # last: the folder is whole


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]))
