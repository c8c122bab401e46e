"""Writes node documents beside the results: this machine as verify described it, and the same machine with
another GPU, with an older driver, and without a GPU."""

import json
import os
import sys

folder = sys.argv[1]


def write(name, node):
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as f:
        json.dump(node, f, indent=1)


with open(os.path.join(folder, "verify-encoder-1.out"), encoding="utf-8") as f:
    here = json.load(f)["node"]
write("here", here)
for name, change in {"blackwell": {"product": "NVIDIA-B200", "arch": "sm_100"}, "older-driver": {"driver": "470.256.02"}}.items():
    write(name, {**here, "accelerators": [{**a, **change} for a in here["accelerators"]]})
write("no-gpu", {k: v for k, v in here.items() if k != "accelerators"})
