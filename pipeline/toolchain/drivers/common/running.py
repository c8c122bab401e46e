"""The verb run for any tool: engines and cases to outputs and timings.

A driver gives load(path, threads, options), which opens an engine. options are those of its load
profile, by the runtime's own names: empty to leave all to the runtime, as a plain load does. They
are None for a fixed run, with so many threads, which gives the same bytes each time. A driver
whose runtime has execution providers takes those that an engine declares as a fourth argument:
names, or {"name": ..., "options": {...}} where something is asked of one. An engine has
    inputs    {name: (numpy dtype, shape)}, -1 for a dimension that the model leaves open
    outputs   the names of the outputs, in the model's order
    run(feed) {name: array} to a list of arrays in the order of outputs
    shares(feed)  who runs its nodes; where load takes providers
"""

import os
import resource
import time

from protocol import Refused, inputs_of
from tensors import check_fit, read_shard, write_shard

MAX_TIMINGS = 4_000_000


class Shard:
    """One file of cases, checked against the engines that will read it."""

    def __init__(self, item):
        self.name, self.tensors = item["name"], read_shard(item)
        self.count = 0

    def check(self, engine):
        missing = sorted(set(engine.inputs) - set(self.tensors))
        if missing:
            raise Refused("bad_input", f"cases {self.name}: no tensor for the input {', '.join(missing)}: there are {', '.join(sorted(self.tensors))}")
        counts = {self.tensors[name].shape[0] for name in engine.inputs}
        if len(counts) != 1 or 0 in counts:
            raise Refused("bad_input", f"cases {self.name}: its tensors have these numbers of cases: {sorted(counts)}")
        for name, (dtype, shape) in engine.inputs.items():
            check_fit(self.name, name, self.tensors[name], dtype, shape)
        self.count = counts.pop()

    def feed(self, engine, case):
        """One case, and whether some tensor kept its case dimension as a batch of one."""
        import numpy

        feed, batched = {}, False
        for name, (_, shape) in engine.inputs.items():
            tensor = self.tensors[name]
            keep = tensor.ndim == len(shape)
            batched = batched or keep
            feed[name] = numpy.ascontiguousarray(tensor[case : case + 1] if keep else tensor[case])
        return feed, batched


class Outputs:
    """Collects the outputs of one engine and writes a shard when its last case is there."""

    def __init__(self, folder):
        self.folder, self.rows = folder, []

    def append(self, shard, names, arrays, batched):
        import numpy

        row = {}
        for name, array in zip(names, arrays):
            array = numpy.array(array)  # a copy: a view does not keep alive what IREE returns
            row[name] = array if batched and array.ndim > 0 and array.shape[0] == 1 else array[numpy.newaxis]
        self.rows.append(row)
        if len(self.rows) < shard.count:
            return
        for name in names:
            if len({r[name].shape for r in self.rows}) != 1:
                raise Refused("bad_input", f"the outputs {name!r} of the cases of {shard.name} have different shapes")
        write_shard(os.path.join(self.folder, shard.name), {n: numpy.concatenate([r[n] for r in self.rows]) for n in names})
        self.rows = []


class Runner:
    """Engines that follow each other case by case."""

    def __init__(self, request, group, load):
        self.asked = request["run"]
        self.engines, self.outputs, self.results = [], [], []
        for item in group:
            began = time.perf_counter_ns()
            engine = open_engine(load, item, request["threads"], item.get("load"), *declared(item))
            took = time.perf_counter_ns() - began
            select(engine, item["id"], self.asked.get("select_outputs"))
            self.engines.append(engine)
            self.outputs.append(Outputs(os.path.join(self.asked["outputs_dir"], item["id"])))
            self.results.append({"id": item["id"], "load_ns": took, "timings_ns": []})
        self.shards = [Shard(item) for item in inputs_of(request, "cases")]
        if not self.shards:
            raise Refused("bad_input", "run: no cases: want safetensors files as inputs of role cases")
        for shard in self.shards:
            for engine in self.engines:
                shard.check(engine)
        for engine, item, result in zip(self.engines, group, self.results):
            if self.asked.get("shares") and declared(item):
                result["providers"] = engine.shares(self.shards[0].feed(engine, 0)[0])
        self.cases = [(shard, case) for shard in self.shards for case in range(shard.count)]
        self.rounds = max(self.asked.get("rounds") or 1, 1)
        if len(self.cases) * self.rounds > MAX_TIMINGS:
            raise Refused("bad_input", f"{self.rounds} rounds of {len(self.cases)} cases: want at most {MAX_TIMINGS} runs of each engine")

    def one(self, n, shard, case, keep):
        engine = self.engines[n]
        feed, batched = shard.feed(engine, case)
        began = time.perf_counter_ns()
        arrays = engine.run(feed)
        took = time.perf_counter_ns() - began
        if keep:
            chosen = [arrays[i] for i in engine.selected]
            self.outputs[n].append(shard, [engine.outputs[i] for i in engine.selected], chosen, batched)
        return took

    def run(self):
        for i in range(self.asked.get("warmup") or 0):
            for n in range(len(self.engines)):
                self.one(n, *self.cases[i % len(self.cases)], keep=False)
        order = list(range(len(self.engines)))
        for round_ in range(self.rounds):
            for shard, case in self.cases:
                for n in order:
                    self.results[n]["timings_ns"].append(self.one(n, shard, case, keep=round_ == 0))
            order.reverse()


def declared(item):
    """The execution providers of an engine, as arguments: none where it declares none."""
    return [item["providers"]] if item.get("providers") else []


def open_engine(load, item, threads, options, *providers):
    """An engine that the runtime does not take is a bad input, whatever it throws."""
    try:
        return load(item["path"], threads, options, *providers)
    except (Refused, MemoryError, ImportError):
        raise
    except Exception as e:
        message = " ".join(str(e).replace(item["path"], item["id"]).split())
        raise Refused("bad_input", f"engine {item['id']} does not load: {type(e).__name__}: {message[:500]}") from e


def number(options, name):
    """A number of a load profile; None where it is not there."""
    if name not in options:
        return None
    try:
        return int(options[name])
    except ValueError:
        raise Refused("bad_input", f"option {name} is {options[name]!r}: want a number") from None


def only(options, *known):
    """Refuses options that the driver does not know."""
    for name in options:
        if name not in known:
            raise Refused("bad_input", f"option {name}: want some of {', '.join(known)}")


def select(engine, name, only):
    """Notes which outputs are asked for; all where none is named."""
    for wanted in only or []:
        if wanted not in engine.outputs:
            raise Refused("bad_input", f"engine {name} has no output {wanted!r}: it has {', '.join(engine.outputs)}")
    engine.selected = [i for i, output in enumerate(engine.outputs) if not only or output in only]


def run(load):
    """The function of the verb."""

    def verb(request):
        asked = request.get("run")
        if not asked or not asked.get("engines"):
            raise Refused("bad_input", "run: no engines")
        groups = [asked["engines"]] if asked.get("order") == "interleaved" else [[e] for e in asked["engines"]]
        cases, results = 0, []
        for group in groups:
            runner = Runner(request, group, load)
            runner.run()
            cases, results = len(runner.cases), results + runner.results
        if len(results) == 1:
            results[0]["peak_rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"cases": cases, "engines": results}

    return verb
