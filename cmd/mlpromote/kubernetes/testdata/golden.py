"""Computes one case with a mounted engine, and compares it with the recorded output: golden.py MODEL CASES GOLDEN INDEX LIMIT."""
import json
import struct
import sys

import numpy
import onnxruntime


def tensor(path, name):
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    entry = json.loads(data[8 : 8 + size])[name]
    assert entry["dtype"] == "F32", entry
    first, last = entry["data_offsets"]
    return numpy.frombuffer(data[8 + size + first : 8 + size + last], "<f4").reshape(entry["shape"])


model, cases, golden, index, limit = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
(got,) = session.run(["logits"], {"image": tensor(cases, "image")[index : index + 1]})
want = tensor(golden, "logits")[index]
error = float(numpy.abs(got[0] - want).max() / numpy.abs(want).max())
print(f"case {index}: {int(got[0].argmax())}, golden {int(want.argmax())}, error {error:.1e}")
sys.exit(got[0].argmax() != want.argmax() or not error < limit)
