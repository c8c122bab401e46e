"""Trains the digits network and writes digits.onnx, its calibration images and its cases.

    python3 -m venv .venv
    .venv/bin/pip install --require-hashes -r requirements.lock
    .venv/bin/python train.py

Less than a minute on one core. What can be relied on:

- the same machine, the same lock: every file has the same bytes, run after run
  (fixed seeds, one BLAS thread);
- any machine: calibration-00000.safetensors and cases-00000.safetensors have the
  same bytes, because no rounding is involved;
- another CPU: digits.onnx may differ in the last bits of its weights, and from there
  in more of them, because BLAS chooses its kernels, and with them the order of its
  sums, by CPU. The accuracy stays above the floor or nothing is written; the digest
  of the model is not to be compared.
"""

import os

# Before numpy loads its BLAS: with more threads, sums have another order on every run.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import math
import pathlib
import sys

import numpy as np

import dataset
import export
import network

SEED = 7
EPOCHS = 40
BATCH = 64
RATE = 3e-3
WEIGHT_DECAY = 1e-2
ACCURACY_FLOOR = 0.98


def train(images, labels):
    """Return a DigitNet trained on images [n, 1, 8, 8] and labels [n]."""
    rng = np.random.RandomState(SEED)
    net = network.DigitNet(rng)
    adam = network.Adam(net.params, WEIGHT_DECAY)
    batches = len(images) // BATCH
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        total = 0.0
        for batch in range(batches):
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            logits = net.forward(dataset.shifted(images[chosen], rng))
            loss, gradient = network.cross_entropy(logits, labels[chosen])
            net.backward(gradient)
            # From RATE down to 0 along half a cosine.
            done = (epoch * batches + batch) / (EPOCHS * batches)
            adam.step(RATE * 0.5 * (1 + math.cos(math.pi * done)))
            total += float(loss)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:2d}: loss {total / batches:.4f}", file=sys.stderr)
    return net


def accuracy(net, images, labels):
    """Return the share of images whose largest logit is the label's, and their number."""
    right = int((net.forward(images).argmax(axis=1) == labels).sum())
    return right / len(labels), right


def write(out, files):
    for name, content in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"wrote {path} ({len(content):,} bytes)")


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Train the digits network and write its files.")
    parser.add_argument("--out", type=pathlib.Path, default=here.parent,
                        help="folder to write to (default: the one above this script)")
    out = parser.parse_args().out

    train_images, train_labels, test_images, test_labels = dataset.load()
    net = train(train_images, train_labels)
    share, right = accuracy(net, test_images, test_labels)
    print(f"accuracy: {share:.2%} ({right} of {len(test_labels)} images held back)")
    if share < ACCURACY_FLOOR:
        sys.exit(f"train.py: accuracy {share:.2%} is below {ACCURACY_FLOOR:.0%}: nothing written; "
                 "check SEED, EPOCHS and RATE against the committed ones")
    write(out, {
        "digits.onnx": export.onnx_bytes(net),
        "calibration/calibration-00000.safetensors":
            export.safetensors_bytes({"image": dataset.calibration(train_images)}),
        "cases/cases-00000.safetensors":
            export.safetensors_bytes({"image": test_images, "label": test_labels}),
    })


if __name__ == "__main__":
    main()
