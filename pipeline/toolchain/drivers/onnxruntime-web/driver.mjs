// Driver for ONNX Runtime Web, protocol mlpromote.driver/v1: the WebAssembly that
// browsers run, under Node.js. Verbs:
//
// probe    versions of the tools.
// compile  role "model", one .onnx file without external data, to model.onnx: the model
//          itself, once the runtime has loaded it. Kernels are chosen where it runs.
// run      such engines on cases.
//
// The one argument is the folder of the install.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Refused, inputsOf, main, write } from "./protocol.mjs";
import { readShard, rowOf, writeShard } from "./tensors.mjs";

const modules = join(process.argv[2], "node_modules");
const MAX_TIMINGS = 4_000_000;

// threads is of the whole process; undefined leaves it to the runtime.
async function runtime(threads) {
  const ort = await import(pathToFileURL(join(modules, "onnxruntime-web", "dist", "ort.node.min.mjs")));
  if (threads !== undefined) ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  return ort;
}

function probe() {
  const version = (name) => JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")).version;
  return { tool: { "onnxruntime-web": version("onnxruntime-web"), node: process.versions.node } };
}

// load are the options of a load profile: empty to leave all to the runtime. It is undefined for a
// fixed run, which no optimizer has a part in.
async function open(ort, path, id, load) {
  const level = load ? load.graphOptimizationLevel : "disabled";
  const unknown = Object.keys(load ?? {}).find((name) => !["graphOptimizationLevel", "numThreads"].includes(name));
  if (unknown) throw new Refused("bad_input", `option ${unknown}: want some of graphOptimizationLevel, numThreads`);
  try {
    return await ort.InferenceSession.create(readFileSync(path), { executionProviders: ["wasm"], ...(level ? { graphOptimizationLevel: level } : {}) });
  } catch (e) {
    const op = /(\S+)\(-?\d+\) is not a registered function\/op/.exec(e.message);
    if (op) throw new Refused("unsupported_op", `${id}: ONNX Runtime Web has no operator ${op[1]}`);
    throw new Refused("bad_input", `${id}: ${e.message}`);
  }
}

async function compile(request) {
  const models = inputsOf(request, "model");
  if (models.length !== 1) throw new Refused("unsupported_format", `${models.length} files of role model: want one .onnx file without external data`);
  if (Object.keys(request.options ?? {}).length) throw new Refused("bad_input", `options ${Object.keys(request.options)}: there are none`);
  const session = await open(await runtime(1), models[0].path, models[0].name);
  await session.release();
  write(join(request.out_dir, "model.onnx"), readFileSync(models[0].path));
  return { engine: { format: "onnx", entry: "model.onnx" } };
}

// Engines that follow each other case by case.
class Runner {
  async load(ort, request, group) {
    this.ort = ort;
    this.asked = request.run;
    this.engines = [];
    for (const { id, path, load } of group) {
      const began = process.hrtime.bigint();
      const session = await open(ort, path, id, load);
      const engine = { id, session, rows: [], result: { id, load_ns: Number(process.hrtime.bigint() - began), timings_ns: [] } };
      const wanted = this.asked.select_outputs ?? [];
      for (const name of wanted) {
        if (!session.outputNames.includes(name)) throw new Refused("bad_input", `engine ${id} has no output ${name}: it has ${session.outputNames.join(", ")}`);
      }
      engine.outputs = session.outputNames.filter((name) => !wanted.length || wanted.includes(name));
      this.engines.push(engine);
    }
    this.shards = inputsOf(request, "cases").map((item) => ({ name: item.name, tensors: readShard(item) }));
    if (!this.shards.length) throw new Refused("bad_input", "run: no cases: want safetensors files as inputs of role cases");
    for (const shard of this.shards) for (const engine of this.engines) this.check(shard, engine);
    this.cases = this.shards.flatMap((shard) => Array.from({ length: shard.count }, (_, index) => ({ shard, index })));
    this.rounds = Math.max(this.asked.rounds ?? 1, 1);
    if (this.cases.length * this.rounds > MAX_TIMINGS) throw new Refused("bad_input", `${this.rounds} rounds of ${this.cases.length} cases: want at most ${MAX_TIMINGS} runs of each engine`);
  }

