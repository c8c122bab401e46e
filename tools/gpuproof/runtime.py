"""Prints the machine that verify described; with RUNTIME, as one that has no other: runtime.py VERIFIED [RUNTIME]"""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    node = json.load(f)["node"]
json.dump({**node, "runtimes": {k: v for k, v in node["runtimes"].items() if k in sys.argv[2:] or not sys.argv[2:]}}, sys.stdout)
