"""What every driver in Python has in common: the protocol mlpromote.driver/v1.

A driver reads one request from standard input, does one job, leaves its files below
out_dir and the response where the request says. What it prints is a log.
"""

import errno
import hashlib
import json
import logging
import os
import platform
import sys

PROTOCOL = "mlpromote.driver/v1"


class Refused(Exception):
    """A job that cannot be done, with the protocol's code for why, and the fields of its
    error that are known: op, dtype, engine, shard, row and case."""

    def __init__(self, code, message, **subject):
        super().__init__(message)
        self.code, self.protocol_subject = code, subject


def concerning(e, **subject):
    """Adds to any exception fields of the protocol's error. Those that it has stay."""
    e.protocol_subject = {**subject, **subject_of(e)}
    return e


def subject_of(e):
    return {name: value for name, value in getattr(e, "protocol_subject", {}).items() if value is not None}


def options_of(request, defaults, choices=None):
    """The options with their defaults, every name and value checked. An option has the
    type of its default; choices has the values of those that have few."""
    given = request.get("options") or {}
    for name, value in given.items():
        if name not in defaults:
            raise Refused("bad_input", f"option {name!r}: there are {', '.join(sorted(defaults)) or 'none'}")
        if name in (choices or {}) and value not in choices[name]:
            raise Refused("bad_input", f"option {name} is {value!r}: want one of {', '.join(map(str, choices[name]))}")
        want = type(defaults[name])
        if want is float and type(value) is int:
            value = given[name] = float(value)
        if type(value) is not want:
            raise Refused("bad_input", f"option {name} is {value!r}: want a {want.__name__}")
        if want is list and not all(isinstance(v, str) for v in value):
            raise Refused("bad_input", f"option {name}: want a list of names")
    return {**defaults, **given}


def inputs_of(request, role):
    """The input files of a role, by name."""
    return sorted((i for i in request["inputs"] if i["role"] == role), key=lambda i: i["name"])


def model_of(request, suffix=".onnx"):
    """The path of the one input of role model that ends in suffix."""
    found = [i for i in inputs_of(request, "model") if i["name"].endswith(suffix)]
    if len(found) != 1:
        raise Refused("bad_input", f"{len(found)} inputs of role model end in {suffix}, expected one")
    return found[0]["path"]


def output_path(request, name):
    """Where an output of that name goes; its folder is made."""
    path = os.path.join(request["out_dir"], *name.split("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def write(request, name, content):
    with open(output_path(request, name), "wb") as f:
        f.write(content)


def listing(out_dir):
    """Every file below out_dir with its size and digest."""
    found = []
    for folder, _, names in os.walk(out_dir):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                digest = hashlib.file_digest(f, "sha256").hexdigest()
            relative = os.path.relpath(path, out_dir).replace(os.sep, "/")
            found.append({"path": relative, "size": os.path.getsize(path), "sha256": digest})
    return sorted(found, key=lambda f: f["path"])


def versions(*names):
    """The result of probe: versions of installed packages, and of Python."""
    from importlib import metadata

    return {"tool": {**{n: metadata.version(n) for n in names}, "python": platform.python_version()}}


# What to do about an exception of the tool in a step that makes files; a run names the engine and the case instead.
REMEDIES = {
    "import": "export the model again, with other versions or fewer operators of its own",
    "quantize": "leave nodes in full precision (exclude), or take another method or tool",
    "compress": "leave layers out, or take another method",
    "compile": "take another variant or another toolchain for this target",
}


def explain(e, kinds, verb=None):
    """The error of the protocol for an exception of a verb. kinds has codes by the name of a class,
    since classes of tools exist only where the tool can be imported."""
    error = {**subject_of(e), **coded(e, kinds)}
    if verb in REMEDIES and error["message"].startswith(type(e).__name__ + ": "):
        node = node_of(e)
        at = f" at node {node.name!r} ({node.op_type})" if node else ""
        error["message"] = f"{verb} failed{at}: {error['message']}; {REMEDIES[verb]}, or report this to the makers of the tool"
    return error


def node_of(e):
    """The node of an ONNX graph that the tool was at, by the variables of the innermost function that has one; None if it is not known."""
    frames, found = e.__traceback__, None
    while frames:
        variables = frames.tb_frame.f_locals
        for node in (variables.get("node"), getattr(variables.get("self"), "node", None)):
            if all(isinstance(getattr(node, name, None), str) for name in ("name", "op_type")):
                found = node
        frames = frames.tb_next
    return found


def coded(e, kinds):
    if isinstance(e, Refused):
        return {"code": e.code, "message": str(e)}
    if isinstance(e, MemoryError) or isinstance(e, OSError) and e.errno in (errno.EFBIG, errno.ENOSPC, errno.ENOMEM):
        return {"code": "limit", "message": f"out of memory or space: {e}"}
    if isinstance(e, ImportError):
        return {"code": "unavailable", "message": f"the install is damaged: {e}"}
    return {"code": kinds.get(type(e).__name__, "tool_failed"), "message": f"{type(e).__name__}: {e}"}


def answer(request, verbs):
    if request.get("protocol") != PROTOCOL:
        raise Refused("bad_input", f"protocol {request.get('protocol')!r}: this driver speaks {PROTOCOL}")
    verb = verbs.get(request["verb"])
    if verb is None:
        raise Refused("bad_input", f"verb {request['verb']!r}: this driver has {', '.join(verbs)}")
    result = verb(request)
    return {"ok": True, "files": listing(request["out_dir"]), "result": result}


def main(verbs, kinds=None):
    """Answers the one request, by the function of its verb; gives the exit status."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    request = json.load(sys.stdin)
    try:
        response = answer(request, verbs)
    except Exception as e:  # whatever a tool throws becomes an answer
        if not isinstance(e, Refused):
            logging.exception("%s", request.get("verb"))
        response = {"ok": False, "error": explain(e, kinds or {}, request.get("verb"))}
    response.update(protocol=PROTOCOL, id=request.get("id"))
    with open(request["response_path"], "w", encoding="utf-8") as f:
        json.dump(response, f)
    return 0 if response["ok"] else 1
