"""Writes gpu.md and evidence from the results of tools/gpu-proof.sh: document.py FOLDER

Every figure is from a report or from what a command printed; what failed is written as failed. The exit code
is 1 where something did not come out as it must.
"""

import json
import os
import re
import shutil
import sys

ROUNDS = 3
MODELS = ("digits", "tickets", "encoder")
folder = sys.argv[1]
failures = []


PROGRESS = re.compile(r"^  \S.*  \d+\.\d s(  |$)")


def read(name):
    with open(os.path.join(folder, "results", name), encoding="utf-8") as f:
        return f.read()


def code(step):
    return int(read(step + ".code"))


def said(step):
    """What a command said at the end, without the lines of progress."""
    lines = [line for line in read(step + ".err").splitlines() if not PROGRESS.match(line)]
    return [line.removeprefix("mlpromote: ").strip() for line in lines if line.strip()]


def expect(what, holds):
    if not holds:
        failures.append(what)
    return "" if holds else " **not as expected**"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell(c) for c in row) + " |"


def time_of(ns):
    return f"{ns / 1e6:.2f} ms" if ns >= 1e6 else f"{ns / 1e3:.0f} us"


def span(values):
    low, high = time_of(min(values)), time_of(max(values))
    return low if low == high else f"{low} to {high}"


def verified(model, round_):
    text = read(f"verify-{model}-{round_}.out")
    return json.loads(text) if text.strip() else {"engines": [], "skipped": []}


def figures(model):
    """Rows of a model: an engine each."""
    rounds = [verified(model, n + 1) for n in range(ROUNDS)]
    targets = {f"{e['target']['name']}/{e['variant']}": e for e in rounds[0].get("release", {}).get("engines", [])}
    for i, e in enumerate(rounds[0]["engines"]):
        label, made = e["label"], targets[e["label"]]
        again = [next((o for o in r["engines"] if o["label"] == label), e) for r in rounds]
        verdicts = {o["parity"]["verdict"] for o in again}
        errors = {json.dumps(o["parity"].get("outputs"), sort_keys=True) for o in again}
        logits = e["parity"].get("outputs", {}).get("logits") or next(iter(e["parity"].get("outputs", {}).values()), {})
        accelerator = made["target"].get("accelerator")
        where = f"GPU, code for {accelerator['arch']}, driver >= {accelerator['driver']['min']}" if accelerator else "CPU"
        expect(f"{model} {label} passes", verdicts == {"pass"})
        if "maxAbs" not in logits:
            yield [f"{model} {label}", where, ", ".join(verdicts), "", "", "", "", "", "", ""]
            continue
        yield [f"{model} {label}", where, ", ".join(sorted(verdicts)),
               f"{logits['maxAbs']:.2g}", f"{logits['snrDb']:.1f} dB", f"{100 * logits.get('top1', 0):.2f} %",
               "the same figures" if len(errors) == 1 else f"{len(errors)} different ones", span([o["performance"]["p50Ns"] for o in again]),
               span([o["performance"]["p99Ns"] for o in again]), span([o["performance"]["referenceLatency"]["p50Ns"] for o in again])]


def consistency():
    """What was checked beyond the cases, of engines for the GPU: how many checks of each kind, by verdict."""
    found = {}
    for model in MODELS:
        for e in verified(model, 1)["engines"]:
            for check in e["parity"].get("checks", []) if not e["label"].startswith("cpu/") else []:
                if check["trial"] != "cases":
                    found.setdefault((check["trial"], check["verdict"]), []).append(f"{model} {e['label']}")
    for (kind, verdict), engines in sorted(found.items()):
        yield [KINDS.get(kind, kind), verdict, f"{len(engines)} checks of {len(set(engines))} engines"]


KINDS = {"repeat": "the same cases again, in one process", "process": "the same cases in another process", "load": "the engine loaded again and again",
         "batch": "several cases in one batch", "dimension": "other sizes of open dimensions"}


