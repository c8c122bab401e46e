"""What stand-ins of vendors' packages have in common. They tell each call to this module. If conversation.json lies beside it, each call has to be the
next one that is recorded there, and all of them have to come. MLPROMOTE_RECORD names a file to record into, for a person to compare with the vendor's
documentation; the sandbox has no such variable."""

import atexit
import json
import os
import sys

RECORD = os.environ.get("MLPROMOTE_RECORD")
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "conversation.json")
expected, told = None, []
if os.path.exists(PATH) and not RECORD:
    with open(PATH, encoding="utf-8") as f:
        expected = json.load(f)
print("this is a stand-in, and no vendor's package", file=sys.stderr)


class Wrong(BaseException):
    """A call that the vendor's package would not take, or that is not in the conversation. No handler of a runner catches it."""


def plain(value):
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, bytes):
        return "bytes"
    return getattr(value, "name", None) or type(value).__name__


def tell(call, *arguments, **named):
    line = [call, *map(plain, arguments), *([plain(named)] if named else [])]
    told.append(line)
    if expected is not None and (len(told) > len(expected) or expected[len(told) - 1] != line):
        want = expected[len(told) - 1] if len(told) <= len(expected) else "the end"
        raise Wrong(f"call {len(told)} is {json.dumps(line)}, and the conversation has {json.dumps(want)}")


def want(true, why):
    if not true:
        raise Wrong(why)


@atexit.register
def end():
    if RECORD:
        with open(RECORD, "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(line) for line in told) + "\n]\n")
    if expected is not None and len(told) > 0 and len(told) < len(expected):
        print(f"the conversation ends after {len(told)} of {len(expected)} calls: {json.dumps(expected[len(told)])} never came", file=sys.stderr)
        os._exit(70)
