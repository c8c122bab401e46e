"""What OpenVINO's CPU plugin exports: a model as it is after the plugin's own passes, for one
version of OpenVINO and one set of instructions, which its header names."""

import io
import os

from protocol import Refused

MAGIC = b"RR_UPCVO"
# oneDNN's names by the sentences that stand for them in the header.
SENTENCES = {
    "Intel SSE4.1": "SSE41",
    "Intel AVX2": "AVX2",
    "Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions": "AVX512_CORE",
    "Intel AVX-512 with Intel DL Boost": "AVX512_CORE_VNNI",
    "Intel AVX-512 with Intel DL Boost and bfloat16 support": "AVX512_CORE_BF16",
}


def limit(isa):
    """Makes the plugin use these instructions and no newer ones, from before it is loaded."""
    if isa:
        os.environ["ONEDNN_MAX_CPU_ISA"] = isa


def instructions(path):
    """The instructions that the blob is for; empty for none that are known here. Its header
    is the magic, a version in four bytes, a length in eight, and so much text."""
    with open(path, "rb") as f:
        head = f.read(4096)
    if not head.startswith(MAGIC):
        raise Refused("bad_input", f"this is no blob of OpenVINO's CPU plugin: it does not begin with {MAGIC.decode()}")
    text = head[20 : 20 + int.from_bytes(head[12:20], "little")].decode("utf-8", "replace")
    said = dict(part.partition("=")[::2] for part in text.split(";"))
    return SENTENCES.get(said.get("isa"), "")


def exported(core, model, settings):
    made = core.compile_model(model, "CPU", {**settings, "INFERENCE_NUM_THREADS": 1}).export_model()
    return made if isinstance(made, bytes) else made.getvalue()


def imported(core, path, settings):
    with open(path, "rb") as f:
        blob = f.read()
    try:
        return core.import_model(io.BytesIO(blob), "CPU", settings)
    except RuntimeError as e:
        if "different runtime configuration" in str(e):
            raise Refused("target_mismatch", "the blob is for another version of OpenVINO, or for instructions that this processor does not have: " + " ".join(str(e).split())[-300:]) from None
        raise