def worked():
    """The way of a release to production and to a node."""
    steps = {"check": "report check: the signed reports of gpu/encoder judged again, without the engines",
             **{f"promote-{m}": f"promote gpu/{m}" for m in MODELS},
             "pull": "pull gpu/encoder --env prod", "trust": "trust of the pulled folder", "predict": "the pulled engine, by IREE's runtime alone"}
    for step, what in steps.items():
        lines = read(step + ".out").strip().splitlines() or said(step)
        last = lines[-1].replace(folder + os.sep, "") if lines else ""
        yield [what, f"exit code {code(step)}" + expect(f"{step} works", code(step) == 0), " ".join(last.split())[:300]]


def refused():
    """What was refused: a row each, with what was said."""
    elsewhere = verified("elsewhere", 1)
    lacks = {s["label"]: "; ".join(f"{m['requirement']} needs {m['need']}, has {m['have'] or 'none'}" for m in s["mismatches"])
             for s in elsewhere["skipped"]}
    for label in ("blackwell/fp32", "cdna/fp32"):
        yield [f"engine {label} on this machine", "verify", "not verified here" + expect(f"{label} is skipped", label in lacks), lacks.get(label, "")]
    for step, command, what, want in (
        ("promote-elsewhere", "promote", "the release with those engines", 4),
        ("verify-faulty-1", "verify", "an engine whose compiler multiplied one weight by 1.05", 3),
        ("replay-faulty", "replay", "the case of that engine's report that is worst, run again on the GPU", 3),
        ("promote-faulty", "promote", "the release with that engine", 4),
        ("promote-uncovered", "promote", "a release where the environment also covers a machine with another GPU", 4),
        ("verify-tampered", "verify", "an engine with one bit changed in the registry", None),
        ("pull-tampered", "pull", "the same, on the way to a node", None),
    ):
        got = code(step)
        right = got == want if want else got not in (0, 1)
        lines = [s for s in said(step) if not s.startswith("hint")]
        lines = lines[-2:] if command == "promote" else lines[:2]
        yield [what, command, f"exit code {got}" + expect(f"{step} is refused", right), " ".join(lines)[:420]]


def resolved():
    chosen = {f"{e['target']['name']}/{e['variant']}": e["digest"] for e in verified("encoder", 1)["release"]["engines"]}
    machines = {"here": "this machine", "blackwell": "the same with an NVIDIA B200 (sm_100)",
                "older-driver": "the same with driver 470.256.02", "no-gpu": "the same without a GPU"}
    for kind, what in machines.items():
        out = read(f"resolve-{kind}.out").strip()
        label = next((name for name, digest in chosen.items() if out.endswith(digest)), "none")
        why = [s for s in said(f"resolve-{kind}") if "needs" in s]
        expect(f"resolve for {kind}", label.startswith("cpu/") == (kind in ("older-driver", "no-gpu")))
        yield [what, label, "; ".join(" ".join(s.split()) for s in why)]


def evidence():
    """Copies the signed parity reports of the encoder's engines for the GPU, as report check kept them."""
    out = os.path.join(folder, "evidence")
    os.makedirs(out, exist_ok=True)
    for variant in ("fp16", "fp32"):
        name = f"gpu-encoder-cuda-{variant}-parity.json"
        kept = os.path.join(folder, "kept", "cuda", variant, "bundle.json")
        expect(f"a signed report of encoder cuda/{variant}", os.path.exists(kept))
        if os.path.exists(kept):
            shutil.copyfile(kept, os.path.join(out, name))
            yield name
    shutil.copyfile(os.path.join(folder, "data", "keys", "local.pub"), os.path.join(out, "gpu-verifier.pub"))


