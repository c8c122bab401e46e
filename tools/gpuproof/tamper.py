"""Flips one bit in the middle of every engine for a GPU in a data directory, or of every engine: tamper.py VERIFIED DATA [all]"""

import json
import os
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    release = json.load(f)["release"]



def find(digest):
    """The file of a blob, however the folder is laid out."""
    for folder, _, names in os.walk(os.path.join(sys.argv[2], "blobs")):
        for name in names:
            if name.endswith(digest.partition(":")[2]):
                return os.path.join(folder, name)
    raise SystemExit(f"no blob {digest}")


for engine in release["engines"]:
    if "accelerator" not in engine["target"] and sys.argv[3:] != ["all"]:
        continue
    with open(find(engine["digest"]), encoding="utf-8") as f:
        layers = json.load(f)["layers"]
    largest = max(layers, key=lambda layer: layer["size"])
    path = find(largest["digest"])
    os.chmod(path, 0o600)
    with open(path, "r+b") as f:
        f.seek(largest["size"] // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 1]))
    print(largest["digest"])
