"""Writes tensorrt.md and evidence from the results of tools/gpu-proof.sh tensorrt: tensorrtpage.py FOLDER. The exit code is 1 where something did not come
out as it must."""

import json
import os
import shutil
import sys

import document
from document import code, expect, failures, said, span, table

folder = document.folder


def row(step, what, want, has=""):
    """What a step was, its exit code, and its last line; has is in what it printed."""
    got, printed = code(step), document.read(step + ".out")
    lines = [line for line in (said(step) if got else [] if printed.startswith("{") else printed.splitlines()) if line.strip() and not line.startswith("hint")]
    right = expect(f"{step} ends with {want}", got == want) + expect(f"{step} prints {has}", has in printed + document.read(step + ".err"))
    return [what, f"exit code {got}{right}", " ".join((lines or [""])[-1].replace(folder + os.sep, "").split())[:420]]


def engines():
    text = document.read("verify.out")
    for e in json.loads(text)["engines"] if text.strip() else []:
        logits, speed = next(iter(e["parity"].get("outputs", {}).values()), {}), e.get("performance")
        expect(f"{e['label']} passes", e["parity"]["verdict"] == "pass")
        yield [e["label"], e["parity"]["verdict"], f"{logits.get('maxAbs', float('nan')):.2g}", str(logits.get("snrDb", "")), span([speed["p50Ns"]]) if speed else "", span([speed["referenceLatency"]["p50Ns"]]) if speed else ""]


def page():
    yield "## TensorRT, by a manifest with a runner"
    yield ""
    yield "`tools/gpu-proof.sh tensorrt` writes this part. `examples/toolchains/tensorrt.yaml` describes the compiler, trtexec, and the runner, by"
    yield "TensorRT's Python API. Both are of the machine."
    yield ""
    yield document.read("versions.out").strip()
    yield ""
    yield from table(["engine", "parity", "max-abs", "SNR in dB", "p50", "p50 of the reference"], engines())
    yield ""
    yield from table(["step", "result", "what it printed last"], [
        row("conformance", "toolchain check tensorrt.yaml", 0), row("build", "build gpu/digits", 0), row("verify", "verify", 0), row("check", "report check: the signed report judged again", 0),
        row("promote", "promote", 0), row("pull", "pull", 0),
    ])
    yield ""
    yield from table(["what was refused", "result", "what it said"], [
        row("build-elsewhere", "build for another architecture", 6), row("resolve-elsewhere", "resolve for a machine with another architecture", 6),
        row("verify-tampered", "verify engines with one bit changed in the registry", 5),
    ])
    yield ""
    yield f"All of it took {document.read('seconds.out').strip()} s on the machine."


if __name__ == "__main__":
    out = os.path.join(folder, "evidence")
    os.makedirs(out, exist_ok=True)
    kept = os.path.join(folder, "kept", "card", "fp32", "bundle.json")
    if expect("a signed report", os.path.exists(kept)) == "":
        shutil.copyfile(kept, os.path.join(out, "gpu-digits-tensorrt-parity.json"))
    with open(os.path.join(folder, "tensorrt.md"), "w", encoding="utf-8") as f:
        f.write("\n".join(page()) + "\n")
    for failure in failures:
        print(f"gpu-proof: not as expected: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)
