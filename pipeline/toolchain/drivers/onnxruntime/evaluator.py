"""The verb run: one ONNX model by ONNX's own definition, onnx.reference.ReferenceEvaluator.

Its result has besides what every run has
    evaluator  the version of ONNX
    missing    operators that it lacks; then nothing was run
    reason     why not all cases were run; absent where all were
Cases are run in the order of their shards as long as the next one is expected to end within
option seconds. Only shards whose cases were all run have outputs.
"""

import os
import signal
import time

import operators
from protocol import Refused, inputs_of, options_of
from running import Outputs, Shard

DEFAULTS = {"seconds": 60.0}


class Late(BaseException):
    """The time is over. No operator catches it, since it is not an Exception."""


class Budget:
    """Time for several runs of unknown length."""

    def __init__(self, seconds, clock=time.monotonic):
        self.seconds, self.clock, self.began, self.longest = seconds, clock, clock(), 0.0

    def fits(self):
        """Whether one more run ends in time, if it takes as long as the longest so far."""
        return self.clock() - self.began + self.longest <= self.seconds

    def run(self, work):
        began = self.clock()
        result = work()
        self.longest = max(self.longest, self.clock() - began)
        return result


class Engine:
    """A model as package running wants it."""

    def __init__(self, path):
        import onnx
        from google.protobuf.message import DecodeError
        from graphs import graph_inputs

        try:
            self.model = onnx.load(path)
        except DecodeError:
            raise Refused("bad_input", "the model is no ONNX file") from None
        operators.normalize(self.model)
        self.inputs = graph_inputs(self.model)
        self.outputs = [o.name for o in self.model.graph.output]

    def start(self):
        import onnx
        from onnx.reference import ReferenceEvaluator

        version = next((o.version for o in self.model.opset_import if o.domain == ""), onnx.defs.onnx_opset_version())
        self.evaluator = ReferenceEvaluator(self.model, new_ops=operators.older(version))

    def run(self, feed):
        return self.evaluator.run(None, feed)


def run(request):
    """The function of the verb."""
    import onnx

    seconds = options_of(request, DEFAULTS)["seconds"]
    if not 0.001 <= seconds <= 3600:
        raise Refused("bad_input", f"option seconds is {seconds}: want 0.001 to 3600")
    asked = request.get("run") or {}
    if len(asked.get("engines") or []) != 1:
        raise Refused("bad_input", "run: want one engine")
    item, budget = asked["engines"][0], Budget(seconds)
    timed = {"id": item["id"], "load_ns": 0, "timings_ns": []}
    said = {"evaluator": onnx.__version__}
    alarm = Alarm()
    signal.signal(signal.SIGALRM, alarm.ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            answer = evaluate(request, item, budget, timed)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (Exception, Late):  # modules that are being imported turn Late into errors of their own
        if not alarm.rang:
            raise
        n = len(timed["timings_ns"])
        answer = {"reason": f"case {n + 1} did not end within {seconds:g} s" if n else f"the first case did not end within {seconds:g} s"}
    return {"cases": len(timed["timings_ns"]), "engines": [timed], **said, **answer}


class Alarm:
    """Raises Late when the time is over, and remembers it."""

    def __init__(self):
        self.rang = False

    def ring(self, _signal, _frame):
        self.rang = True
        raise Late


def evaluate(request, item, budget, timed):
    """Runs cases; what it says besides. A failure of the evaluator is not one of the model."""
    began = time.perf_counter_ns()
    engine = Engine(item["path"])
    lacks = operators.missing(engine.model)
    if lacks:
        return {"missing": lacks}
    shards = [Shard(case) for case in inputs_of(request, "cases")]
    if not shards:
        raise Refused("bad_input", "run: no cases: want safetensors files as inputs of role cases")
    for shard in shards:
        shard.check(engine)
    try:
        engine.start()
        timed["load_ns"] = time.perf_counter_ns() - began
        return run_cases(engine, shards, Outputs(os.path.join(request["run"]["outputs_dir"], item["id"])), budget, timed["timings_ns"])
    except (Refused, MemoryError):
        raise
    except Exception as e:
        return {"reason": f"the evaluator failed: {type(e).__name__}: {' '.join(str(e).split())[:300]}"}


def run_cases(engine, shards, outputs, budget, timings):
    """Runs one case after the other while there is time, the first in any case."""
    for shard in shards:
        give, batched = shard.feeder(engine)
        for case in range(shard.count):
            if timings and not budget.fits():
                return {"reason": f"the next case would not end within {budget.seconds:g} s"}
            feed = give(case)
            began = time.perf_counter_ns()
            arrays = budget.run(lambda: engine.run(feed))
            outputs.append(shard, engine.outputs, arrays, batched)
            timings.append(time.perf_counter_ns() - began)
    return {}
