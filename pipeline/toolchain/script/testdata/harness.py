"""Times runs of all cases by a driver against a bare loop: harness.py DRIVERS TOOLCHAIN MODEL CASES TIMES TURNS.

Both use the driver's own engine, with one thread, on the same cases, TIMES behind each other, in this process. The bare
loop has the cases in memory and keeps the outputs there; the harness reads a file and writes one. Loading is in neither.
They take turns, in the order of a palindrome. Prints medians of what the harness takes more, in percent: of time on the
clock, and of time of processors, which other work on the machine changes less.
"""

import json
import os
import statistics
import sys
import tempfile
import time

drivers, toolchain, model, cases, times, turns = sys.argv[1:]
sys.path[:0] = [os.path.join(drivers, "common"), os.path.join(drivers, toolchain)]

import numpy  # noqa: E402
from driver import Engine  # noqa: E402
from running import Runner  # noqa: E402
from tensors import read_shard, write_shard  # noqa: E402

OPTIONS = {"openvino": {"INFERENCE_NUM_THREADS": "1"}, "litert": {}}[toolchain]


def timed(work):
    began, used = time.perf_counter(), time.process_time()
    work()
    return numpy.array([time.perf_counter() - began, time.process_time() - used])


def harness(folder, path):
    outputs = tempfile.mkdtemp(dir=folder)
    runner = Runner({"run": {"outputs_dir": outputs}, "threads": 1, "inputs": [{"role": "cases", "name": "cases.safetensors", "path": path}]},
                    [{"id": "m", "path": model, "load": OPTIONS}], Engine)
    return timed(runner.run)


def bare(path):
    engine = Engine(model, 1, OPTIONS)
    ((name, (_, shape)),) = engine.inputs.items()
    x = numpy.array(read_shard({"name": "cases", "path": path})[name])
    if x.ndim != len(shape):
        x = x[:, numpy.newaxis][:, 0]

    def loop():
        kept = []
        for i in range(len(x)):
            kept.append(engine.run({name: x[i : i + 1]}))

    return timed(loop)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "cases.safetensors")
    write_shard(path, {k: numpy.concatenate([v] * int(times)) for k, v in read_shard({"name": "cases", "path": cases}).items()})
    over, fastest = [], []
    for _ in range(int(turns)):
        a, b, c, d = harness(folder, path), bare(path), bare(path), harness(folder, path)
        over.append(100 * ((a + d) / (b + c) - 1))
        fastest += [b[0], c[0]]
    wall, processor = (statistics.median(o[i] for o in over) for i in (0, 1))
    print(json.dumps({"bare_ms": 1000 * min(fastest), "time": wall, "processor": processor}))
