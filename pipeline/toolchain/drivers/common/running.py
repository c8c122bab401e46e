"""The verb run for any tool: engines and cases to outputs and timings.

A driver gives load(path, threads, options), which opens an engine. options are those of its load
profile, by the runtime's own names: empty to leave all to the runtime, as a plain load does. They
are None for a fixed run, with so many threads, which gives the same bytes each time. A driver
whose runtime has execution providers takes those that an engine declares as a fourth argument:
names, or {"name": ..., "options": {...}} where something is asked of one. An engine has
    inputs    {name: (numpy dtype, shape)}, -1 for a dimension that the model leaves open
    outputs   the names of the outputs, in the model's order
    run(feed) {name: array} to a list of arrays in the order of outputs
    any_numbers  True where it is a framework that takes numbers of other precision than those of its
              inputs: it gets the cases as the user gave them. Absent for engines
    shares(feed)  who runs its nodes; where load takes providers
    profile(feed, runs)  where its time goes, {"runs": ..., "operators": [...]}; absent where the
              runtime does not say it
"""

import gc
import os
import resource
import time

from protocol import Refused, concerning, inputs_of
from tensors import as_given, check_fit, is_text, read_shard, write_shard

MAX_TIMINGS = 4_000_000


class Shard:
    """One file of cases, checked against the engines that will read it."""

    def __init__(self, item):
        self.name, self.tensors = item["name"], read_shard(item)
        self.count = 0

    def check(self, engine):
        missing = sorted(set(engine.inputs) - set(self.tensors))
        if missing:
            raise Refused("bad_input", f"cases {self.name}: no tensor for the input {', '.join(missing)}: there are {', '.join(sorted(self.tensors))}", shard=self.name)
        counts = {self.tensors[name].shape[0] for name in engine.inputs}
        if len(counts) != 1 or 0 in counts:
            raise Refused("bad_input", f"cases {self.name}: its tensors have these numbers of cases: {sorted(counts)}", shard=self.name)
        for name, (dtype, shape) in engine.inputs.items():
            check_fit(self.name, name, self.tensors[name], dtype, shape, getattr(engine, "any_numbers", False))
        self.count = counts.pop()

    def feeder(self, engine):
        """A function that gives a case to an engine, and whether some tensor keeps its case dimension as a batch of one."""
        # Without the class of mapped files, whose rows take microseconds each to make.
        sources = [(name, as_given(self.tensors[name], dtype), self.tensors[name].ndim == len(shape) + is_text(dtype)) for name, (dtype, shape) in engine.inputs.items()]

        def feed(case):
            # With the ellipsis, a scalar is an array without dimensions, too.
            return {name: tensor[case : case + 1] if keep else tensor[case, ...] for name, tensor, keep in sources}

        return feed, any(keep for _, _, keep in sources)


class Outputs:
    """Collects the outputs of one engine and writes a shard when its last case is there."""

    def __init__(self, folder):
        import numpy

        self.folder, self.rows, self.count, self.numpy = folder, {}, 0, numpy

    def append(self, shard, names, arrays, batched):
        for name, array in zip(names, arrays):
            row = self.numpy.asarray(array)
            if batched and row.ndim > 0 and row.shape[0] == 1:
                row = row[0]
            if self.count == 0:
                self.rows[name] = self.numpy.empty((shard.count, *row.shape), row.dtype)
            rows = self.rows[name]
            if rows.shape[1:] != row.shape or rows.dtype != row.dtype:
                raise Refused("bad_input", f"the outputs {name!r} of the cases of {shard.name} have different shapes or types")
            rows[self.count] = row
        self.count += 1
        if self.count == shard.count:
            write_shard(os.path.join(self.folder, shard.name), self.rows)
            self.rows, self.count = {}, 0


class Runner:
    """Engines that follow each other case by case."""

    def __init__(self, request, group, load):
        self.asked, self.progress, self.told, self.done = request["run"], request.get("progress_path"), 0, 0
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
                result["providers"] = engine.shares(self.shards[0].feeder(engine)[0](0))
        if self.asked.get("profile"):
            for engine, result in zip(self.engines, self.results):
                if hasattr(engine, "profile"):
                    result["profile"] = engine.profile(self.shards[0].feeder(engine)[0](0), self.asked["profile"])
        self.feeders = {(shard.name, n): shard.feeder(engine) for shard in self.shards for n, engine in enumerate(self.engines)}
        self.cases = [(shard, row) for shard in self.shards for row in range(shard.count)]
        self.rounds = max(self.asked.get("rounds") or 1, 1)
        if len(self.cases) * self.rounds > MAX_TIMINGS:
            raise Refused("bad_input", f"{self.rounds} rounds of {len(self.cases)} cases: want at most {MAX_TIMINGS} runs of each engine")

    def one(self, n, case, keep):
        """Runs an engine on the case of a number. What it throws is an error about that case."""
        shard, row = self.cases[case]
        try:
            return self.timed(n, shard, row, keep)
        except Exception as e:
            raise concerning(e, engine=self.results[n]["id"], shard=shard.name, row=row, case=case)

    def timed(self, n, shard, row, keep):
        engine = self.engines[n]
        feed, batched = self.feeders[shard.name, n]
        inputs = feed(row)
        began = time.perf_counter_ns()
        if began - self.told > 1_000_000_000:
            self.tell()
            began = self.told = time.perf_counter_ns()
        self.done += 1
        arrays = engine.run(inputs)
        took = time.perf_counter_ns() - began
        if keep:
            self.outputs[n].append(shard, engine.chosen, [arrays[i] for i in engine.selected], batched)
        return took

    def tell(self):
        """Writes how many runs are done."""
        if self.progress:
            total = len(self.engines) * ((self.asked.get("warmup") or 0) + self.rounds * len(self.cases))
            with open(self.progress, "w", encoding="ascii") as f:
                f.write(f"{self.done} {total}\n")

    def run(self):
        for i in range(self.asked.get("warmup") or 0):
            for n in range(len(self.engines)):
                self.one(n, i % len(self.cases), keep=False)
        order = list(range(len(self.engines)))
        for round_ in range(self.rounds):
            for case in range(len(self.cases)):
                for n in order:
                    self.results[n]["timings_ns"].append(self.one(n, case, keep=round_ == 0))
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
    engine.chosen = [engine.outputs[i] for i in engine.selected]


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
            del runner  # the next group may need the memory
            gc.collect()
        if len(results) == 1:
            results[0]["peak_rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"cases": cases, "engines": results}

    return verb
