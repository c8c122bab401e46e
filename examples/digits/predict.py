#!/usr/bin/env python3
"""Reads one handwritten digit with a pulled engine.

    python3 predict.py DIR CASES INDEX

DIR is a folder with a model.onnx, as `mlpromote pull` or `oras pull` leaves it;
CASES a safetensors file with the tensors image and label; INDEX counts from 0.
Needs onnxruntime and numpy (pip install onnxruntime), nothing of mlpromote.
"""

import argparse
import json
import math
import pathlib
import struct
import sys

MAX_HEADER_BYTES = 1 << 20
DTYPES = {"F32": "<f4", "I64": "<i8"}
INK = " .:-=+*#%@"  # from paper to full ink


class Refused(Exception):
    """Something that the user can put right; the message says how."""


def read_tensor(path, name):
    """Return tensor `name` of a safetensors file as a numpy array.

    The file: length of the header (uint64, little endian), header (JSON: name ->
    dtype, shape, data_offsets), data.
    """
    import numpy as np

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}: expected a safetensors file with cases") from None
    try:
        (size,) = struct.unpack_from("<Q", raw)
        if size > MAX_HEADER_BYTES or 8 + size > len(raw):
            raise ValueError(f"its header claims {size} bytes")
        header = json.loads(raw[8 : 8 + size])
        if name not in header:
            found = ", ".join(sorted(key for key in header if key != "__metadata__"))
            raise Refused(f"{path}: no tensor {name!r}, only: {found or 'none'}")
        dtype = np.dtype(DTYPES[header[name]["dtype"]])
        shape = [int(n) for n in header[name]["shape"]]
        first, last = header[name]["data_offsets"]
        data = raw[8 + size + first : 8 + size + last]
        if min([first, *shape]) < 0 or len(data) != last - first or len(data) != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"tensor {name!r} does not fit its shape {shape}")
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{path}: not a safetensors file that this script reads: {error}") from None
    return np.frombuffer(data, dtype).reshape(shape)


def predict(folder, image):
    """Return the digit that DIR/model.onnx sees in image, float32 [1, 8, 8]."""
    import onnxruntime

    model = folder / "model.onnx"
    if not model.is_file():
        raise Refused(f"{model}: no such file: give the folder that an engine was pulled to")
    try:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        (logits,) = session.run(["logits"], {"image": image[None]})
    except Exception as error:  # onnxruntime's own errors have no common base
        raise Refused(f"{model}: onnxruntime {onnxruntime.__version__} cannot run it: {error}") from None
    return int(logits[0].argmax())


def draw(image):
    """Return image [1, 8, 8] with values 0 to 1 as eight lines of text."""
    shades = (image[0].clip(0, 1) * (len(INK) - 1)).round().astype(int)
    return "\n".join("".join(INK[shade] * 2 for shade in row).rstrip() for row in shades)


def run(folder, cases, index):
    images, labels = read_tensor(cases, "image"), read_tensor(cases, "label")
    if images.dtype != "<f4" or images.shape[1:] != (1, 8, 8) or labels.shape != images.shape[:1]:
        raise Refused(f"{cases}: expected image float32 [n, 1, 8, 8] and label [n], "
                      f"found {images.dtype} {list(images.shape)} and {list(labels.shape)}")
    if not 0 <= index < len(images):
        raise Refused(f"{cases}: no case {index}: it has {len(images)}, numbered from 0")
    digit, label = predict(folder, images[index]), int(labels[index])
    print(draw(images[index]))
    print(f"case {index}: predicted {digit}, label {label}: {'right' if digit == label else 'wrong'}")


def main():
    parser = argparse.ArgumentParser(description="Read one handwritten digit with a pulled engine.")
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help="folder with model.onnx")
    parser.add_argument("cases", metavar="CASES", type=pathlib.Path, help="safetensors file with image and label")
    parser.add_argument("index", metavar="INDEX", type=int, help="which case, from 0")
    args = parser.parse_args()
    try:
        run(args.folder, args.cases, args.index)
    except ImportError as error:
        sys.exit(f"predict.py: {error}: install it with: pip install onnxruntime numpy")
    except Refused as error:
        sys.exit(f"predict.py: {error}")


if __name__ == "__main__":
    main()
