"""Makes the files of PyTorch beside this script: python3 make.py, with the packages of the toolchain
torch (pipeline/toolchain/drivers/torch/requirements.lock).

digits.pt2   the trained network of examples/digits as PyTorch has it, for any batch, by torch.export
graph.pt2    sums over the edges of a graph of any size, which has no batch
bounded.pt2  means over sequences of 4 to 12 steps, in batches of 2 to 16
weights.pt   its weights alone
script.pt    the same as TorchScript
branches.pt  a module of TorchScript with a branch and a loop, which torch.export does not take
halved.pt    one with a branch, of which torch.export takes the one that its example goes
alone.pt     one with such a branch that PyTorch's older exporter cannot convert
"""

import pathlib

import onnx
import onnx.numpy_helper
import torch

here = pathlib.Path(__file__).resolve().parent
digits = here / "../../../../../examples/digits"


class Digits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.Conv2d(16, 32, 3, padding=1)
        self.dense = torch.nn.Linear(512, 10)

    def forward(self, image):
        x = torch.relu(self.conv2(torch.relu(self.conv1(image))))
        logits = self.dense(torch.nn.functional.max_pool2d(x, 2).flatten(1))
        return {"logits": logits, "probability": logits.softmax(-1)}


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 4), torch.nn.Linear(6, 4)

    def forward(self, x, n: torch.Tensor):
        y = self.a(x)
        if bool(x.sum() > 0):
            y = self.b(x)
        for _ in range(int(n)):
            y = torch.relu(y) + 1
        return y, y.sum(-1)


class Halved(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 4)

    def forward(self, x):
        y = self.a(x)
        if bool((x.sum() > 0).item()):
            y = y * 0.5
        return y


class Alone(torch.nn.Module):
    def forward(self, x):
        y = torch.cumprod(x, 1)
        if bool((x.sum() > 0).item()):
            y = y * 0.5
        return y


class Graph(torch.nn.Module):
    def forward(self, x, edges):
        return {"sums": torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])}


class Means(torch.nn.Module):
    def forward(self, x):
        return {"means": x.mean(1), "largest": x.amax(1)}


def main():
    model = Digits().eval()
    trained = {i.name: torch.tensor(onnx.numpy_helper.to_array(i)) for i in onnx.load(digits / "digits.onnx").graph.initializer}
    trained["dense.weight"] = trained["dense.weight"].T.contiguous()
    model.load_state_dict(trained)
    program = torch.export.export(model, (torch.zeros(2, 1, 8, 8),), dynamic_shapes={"image": {0: torch.export.Dim("batch")}})
    torch.export.save(program, here / "digits.pt2")
    sizes = {"x": {0: torch.export.Dim("nodes")}, "edges": {1: torch.export.Dim("edges")}}
    program = torch.export.export(Graph().eval(), (torch.zeros(4, 3), torch.zeros(2, 5, dtype=torch.int64)), dynamic_shapes=sizes)
    torch.export.save(program, here / "graph.pt2")
    sizes = {"x": {0: torch.export.Dim("batch", min=2, max=16), 1: torch.export.Dim("steps", min=4, max=12)}}
    torch.export.save(torch.export.export(Means().eval(), (torch.zeros(3, 5, 6),), dynamic_shapes=sizes), here / "bounded.pt2")
    torch.save(model.state_dict(), here / "weights.pt")
    torch.jit.script(model).save(str(here / "script.pt"))
    torch.manual_seed(1)
    torch.jit.script(Branches().eval()).save(str(here / "branches.pt"))
    torch.manual_seed(2)
    torch.jit.script(Halved().eval()).save(str(here / "halved.pt"))
    torch.jit.script(Alone().eval()).save(str(here / "alone.pt"))


if __name__ == "__main__":
    main()
