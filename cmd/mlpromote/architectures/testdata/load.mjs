// Loads an engine with ONNX Runtime Web, and nothing of ours: load.mjs MODULES MODEL.onnx. On standard input is a
// list of feeds, {name: {type, dims, data}}, and on standard output comes what the outputs are for each.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const ort = await import(pathToFileURL(join(process.argv[2], "onnxruntime-web", "dist", "ort.node.min.mjs")));
ort.env.logLevel = "error";
const session = await ort.InferenceSession.create(readFileSync(process.argv[3]), { executionProviders: ["wasm"] });
const results = [];
for (const feed of JSON.parse(readFileSync(0, "utf8"))) {
  const inputs = {};
  for (const [name, { type, dims, data }] of Object.entries(feed)) {
    inputs[name] = new ort.Tensor(type, type === "int64" ? BigInt64Array.from(data, BigInt) : Float32Array.from(data), dims);
  }
  const outputs = await session.run(inputs);
  results.push(Object.fromEntries(session.outputNames.map((name) => [name, { dims: outputs[name].dims, data: Array.from(outputs[name].data) }])));
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
