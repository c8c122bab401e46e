# Writes pyarrow.parquet, 40 rows as pandas and pyarrow write them, and digits.parquet for tests of the command line. Run with pyarrow 26.0.1 and pandas 3.1.1:
#   python3 make.py
import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
frame = pd.DataFrame(
    {
        "age": [float(n) if n % 4 else None for n in range(40)],
        "city": pd.Categorical([["Rome", "Zürich"][n % 2] for n in range(40)]),
        "member": [n % 3 == 0 for n in range(40)],
        "image": [[[n, 1], [2, 3]] for n in range(40)],
        "label": rng.integers(0, 10, 40),
    },
    index=range(0, 80, 2),
)
frame[::-1].to_parquet("pyarrow.parquet", compression="zstd", index=True, write_statistics=False, store_schema=False)

# The first 20 cases of examples/digits, for tests of the command line.
import json
import pathlib

shard = pathlib.Path(__file__).parents[4] / "examples/digits/cases/cases-00000.safetensors"
data = shard.read_bytes()
header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def tensor(name, dtype):
    start, end = header[name]["data_offsets"]
    body = data[8 + int.from_bytes(data[:8], "little") :]
    return np.frombuffer(body[start:end], dtype).reshape(header[name]["shape"])


digits = pd.DataFrame(
    {
        "id": [f"case {n}" for n in range(20)],
        "image": [image.flatten().astype(np.uint8) for image in tensor("image", "<f4")[:20]],
        "label": tensor("label", "<i8")[:20],
    }
)
digits.to_parquet("../../../../cmd/mlpromote/testdata/digits.parquet", compression="gzip", index=False, write_statistics=False, store_schema=False)
