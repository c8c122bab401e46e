"""Makes two programs of torch.export with seeded weights, and cases for them: python3 programs.py FOLDER

FOLDER/cnn has a small network of convolutions, FOLDER/transformer a small encoder; the batch of both is open.
"""

import json
import os
import struct
import sys

import numpy
import torch

CASES = 128


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
            torch.nn.Flatten(), torch.nn.Linear(512, 10),
        )  # fmt: skip

    def forward(self, image):
        return {"logits": self.layers(image)}


class Transformer(torch.nn.Module):
    WIDTH, HEADS, LAYERS, TOKENS, CLASSES = 128, 4, 2, 64, 16

    def __init__(self):
        super().__init__()
        self.begin = torch.nn.Linear(32, self.WIDTH)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(self.WIDTH) for _ in range(2 * self.LAYERS + 1))
        self.mixed = torch.nn.ModuleList(torch.nn.Linear(self.WIDTH, 3 * self.WIDTH) for _ in range(self.LAYERS))
        self.joined = torch.nn.ModuleList(torch.nn.Linear(self.WIDTH, self.WIDTH) for _ in range(self.LAYERS))
        self.wide = torch.nn.ModuleList(torch.nn.Linear(self.WIDTH, 4 * self.WIDTH) for _ in range(self.LAYERS))
        self.narrow = torch.nn.ModuleList(torch.nn.Linear(4 * self.WIDTH, self.WIDTH) for _ in range(self.LAYERS))
        self.end = torch.nn.Linear(self.WIDTH, self.CLASSES)

    def forward(self, patches):
        x = self.begin(patches)
        for i in range(self.LAYERS):
            q, k, v = self.mixed[i](self.norms[2 * i](x)).unflatten(-1, (3, self.HEADS, -1)).permute(2, 0, 3, 1, 4).unbind(0)
            scores = torch.softmax(q @ k.transpose(-1, -2) * (self.WIDTH // self.HEADS) ** -0.5, -1)
            x = x + self.joined[i]((scores @ v).transpose(1, 2).flatten(2))
            x = x + self.narrow[i](torch.nn.functional.gelu(self.wide[i](self.norms[2 * i + 1](x))))
        return {"logits": self.end(self.norms[-1](x).mean(1))}


def save(folder, module, name, shape):
    """The program, and recorded inputs as one shard in safetensors, of few digits."""
    os.makedirs(os.path.join(folder, "cases"))
    program = torch.export.export(module.eval(), (torch.zeros(2, *shape),), dynamic_shapes=({0: torch.export.Dim("batch", max=1024)},))
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    values = numpy.random.default_rng(18).integers(-16, 17, (CASES, *shape)).astype("<f4") / 8
    header = json.dumps({name: {"dtype": "F32", "shape": values.shape, "data_offsets": [0, values.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(os.path.join(folder, "cases", "cases-00000.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + values.tobytes())


def main(folder):
    torch.manual_seed(17)
    save(os.path.join(folder, "cnn"), Convolutions(), "image", (3, 16, 16))
    save(os.path.join(folder, "transformer"), Transformer(), "patches", (Transformer.TOKENS, 32))


if __name__ == "__main__":
    main(sys.argv[1])
