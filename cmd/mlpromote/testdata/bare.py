"""A bare script for comparison: quantizes digits.onnx and counts equal answers. Run in examples/digits by the Python of onnxruntime."""
import glob
import json
import tempfile

import numpy as np
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static


def images(folder):
    for path in sorted(glob.glob(folder + "/*.safetensors")):
        with open(path, "rb") as f:
            header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
            data = f.read()
        begin, end = header["image"]["data_offsets"]
        yield np.frombuffer(data[begin:end], np.float32).reshape(header["image"]["shape"])


class Reader(CalibrationDataReader):
    def __init__(self):
        self.rows = iter([{"image": row[None] if row.ndim == 3 else row} for block in images("calibration") for row in block])

    def get_next(self):
        return next(self.rows, None)


with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
    quantize_static("digits.onnx", f.name, Reader(), quant_format=QuantFormat.QDQ, per_channel=True)
    reference, engine = (ort.InferenceSession(path, providers=["CPUExecutionProvider"]) for path in ("digits.onnx", f.name))
    equal = count = 0
    for block in images("cases"):
        for row in block:
            feed = {"image": row[None] if row.ndim == 3 else row}
            equal += np.argmax(reference.run(None, feed)[0]) == np.argmax(engine.run(None, feed)[0])
            count += 1
print(f"{equal} of {count} answers are equal")