  check(shard, engine) {
    for (const input of engine.session.inputMetadata) {
      const tensor = shard.tensors[input.name];
      if (!tensor) throw new Refused("bad_input", `cases ${shard.name}: no tensor for the input ${input.name}: there are ${Object.keys(shard.tensors).join(", ")}`, { shard: shard.name });
      const one = tensor.shape.length === input.shape.length ? [1, ...tensor.shape.slice(1)] : tensor.shape.slice(1);
      const fits = one.length === input.shape.length && input.shape.every((want, i) => typeof want !== "number" || want < 0 || want === one[i]);
      if (tensor.type !== input.type || !fits) {
        throw new Refused("bad_input", `cases ${shard.name}: tensor ${input.name} is ${tensor.type} [${tensor.shape}]: the engine wants ${input.type} [${input.shape}] for each case`, { shard: shard.name });
      }
      if (!tensor.shape[0] || (shard.count ?? tensor.shape[0]) !== tensor.shape[0]) throw new Refused("bad_input", `cases ${shard.name}: its tensors have different numbers of cases, or none`, { shard: shard.name });
      shard.count = tensor.shape[0];
    }
  }

  // one runs an engine on the case of a number. What it throws is an error about that case.
  async one(engine, number, keep) {
    const { shard, index } = this.cases[number];
    try {
      return await this.timed(engine, shard, index, keep);
    } catch (e) {
      if (!(e instanceof Refused)) console.error(e);
      // The runtime finds out that it does not compute a node in float16 when the node runs.
      const half = /running (\w+) node\..*MLFloat16 data type is not supported/s.exec(e.message);
      const failed = e instanceof Refused ? e : new Refused(half ? "unsupported_op" : "tool_failed", String(e.message ?? e), half ? { op: half[1], dtype: "float16" } : {});
      failed.subject = { engine: engine.id, shard: shard.name, row: index, case: number, ...failed.subject };
      throw failed;
    }
  }

  async timed(engine, shard, index, keep) {
    const feeds = {};
    let batched = false;
    for (const input of engine.session.inputMetadata) {
      const row = rowOf(shard.tensors[input.name], input.shape.length, index);
      batched ||= row.batched;
      feeds[input.name] = new this.ort.Tensor(input.type, row.array, row.shape);
    }
    const began = process.hrtime.bigint();
    const outputs = await engine.session.run(feeds, engine.outputs);
    const took = Number(process.hrtime.bigint() - began);
    if (keep) this.keep(engine, shard, outputs, batched);
    return took;
  }

  keep(engine, shard, outputs, batched) {
    const row = {};
    for (const name of engine.outputs) {
      const { type, dims, data } = outputs[name];
      row[name] = { type, shape: batched && dims[0] === 1 ? dims.slice(1) : [...dims], data: data.slice() };
    }
    engine.rows.push(row);
    if (engine.rows.length < shard.count) return;
    const tensors = {};
    for (const name of engine.outputs) {
      const shapes = new Set(engine.rows.map((r) => r[name].shape.join()));
      if (shapes.size !== 1) throw new Refused("bad_input", `the outputs ${name} of the cases of ${shard.name} have different shapes`);
      const first = engine.rows[0][name];
      tensors[name] = { type: first.type, shape: [engine.rows.length, ...first.shape], parts: engine.rows.map((r) => r[name].data) };
    }
    writeShard(join(this.asked.outputs_dir, engine.id, ...shard.name.split("/")), tensors);
    engine.rows = [];
  }

  async run() {
    for (let i = 0; i < (this.asked.warmup ?? 0); i++) {
      for (const engine of this.engines) await this.one(engine, i % this.cases.length, false);
    }
    const order = [...this.engines];
    for (let round = 0; round < this.rounds; round++) {
      for (const number of this.cases.keys()) for (const engine of order) engine.result.timings_ns.push(await this.one(engine, number, round === 0));
      order.reverse();
    }
    for (const engine of this.engines) await engine.session.release();
  }
}

// threads are those of a fixed run, or what the load profiles say; undefined where they say nothing.
function threads(engines) {
  const counts = new Set(engines.map(({ load }) => (load ? load.numThreads : "1")));
  if (counts.size > 1) throw new Refused("bad_input", "engines with different numbers of threads in one process: run them apart");
  const [count] = counts;
  return count === undefined ? undefined : Number(count);
}

async function run(request) {
  const engines = request.run?.engines ?? [];
  if (!engines.length) throw new Refused("bad_input", "run: no engines");
  const ort = await runtime(threads(engines));
  const groups = request.run.order === "interleaved" ? [engines] : engines.map((e) => [e]);
  const result = { cases: 0, engines: [] };
  for (const group of groups) {
    const runner = new Runner();
    await runner.load(ort, request, group);
    await runner.run();
    result.cases = runner.cases.length;
    result.engines.push(...runner.engines.map((e) => e.result));
  }
  if (result.engines.length === 1) result.engines[0].peak_rss = process.resourceUsage().maxRSS * 1024;
  return result;
}

await main({ probe, compile, run });
