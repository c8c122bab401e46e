#!/usr/bin/env python3
"""Makes the inputs in this folder: each one must be refused, README.md says why.

    python3 make.py

Reads ../digits, needs numpy, writes the same bytes on every machine.
"""

import json
import pathlib
import pickle
import struct

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent / "digits"

SPEC = """\
# {comment}
model: vision/{model}
version: 1.0.0
source: {source}
cases: {{path: cases/, labels: label}}
calibration: {{path: calibration/}}
variants: [fp32, {{name: int8, quantize: {{method: static}}}}]
targets: [linux/amd64/v1]
"""


def spec(comment, model, source="model.onnx"):
    """Return an mlpromote.yaml that is right but for what comment says."""
    return SPEC.format(comment=comment, model=model, source=source).encode()


def good(*names):
    """Return files of ../digits, each as it is: a spec names nothing outside of its own folder."""
    files = {}
    for name in names:
        for path in sorted(DIGITS.glob(name + "/*")) or [DIGITS / name]:
            files[path.relative_to(DIGITS).as_posix()] = path.read_bytes()
    return files


def twice_normalised(safetensors):
    """Return the calibration images with their pixels divided by 255 once more.

    A pipeline that normalises data which is already 0 to 1 does this. The ranges
    taken from it end at 0.004, so every stroke saturates.
    """
    (size,) = struct.unpack_from("<Q", safetensors)
    header = json.loads(safetensors[8 : 8 + size])
    assert list(header) == ["image"], "the calibration file holds one tensor"
    pixels = np.frombuffer(safetensors[8 + size :], "<f4") / np.float32(255)
    return safetensors[: 8 + size] + pixels.astype("<f4").tobytes()


def broken_calibration():
    calibration = good("calibration")
    return {
        "mlpromote.yaml": spec("The calibration images were normalised twice: int8 must fail parity.",
                               "digits-broken", "digits.onnx"),
        **good("digits.onnx", "cases"),
        **{name: twice_normalised(content) for name, content in calibration.items()},
    }


def model(comment, name, content):
    return {"mlpromote.yaml": spec(comment, name), "model.onnx": content, **good("cases", "calibration")}


def misspelt():
    right = spec("The key of the variants is misspelt.", "digits-typo", "digits.onnx")
    return {"mlpromote.yaml": right.replace(b"\nvariants:", b"\nvarients:"), **good("digits.onnx", "cases", "calibration")}


def arm_node():
    node = {
        "v": 1,
        "os": "linux",
        "cpu": {"arch": "arm64", "vendor": "ARM", "model": "Neoverse-N1", "features": ["asimd", "asimddp", "atomics", "fphp"]},
        "memoryMiB": 7951,
        "accelerators": [],
        "runtimes": {"onnxruntime": "1.30.0"},
        "source": "file",
    }
    return {"node.json": (json.dumps(node, indent=2) + "\n").encode()}


def folders():
    digits = (DIGITS / "digits.onnx").read_bytes()
    return {
        "broken-calibration": broken_calibration(),
        "pickle": model("The source is a pickle under an ONNX name.", "digits-pickle",
                        pickle.dumps({"weights": [1, 2, 3]}, protocol=4)),
        "truncated": model("The source is the first 60 % of a model.", "digits-truncated",
                           digits[: len(digits) * 60 // 100]),
        "empty": model("The source has no bytes.", "digits-empty", b""),
        "typo": misspelt(),
        "impossible-node": arm_node(),
    }


def main():
    for folder, files in folders().items():
        for name, content in files.items():
            path = HERE / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            print(f"wrote {path.relative_to(HERE)} ({len(content):,} bytes)")


if __name__ == "__main__":
    main()