def page():
    node = verified("encoder", 1)["node"]
    gpu, cpu = node["accelerators"][0], node["cpu"]
    reports = sorted(evidence())
    yield "# Engines on a GPU"
    yield ""
    yield "`tools/gpu-proof.sh` writes this page. It builds engines on a machine without a GPU, and then, on a machine with one, verifies, promotes and"
    yield "pulls them with the commands that a user has. [Decision 75](decisions/0075-engines-for-gpus.md) says how a GPU is named, found and tied."
    yield ""
    yield from table(["machine", ""], [
        ["GPU", f"{len(node['accelerators'])} x {gpu['product']}, {gpu['arch']}, {gpu['memoryMiB']} MiB, driver {gpu['driver']}"],
        ["nvidia-smi: name, capability, memory, driver, highest clocks, persistence mode", read("nvidia-smi.out").strip()],
        ["processor", f"{cpu.get('vendor', '')} {cpu.get('model', '')}, x86-64 {cpu.get('level', '')}, {read('processors.out').strip()} cores, {node['memoryMiB']} MiB"],
        ["runtimes", ", ".join(f"{k} {v}" for k, v in sorted(node["runtimes"].items()))],
        ["on", verified("encoder", 1)["engines"][0]["parity"]["finishedOn"][:10]]])
    yield ""
    yield "## Figures"
    yield ""
    yield "The encoder has seeded weights (4 layers of width 192, 128 tokens); digits and tickets are the [examples](../examples). Each release was"
    yield f"verified {ROUNDS} times. Latency is of single cases with their way to the device and back, and the reference is ONNX Runtime on the same"
    yield "machine's processor. Spans are the least and the most of the rounds. SNR and errors are of the first output, against the reference's outputs"
    yield "that were made where the engines were built."
    yield ""
    yield from table(["engine", "runs on", "parity", "max-abs", "SNR", "same class", f"{ROUNDS} rounds give", "p50", "p99", "p50 of the reference"],
                     [row for model in MODELS for row in figures(model)])
    yield ""
    yield "Beyond the cases, verification ran engines again, in another process, and on other batches where their shapes are open:"
    yield ""
    yield from table(["check", "verdict", "engines"], consistency())
    yield ""
    yield "The driver of IREE ran in the sandbox, with the devices:"
    yield ""
    yield "```"
    yield next((line.strip() for line in read("sandbox.err").splitlines() if line.strip().startswith("iree: sandbox") and "/dev/" in line), "")
    yield "```"
    yield ""
    yield "## To production and to a node"
    yield ""
    yield from table(["step", "result", "what it printed last"], worked())
    yield ""
    yield "`resolve` for four machines. Of several engines that a machine loads, it takes the first [in the order of the spec](reference/spec.md#which-engine-a-node-gets):"
    yield ""
    yield from table(["machine", "engine", "why not the others"], resolved())
    yield ""
    yield "## What was refused"
    yield ""
    yield from table(["what", "command", "result", "what it said"], refused())
    yield ""
    yield "## Evidence"
    yield ""
    yield "The newest signed parity reports of the encoder on this GPU, and the key that signed them. It was made for this proof and is trusted nowhere:"
    yield ""
    for name in [*reports, "gpu-verifier.pub"]:
        yield f"- [{name}](evidence/{name})"
    yield ""
    yield "## What this does not show"
    yield ""
    yield "- One machine with one GPU. Engines for sm_120 and for AMD's gfx942 were compiled, and their ties read back; they were never run."
    yield "- IREE 3.13 has no target sm_90, so this GPU runs code for sm_80 and sm_89, which the driver compiles. It uses no instructions that only"
    yield "  newer GPUs have."
    yield "- Kernels are not tuned. The figures compare engines with each other, and say little of what the GPU can do."


if __name__ == "__main__":
    text = "\n".join(page()) + "\n"
    with open(os.path.join(folder, "gpu.md"), "w", encoding="utf-8") as f:
        f.write(text)
    for failure in failures:
        print(f"gpu-proof: not as expected: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)
