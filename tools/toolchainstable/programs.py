"""Writes a program of PyTorch with weights drawn from a seed: programs.py detector|recognizer|vad FILE.pt2.

These are the shapes that cmd/mlpromote/architectures/testdata/shapes.py draws in ONNX, for a compiler that takes no ONNX.
"""

import sys

import torch
from torch import nn


class Detector(nn.Module):
    """Convolutions down and up again, and a probability for every pixel."""

    inputs = {"image": (1, 32, 32)}

    def __init__(self):
        super().__init__()
        self.first, self.down, self.deep = nn.Conv2d(1, 12, 3, padding=1), nn.Conv2d(12, 24, 3, padding=1, stride=2), nn.Conv2d(24, 24, 3, padding=1)
        self.up, self.head = nn.ConvTranspose2d(24, 12, 2, stride=2), nn.Conv2d(24, 1, 1)

    def forward(self, image):
        fine = torch.relu(self.first(image))
        coarse = torch.relu(self.deep(torch.relu(self.down(fine))))
        return {"mask": torch.sigmoid(self.head(torch.cat([fine, self.up(coarse)], 1)))}


class Recognizer(nn.Module):
    """Convolutions over a line of text, a bidirectional GRU along it, and scores at each step."""

    inputs = {"image": (1, 16, 32)}

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.along, self.head = nn.GRU(128, 24, bidirectional=True, batch_first=True), nn.Linear(48, 8)

    def forward(self, image):
        x = nn.functional.max_pool2d(torch.relu(self.first(image)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.second(x)), 2)
        return {"tokens": self.head(self.along(x.permute(0, 3, 1, 2).flatten(2))[0])}


class VAD(nn.Module):
    """An LSTM that gets its state and gives it back, a frame of sound at a time."""

    inputs = {"frame": (64,), "hidden": (32,), "cell": (32,)}

    def __init__(self):
        super().__init__()
        self.filters, self.step, self.score = nn.Linear(64, 48), nn.LSTM(48, 32), nn.Linear(32, 1)

    def forward(self, frame, hidden, cell):
        _, (hidden, cell) = self.step(self.filters(frame).abs()[None], (hidden[None], cell[None]))
        return {"speech": torch.sigmoid(self.score(hidden[0])), "hidden_next": hidden[0], "cell_next": cell[0]}


MODULES = {"detector": Detector, "recognizer": Recognizer, "vad": VAD}


def main(name, file):
    torch.manual_seed(1)
    model = MODULES[name]().eval()
    batch = torch.export.Dim("batch")
    program = torch.export.export(
        model, tuple(torch.zeros(2, *size) for size in model.inputs.values()), dynamic_shapes={name: {0: batch} for name in model.inputs})
    torch.export.save(program, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
