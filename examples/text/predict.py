#!/usr/bin/env python3
"""Says with a pulled engine what a support ticket is about.

    python3 predict.py DIR TEXT

DIR is a folder with model.onnx, vocab.txt and labels.txt, as `mlpromote pull` or
`oras pull` leaves it. Needs onnxruntime and numpy (pip install onnxruntime), nothing
of mlpromote.
"""

import argparse
import pathlib
import sys

import tokenizer


class Refused(Exception):
    """Something that the user can put right; the message says how."""


def read(folder):
    """Return ({token: number}, [label, ...]) of the files beside the model."""
    try:
        labels = (folder / "labels.txt").read_text(encoding="utf-8").splitlines()
        return tokenizer.read_vocabulary(folder / "vocab.txt"), labels
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}: give the folder that an engine was pulled to") from None
    except ValueError as error:
        raise Refused(f"{folder}: {error}") from None


def predict(folder, numbers):
    """Return the logits of DIR/model.onnx for one ticket of these token numbers."""
    import numpy as np
    import onnxruntime

    model = folder / "model.onnx"
    if not model.is_file():
        raise Refused(f"{model}: no such file: give the folder that an engine was pulled to")
    ids = np.array([numbers], np.int64)
    try:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        (logits,) = session.run(["logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    except Exception as error:  # onnxruntime's own errors have no common base
        raise Refused(f"{model}: onnxruntime {onnxruntime.__version__} cannot run it: {error}") from None
    return logits[0]


def run(folder, text):
    vocabulary, labels = read(folder)
    numbers = tokenizer.encode(text, vocabulary)
    if not numbers:
        raise Refused("the text has no words")
    logits = predict(folder, numbers)
    if len(labels) != len(logits):
        raise Refused(f"{folder / 'labels.txt'}: {len(labels)} labels, and the model knows {len(logits)} classes")
    names = {number: token for token, number in vocabulary.items()}
    print(" ".join(names[number] for number in numbers))
    print(labels[int(logits.argmax())])


def main():
    parser = argparse.ArgumentParser(description="Say what a support ticket is about, with a pulled engine.")
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help="folder with model.onnx, vocab.txt and labels.txt")
    parser.add_argument("text", metavar="TEXT", help="what the customer wrote")
    args = parser.parse_args()
    try:
        run(args.folder, args.text)
    except ImportError as error:
        sys.exit(f"predict.py: {error}: install it with: pip install onnxruntime numpy")
    except Refused as error:
        sys.exit(f"predict.py: {error}")


if __name__ == "__main__":
    main()
