"""Writes host.md and evidence from the results of tools/gpu-proof.sh host: hostpage.py FOLDER

Every figure is from a report or from what a command printed; what failed is written as failed, and what was left out for lack of
time as left out. The exit code is 1 where something did not come out as it must.
"""

import json
import os
import shutil
import sys

import document
from document import cell, code, expect, failures, said, span, table

MODELS = ("transformer", "cnn")
ROUNDS = (1, 2, 3)
folder = document.folder


def read(name):
    """What a command printed; nothing of one that did not come to run."""
    return document.read(name) if os.path.exists(os.path.join(folder, "results", name)) else ""


def there(step):
    return os.path.exists(os.path.join(folder, "results", step + ".code"))


def verified(model, round_):
    text = read(f"verify-{model}-{round_}.out") if there(f"verify-{model}-{round_}") else ""
    return json.loads(text) if text.strip() else {"engines": [], "skipped": []}


def last(step, lines=1):
    """The end of what a command printed."""
    text = [line for line in read(step + ".out").strip().splitlines() if line.strip()] or said(step)
    return " ".join(" ".join(text[-lines:]).replace(folder + os.sep, "").split())[:420]


def where(engine):
    accelerator = engine["target"].get("accelerator")
    if not accelerator:
        return "CPU"
    driver = accelerator.get("driver")
    return f"GPU, {accelerator['arch']}" + (f", driver >= {driver['min']}" if driver else "")


def figures(model):
    """Rows of a model: an engine each."""
    first = verified(model, 1)
    rounds = [v for v in (verified(model, n) for n in ROUNDS) if v["engines"]]
    made = {f"{e['target']['name']}/{e['variant']}": e for e in first.get("release", {}).get("engines", [])}
    expect(f"{model} was verified", bool(first["engines"]) or not there(f"verify-{model}-1"))
    for e in first["engines"]:
        label = e["label"]
        again = [o for r in rounds for o in r["engines"] if o["label"] == label]
        verdicts = {o["parity"]["verdict"] for o in again}
        errors = {json.dumps(o["parity"].get("outputs"), sort_keys=True) for o in again}
        logits = next(iter(e["parity"].get("outputs", {}).values()), {})
        expect(f"{model} {label} passes", verdicts == {"pass"})
        engine = made[label]
        yield [f"{model} {label}", f"{engine['toolchain']['name']} {engine['toolchain']['version']}", where(engine), ", ".join(sorted(verdicts)),
               *([f"{logits['maxAbs']:.2g}", f"{logits['snrDb']} dB" if isinstance(logits["snrDb"], str) else f"{logits['snrDb']:.1f} dB", f"{100 * logits.get('top1', 0):.2f} %"] if "maxAbs" in logits else ["", "", ""]),
               f"{len(again)} of {len(again)} the same" if len(errors) == 1 else f"{len(errors)} different in {len(again)}",
               span([o["performance"]["p50Ns"] for o in again if "performance" in o] or [0]), span([o["performance"]["p99Ns"] for o in again if "performance" in o] or [0]),
               span([o["performance"]["referenceLatency"]["p50Ns"] for o in again if "performance" in o] or [0])]


def sandboxed():
    for model in filter(lambda m: there(f"verify-{m}-1"), MODELS):
        for line in read(f"verify-{model}-1.err").splitlines():
            if ": sandbox" in line:
                yield line.strip()


def steps():
    """What worked: a row each."""
    for step, what, want in (
        ("register-torch-inductor", "toolchain install torch-inductor --python PYTHON", 0), ("register-xla", "toolchain install xla --python PYTHON", 0),
        *((f"build-{m}", f"build gpu/{m}, on this machine", 0) for m in MODELS),
        ("check", "report check: the signed reports of gpu/transformer judged again, without the engines", 0),
        *((f"promote-{m}", f"promote gpu/{m}", 0) for m in MODELS),
        ("pull-torch-inductor", "pull gpu/transformer, for a machine that has PyTorch", 0), ("load-torch-inductor", "that engine, by PyTorch alone, against the program", 0),
        ("pull-xla", "pull gpu/transformer, for a machine that has JAX", 0), ("load-xla", "that engine, by JAX alone, against the program", 0),
        ("trust", "trust of the pulled folder", 0),
    ):
        yield row(step, what, want)


def refused():
    for step, what, want in (
        ("register-unknown", "toolchain install tensorflow --python PYTHON, whose packages the driver does not know or does not find", None),
        ("build-older", "build for sm_80 by torch-inductor, which compiles for the GPU that is there", 6),
        ("verify-elsewhere", "verify an engine for sm_120, which was made here", 6),
        ("verify-faulty-1", "verify engines whose compilers multiplied one weight by 1.05", 3),
        ("promote-faulty", "promote the release with these", 4),
        ("verify-tampered", "verify engines with one bit changed in the registry", 5),
        ("verify-changed", "verify after a package was added to PYTHON", 5),
    ):
        yield row(step, what, want)


