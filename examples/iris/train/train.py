"""Trains a network that tells irises apart and writes its weights and its cases.

    python3 -m venv .venv
    .venv/bin/pip install --require-hashes -r requirements.lock
    .venv/bin/python train.py

A few seconds. On one machine the files have the same bytes, run after run. iris.safetensors
has weights and nothing else: which layers they belong to is said in mlpromote.yaml.
"""

import os

# Before numpy loads its BLAS: with more threads, sums have another order on every run.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import pathlib
import struct
import sys

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

SEED = 7
HIDDEN = (16, 8)
NAMES = ("first", "second", "last")  # of the layers
HELD_BACK = 50
ACCURACY_FLOOR = 0.94


def weights(model):
    """NAME.weight [out, in] and NAME.bias [out] of every layer, in float32."""
    named = {}
    for name, matrix, bias in zip(NAMES, model.coefs_, model.intercepts_):
        named[f"{name}.weight"] = matrix.T.astype(np.float32)
        named[f"{name}.bias"] = bias.astype(np.float32)
    return named


def safetensors_bytes(tensors):
    """The file format of safetensors for float32 and int64 arrays, by name."""
    words = {np.dtype("float32"): "F32", np.dtype("int64"): "I64"}
    header, body = {}, b""
    for name in sorted(tensors):
        raw = np.ascontiguousarray(tensors[name]).tobytes()
        header[name] = {"dtype": words[tensors[name].dtype], "shape": list(tensors[name].shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Train the iris network and write its files.")
    parser.add_argument("--out", type=pathlib.Path, default=here.parent, help="folder to write to (default: the one above this script)")
    out = parser.parse_args().out

    rows, species = load_iris(return_X_y=True)
    seen, held, taught, asked = train_test_split(rows.astype(np.float32), species.astype(np.int64), test_size=HELD_BACK, stratify=species, random_state=SEED)
    model = MLPClassifier(HIDDEN, solver="lbfgs", alpha=1e-2, max_iter=2000, random_state=SEED).fit(seen, taught)
    accuracy = model.score(held, asked)
    print(f"accuracy: {accuracy:.2%} of {len(held)} irises held back")
    if accuracy < ACCURACY_FLOOR:
        sys.exit(f"train.py: accuracy {accuracy:.2%} is below {ACCURACY_FLOOR:.0%}: nothing written")

    (out / "cases").mkdir(parents=True, exist_ok=True)
    (out / "cases" / "cases-00000.safetensors").write_bytes(safetensors_bytes({"input": held, "species": asked}))
    (out / "iris.safetensors").write_bytes(safetensors_bytes(weights(model)))
    print(f"wrote {out}: iris.safetensors and its cases")


if __name__ == "__main__":
    main()
