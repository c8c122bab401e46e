"""Runs a pulled engine with PyTorch or JAX alone, without mlpromote, and compares it with the program: load.py PULLED PROGRAM INPUT CASES"""

import json
import os
import struct
import sys
import time

import numpy
import torch

pulled, program, name, cases = sys.argv[1:]
paths = [os.path.join(d, n) for d, _, names in os.walk(pulled) for n in names if n in ("model.pt2", "model.jax")]
with open(cases, "rb") as f:
    (size,) = struct.unpack("<Q", f.read(8))
    header = json.loads(f.read(size))[name]
    values = numpy.frombuffer(f.read(), "<f4").reshape(header["shape"]).copy()

if paths[0].endswith(".pt2"):
    with open(os.path.join(os.path.dirname(paths[0]), "model.json"), encoding="utf-8") as f:
        device = {"cuda": "cuda"}.get(json.load(f)["device"], "cpu")
    engine = torch._inductor.aoti_load_package(paths[0])
    run = lambda case: engine(torch.from_numpy(case).to(device))["logits"].detach().cpu().numpy()  # noqa: E731
else:
    import jax

    with open(paths[0], "rb") as f:
        exported = jax.export.deserialize(bytearray(f.read()))
    device = jax.devices(exported.platforms[0])[0].device_kind
    run = lambda case: numpy.asarray(exported.call({name: case})["logits"])  # noqa: E731

reference = torch.export.load(program).module()
times, worst, same = [], 0.0, 0
for case in values:
    began = time.perf_counter_ns()
    logits = run(case[None])
    times.append(time.perf_counter_ns() - began)
    with torch.no_grad():
        wanted = reference(torch.from_numpy(case[None]))["logits"].numpy()
    worst, same = max(worst, float(abs(logits - wanted).max())), same + int(logits.argmax() == wanted.argmax())
print(f"{os.path.basename(paths[0])} on {device}: {len(times)} cases, {same} of the same class, largest difference {worst:.2g}, median {sorted(times)[len(times) // 2] / 1e3:.0f} us")
