"""Trains the ticket classifier and writes tickets.onnx, vocab.txt, labels.txt and the cases.

    python3 -m venv .venv
    .venv/bin/pip install --require-hashes -r requirements.lock
    .venv/bin/python train.py

About a minute on one core. What can be relied on:

- the same machine, the same lock: every file has the same bytes, run after run
  (fixed seeds, one BLAS thread);
- any machine: vocab.txt, labels.txt and the cases have the same bytes, because no
  rounding is involved;
- another CPU: tickets.onnx may differ in the last bits of its weights, and from there
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

import corpus
import dataset
import export
import network
import tokenizer

SEED = 5
EPOCHS = 8
BATCH = 32
RATE = 2e-3
WEIGHT_DECAY = 1e-2
ACCURACY_FLOOR = 0.95


def train(ids, mask, labels, vocabulary):
    """Return a TicketNet trained on token numbers and masks [n, seq] and labels [n]."""
    rng = np.random.RandomState(SEED)
    net = network.TicketNet(rng, vocabulary, len(corpus.CLASSES), tokenizer.MAX_TOKENS)
    adam = network.Adam(net.params, WEIGHT_DECAY)
    batches = len(ids) // BATCH
    for epoch in range(EPOCHS):
        order = rng.permutation(len(ids))
        total = 0.0
        for batch in range(batches):
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            longest = mask[chosen].sum(axis=1).max()
            logits = net.forward(ids[chosen, :longest], mask[chosen, :longest])
            loss, gradient = network.cross_entropy(logits, labels[chosen])
            net.backward(gradient)
            # From RATE down to 0 along half a cosine.
            done = (epoch * batches + batch) / (EPOCHS * batches)
            adam.step(RATE * 0.5 * (1 + math.cos(math.pi * done)))
            total += float(loss)
        print(f"epoch {epoch + 1:2d}: loss {total / batches:.4f}", file=sys.stderr)
    return net


def write(out, files):
    for name, content in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"wrote {path} ({len(content):,} bytes)")


def lines(texts):
    return "".join(text + "\n" for text in texts).encode()


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Train the ticket classifier and write its files.")
    parser.add_argument("--out", type=pathlib.Path, default=here.parent,
                        help="folder to write to (default: the one above this script)")
    out = parser.parse_args().out

    tokens = dataset.vocabulary()
    net = train(*dataset.training(tokens), len(tokens))
    shards = dataset.cases(tokens)
    right = [int((net.forward(ids, mask).argmax(axis=1) == labels).sum()) for ids, mask, labels in shards]
    count = sum(len(labels) for _, _, labels in shards)
    share = sum(right) / count
    print(f"accuracy: {share:.2%} ({sum(right)} of {count} tickets held back; by shard: {right})")
    if share < ACCURACY_FLOOR:
        sys.exit(f"train.py: accuracy {share:.2%} is below {ACCURACY_FLOOR:.0%}: nothing written; "
                 "check SEED, EPOCHS and RATE against the committed ones")
    files = {"tickets.onnx": export.onnx_bytes(net), "vocab.txt": lines(tokens), "labels.txt": lines(corpus.CLASSES)}
    for i, (ids, mask, labels) in enumerate(shards):
        files[f"cases/cases-{i:05d}.safetensors"] = export.safetensors_bytes(
            {"input_ids": ids, "attention_mask": mask, "label": labels})
    write(out, files)


if __name__ == "__main__":
    main()
