"""Trains a model of a kind and writes it with cases, labels, calibration and faulty versions: train.py KIND SEED FOLDER.

The kinds of NUMPY need numpy and onnx, the others PyTorch.
"""

import importlib
import json
import pathlib
import sys

import numpy as np

KINDS = {
    "cnn": ("pictures", "Cnn"), "vit": ("pictures", "Vit"), "segmentation": ("pictures", "Segmentation"), "detection": ("pictures", "Detection"),
    "text": ("sequences", "Text"), "recurrent": ("sequences", "Recurrent"), "decoder": ("sequences", "Decoder"), "audio": ("sequences", "Audio"),
    "fraud": ("records", "Fraud"), "embedding": ("records", "Embedding"),
    "trees": ("trees", "Classifier"), "trees-regressor": ("trees", "Regressor"), "price": ("prices", "Price"),
}
NUMPY = ("trees", "trees-regressor", "price")
# Kinds with labels that `mlpromote init` does not take: boxes, identities, and a token for a row of one. They are for judge.py alone.
UNLABELLED = ("detection", "embedding", "decoder")


def narrow(calibration):
    """Calibration that lacks the larger part of the ranges: floats a quarter as large, and of integers the smallest alone."""
    return {n: v / 4 if v.dtype == np.float32 else np.minimum(v, np.quantile(v, 0.2).astype(v.dtype)) for n, v in calibration.items()}


def main(name, seed, folder):
    module, kind = KINDS[name]
    kind = getattr(importlib.import_module(module), kind)()
    (folder / "faults").mkdir(parents=True, exist_ok=True)
    make = kind.make if name in NUMPY else lambda seed, folder: importlib.import_module("networks").make(kind, seed, folder)
    feeds, labels, calibration, faults = make(seed, folder)
    np.savez(folder / "cases.npz", **feeds, **({} if name in UNLABELLED else {"label": labels}))
    np.savez(folder / "truth.npz", label=labels)
    for part, tensors in (("calibration", calibration), ("narrow", narrow(calibration))):
        (folder / part).mkdir(exist_ok=True)
        np.savez(folder / part / "calibration.npz", **tensors)
    (folder / "about.json").write_text(json.dumps({"faults": faults, "labelled": name not in UNLABELLED}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]))
