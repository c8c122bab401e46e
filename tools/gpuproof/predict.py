"""Runs a pulled engine with the runtime alone, without mlpromote: predict.py PULLED CASES"""

import json
import os
import struct
import sys
import time

import iree.runtime as runtime
import numpy

folder, cases = sys.argv[1:]
module = next(os.path.join(d, "model.vmfb") for d, _, names in os.walk(folder) if "model.vmfb" in names)
with open(os.path.join(os.path.dirname(module), "model.json"), encoding="utf-8") as f:
    about = json.load(f)
with open(cases, "rb") as f:
    (size,) = struct.unpack("<Q", f.read(8))
    header = json.loads(f.read(size))["patches"]
    patches = numpy.frombuffer(f.read(), "<f4").reshape(header["shape"])
config = runtime.Config(about["device"])
loaded = runtime.load_vm_module(runtime.VmModule.mmap(config.vm_instance, module), config)
function, times, classes = loaded[about["function"]], [], []
for case in patches:
    began = time.perf_counter_ns()
    logits = function(case[None]).to_host()
    times.append(time.perf_counter_ns() - began)
    classes.append(int(logits.argmax()))
median = sorted(times)[len(times) // 2] / 1e3
print(f"device {about['device']}, code for {about['arch']}: {len(classes)} cases, classes of the first 8: {classes[:8]}, median {median:.0f} us")
