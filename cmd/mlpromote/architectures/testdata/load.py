"""Loads a pulled engine as a node does that has nothing of ours: load.py RUNTIME FOLDER MODEL BATCH.

It runs the cases of the exported model in stacks of that size, and prints the figures of the outputs
against those that torch computed, by the names that a parity report has for them.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np

runtime, folder, model, batch = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4])
file = folder / "load-profile.json"
profile = json.loads(file.read_text()) if file.exists() else {"options": {}, "env": {}}
os.environ.update(profile["env"])  # before the runtime is loaded


def onnxruntime(providers):
    import onnxruntime as ort

    session = ort.InferenceSession(str(folder / "model.onnx"), providers=providers)
    names = [o.name for o in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(None, feeds)))


def openvino():
    import openvino as ov

    compiled = ov.Core().compile_model(str(folder / "model.xml"), "CPU", profile["options"])

    def run(feeds):
        result = compiled(feeds)
        return {o.get_any_name(): result[o] for o in compiled.outputs}

    return run


def iree():
    import iree.runtime as rt

    about = json.loads((folder / "model.json").read_text())
    config = rt.Config("local-task")
    module = rt.load_vm_module(rt.VmModule.mmap(config.vm_instance, str(folder / "model.vmfb")), config)

    def run(feeds):
        results = module[about["function"]](*(feeds[i["name"]] for i in about["inputs"]))
        results = results if isinstance(results, (tuple, list)) else (results,)
        return dict(zip(about["outputs"], (r.to_host() for r in results)))

    return run


def litert():
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(folder / "model.tflite"))

    def run(feeds):
        for i in interpreter.get_input_details():
            if list(i["shape"]) != list(feeds[i["name"]].shape):
                interpreter.resize_tensor_input(i["index"], feeds[i["name"]].shape)
        interpreter.allocate_tensors()
        for i in interpreter.get_input_details():
            interpreter.set_tensor(i["index"], feeds[i["name"]])
        interpreter.invoke()
        return {o["name"]: interpreter.get_tensor(o["index"]).copy() for o in interpreter.get_output_details()}

    return run


def web():
    def run(feeds):
        asked = [{k: {"type": str(v.dtype), "dims": v.shape, "data": v.ravel().tolist()} for k, v in feed.items()} for feed in feeds]
        command = [os.environ["NODE"], pathlib.Path(__file__).with_name("load.mjs"), os.environ["NODE_MODULES"], folder / "model.onnx"]
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True)
        if done.returncode:
            sys.exit(next((line for line in done.stderr.splitlines() if "rror" in line), done.stderr[-200:]))
        return [{k: np.array(v["data"], "float32").reshape(v["dims"]) for k, v in result.items()} for result in json.loads(done.stdout)]

    return run


LOAD = {
    "onnxruntime": lambda: onnxruntime(["CPUExecutionProvider"]),
    "onnxruntime-openvino": lambda: onnxruntime(["OpenVINOExecutionProvider"]),
    "openvino": openvino, "iree": iree, "litert": litert,
}


def computed(cases, count):
    feeds = [{k: np.ascontiguousarray(v[start:start + batch]) for k, v in cases.items()} for start in range(0, count, batch)]
    if runtime == "onnxruntime-web":  # one process for all
        parts = web()(feeds)
    else:
        parts = list(map(LOAD[runtime](), feeds))
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def figures(want, got):
    """As docs/reference/spec.md has them: relative to the spread of the reference's values."""
    if got.shape != want.shape:
        sys.exit(f"the engine gives {got.shape}, want {want.shape}")
    error, spread = (got - want).astype("float64"), want.astype("float64").std()
    cases = np.sqrt((error.reshape(len(want), -1) ** 2).mean(1))
    power = (error**2).mean()
    return {"snrDb": float(10 * np.log10(spread**2 / power)) if power else 999.0, "maxError": float(abs(error).max() / spread),
            "caseError": float(cases.max() / spread), "top1": float((got.argmax(-1) == want.argmax(-1)).mean())}


def main():
    wanted = dict(np.load(model / "outputs.npz"))
    cases = {k: v for k, v in np.load(model / "cases.npz").items() if k != "label"}
    count = len(next(iter(cases.values())))
    count -= count % batch
    got = computed(cases, count)
    if sorted(got) != sorted(wanted):
        sys.exit(f"the engine has the outputs {sorted(got)}, want {sorted(wanted)}")
    print(json.dumps({name: figures(values[:count], got[name]) for name, values in wanted.items()}))


main()
