"""Trains boosted trees that tell tumors apart, and writes tumors.json and its cases.

    python3.12 -m venv .venv
    .venv/bin/pip install --require-hashes -r requirements.lock
    .venv/bin/python train.py

A few seconds. Model and cases have the same bytes on every run on one kind of machine.
"""

import argparse
import json
import pathlib
import struct
import sys

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

SEED = 7
ROUNDS, DEPTH = 30, 3
HELD_BACK = 150
MISSING = 0.1  # of all measurements, so that the trees learn where to go without one
ACCURACY_FLOOR = 0.93


def train(rows, answers, names):
    """Return boosted trees whose features have names."""
    data = xgboost.DMatrix(rows, label=answers, feature_names=names, nthread=1)
    settings = {"objective": "binary:logistic", "max_depth": DEPTH, "nthread": 1, "seed": SEED}
    return xgboost.train(settings, data, num_boost_round=ROUNDS)


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
    parser = argparse.ArgumentParser(description="Train the trees and write their files.")
    parser.add_argument("--out", type=pathlib.Path, default=here.parent, help="folder to write to (default: the one above this script)")
    out = parser.parse_args().out

    data = load_breast_cancer()
    rows, answers = data.data.astype(np.float32), data.target.astype(np.int64)
    rows[np.random.default_rng(SEED).random(rows.shape) < MISSING] = np.nan
    seen, held, taught, asked = train_test_split(rows, answers, test_size=HELD_BACK, stratify=answers, random_state=SEED)
    model = train(seen, taught, [str(name).replace(" ", "_") for name in data.feature_names])
    found = model.predict(xgboost.DMatrix(held, nthread=1), validate_features=False) > 0.5
    accuracy = (found == asked).mean()
    print(f"accuracy: {accuracy:.2%} of {len(held)} tumors held back")
    if accuracy < ACCURACY_FLOOR:
        sys.exit(f"train.py: accuracy {accuracy:.2%} is below {ACCURACY_FLOOR:.0%}: nothing written")

    (out / "cases").mkdir(parents=True, exist_ok=True)
    (out / "cases" / "cases-00000.safetensors").write_bytes(safetensors_bytes({"input": held, "diagnosis": asked}))
    model.save_model(out / "tumors.json")
    print(f"wrote {out}: tumors.json, {(out / 'tumors.json').stat().st_size:,} bytes, and its cases")


if __name__ == "__main__":
    main()