def row(step, what, want):
    if not there(step):
        return [what, "left out: no time", ""]
    got = code(step)
    right = got not in (0, 1) if want is None else got == want
    lines = [s for s in said(step) if not s.startswith("hint")] if got else []
    return [what, f"exit code {got}" + expect(f"{step} ends with {want}", right), " ".join(" ".join(lines[-2:]).replace(folder + os.sep, "").split())[:420] or last(step)]


def reproducible():
    if not there("again"):
        return "Whether two builds give the same was not measured: no time was left."
    text = read("again.out")
    found = json.loads(text).get("reproducible", {}) if text.strip() else {}
    expect("a second build", bool(found))
    return "Two builds of the transformer: " + "; ".join(f"{k} gives the same {v}" for k, v in sorted(found.items())) + "."


def evidence():
    out = os.path.join(folder, "evidence")
    os.makedirs(out, exist_ok=True)
    for target in ("inductor", "xla"):
        kept = os.path.join(folder, "kept", target, "fp32", "bundle.json")
        expect(f"a signed report of {target}", os.path.exists(kept))
        if os.path.exists(kept):
            name = f"gpu-transformer-{target}-fp32-parity.json"
            shutil.copyfile(kept, os.path.join(out, name))
            yield name
    shutil.copyfile(os.path.join(folder, "data-transformer", "keys", "local.pub"), os.path.join(out, "gpu-host-verifier.pub"))
    yield "gpu-host-verifier.pub"


def machine():
    node = verified("transformer", 1).get("node") or json.loads(read("node.out") or '{"cpu": {}, "memoryMiB": 0}')
    cpu, gpus = node["cpu"], node.get("accelerators", [])
    if gpus:
        yield ["GPU", f"{len(gpus)} x {gpus[0]['product']}, {gpus[0]['arch']}, {gpus[0]['memoryMiB']} MiB, driver {gpus[0]['driver']}"]
        yield ["nvidia-smi: name, capability, memory, driver, highest clocks, persistence mode", read("nvidia-smi.out").strip()]
    yield ["processor", f"{cpu.get('vendor', '')} {cpu.get('model', '')}, x86-64 {cpu.get('level', '')}, {read('processors.out').strip()} cores, {node['memoryMiB']} MiB"]
    yield ["runtimes", ", ".join(f"{k} {v}" for k, v in sorted(node.get("runtimes", {}).items()))]
    runtime = runtime_used()
    yield ["packages, as the reports have them", ", ".join(f"{k} {v}" for k, v in sorted(runtime.get("versions", {}).items()) if k in SHOWN) or "not in the reports"]
    yield ["on", (verified("transformer", 1)["engines"] or [{"parity": {"finishedOn": ""}}])[0]["parity"]["finishedOn"][:10]]


SHOWN = ("torch", "triton", "jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda13-pjrt", "numpy", "onnx", "onnxscript", "onnxruntime")


def runtime_used():
    for e in verified("transformer", 1)["engines"]:
        if e["parity"].get("runtime", {}).get("host"):
            return e["parity"]["runtime"]["host"]
    return {}


def page():
    names = list(evidence())
    yield "## PyTorch and JAX of the machine itself"
    yield ""
    yield "`tools/gpu-proof.sh host` writes this part. The machine came with PyTorch and JAX for CUDA, which no lock file describes. They were registered"
    yield "as installs ([decision 78](decisions/0078-installs-of-the-host.md)), and engines were compiled on the machine, from programs of `torch.export`:"
    yield "by AOTInductor from the program itself ([decision 79](decisions/0079-compilers-that-take-the-source.md)), and by XLA from its ONNX reference."
    yield ""
    yield from table(["machine", ""], machine())
    yield ""
    yield "The transformer and the network of convolutions have seeded weights and an open batch. Latency is of single cases with their way to the"
    yield "device and back; the reference is ONNX Runtime on the same machine's processor. PyTorch's own predictions judge the engines."
    yield ""
    yield from table(["engine", "compiler", "runs on", "parity", "max-abs", "SNR", "same class", "rounds", "p50", "p99", "p50 of the reference"], [r for m in MODELS for r in figures(m)])
    yield ""
    yield reproducible()
    yield ""
    yield "The sandbox in which they ran:"
    yield ""
    yield "```"
    yield from dict.fromkeys(sandboxed())
    yield "```"
    yield ""
    yield from table(["step", "result", "what it printed last"], steps())
    yield ""
    yield from table(["what was refused", "result", "what it said"], refused())
    yield ""
    yield "The newest signed parity reports of the transformer, and the key that signed them. It was made for this proof and is trusted nowhere:"
    yield ""
    for name in names:
        yield f"- [{name}](evidence/{cell(name)})"
    yield ""
    yield f"All of it took {read('seconds.out').strip()} s on the machine."


if __name__ == "__main__":
    text = "\n".join(page()) + "\n"
    with open(os.path.join(folder, "host.md"), "w", encoding="utf-8") as f:
        f.write(text)
    for failure in failures:
        print(f"gpu-proof: not as expected: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)
