"""Trains a forest that tells wines apart and writes wine.skops and its cases.

    python3 -m venv .venv
    .venv/bin/pip install --require-hashes -r requirements.lock
    .venv/bin/python train.py

A few seconds. The cases have the same bytes on every run. wine.skops does not: skops
names what it saves by where it lay in memory. The forest in it is the same.
"""

import argparse
import json
import pathlib
import struct
import sys
import zipfile

import numpy as np
import skops.io
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

SEED = 7
TREES, DEPTH = 30, 5
HELD_BACK = 60
ACCURACY_FLOOR = 0.95


def train(rows, cultivars):
    """Return a fitted forest. Its inputs are not scaled: a scaler computes in double
    precision and its ONNX form does not, and a value beside a threshold then takes
    another branch of a tree."""
    return RandomForestClassifier(n_estimators=TREES, max_depth=DEPTH, random_state=SEED).fit(rows, cultivars)


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
    parser = argparse.ArgumentParser(description="Train the wine forest and write its files.")
    parser.add_argument("--out", type=pathlib.Path, default=here.parent, help="folder to write to (default: the one above this script)")
    out = parser.parse_args().out

    rows, cultivars = load_wine(return_X_y=True)
    # Float32 before training: what the model is fed later is what it learnt on.
    seen, held, taught, asked = train_test_split(rows.astype(np.float32), cultivars.astype(np.int64), test_size=HELD_BACK, stratify=cultivars, random_state=SEED)
    model = train(seen, taught)
    accuracy = model.score(held, asked)
    print(f"accuracy: {accuracy:.2%} of {len(held)} wines held back")
    if accuracy < ACCURACY_FLOOR:
        sys.exit(f"train.py: accuracy {accuracy:.2%} is below {ACCURACY_FLOOR:.0%}: nothing written")

    (out / "cases").mkdir(parents=True, exist_ok=True)
    (out / "cases" / "cases-00000.safetensors").write_bytes(safetensors_bytes({"input": held, "cultivar": asked}))
    skops.io.dump(model, out / "wine.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9)
    print(f"wrote {out}: wine.skops, {(out / 'wine.skops').stat().st_size:,} bytes, and its cases")


if __name__ == "__main__":
    main()
