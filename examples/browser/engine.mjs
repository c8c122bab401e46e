// Runs an engine of onnxruntime-web that `mlpromote pull` wrote, in a browser.

// openEngine loads the engine of a folder. ort is the module of onnxruntime-web; provider is "wasm" or "webgpu".
// With sha256, the bytes of the model must have that digest: a page from your own server can name the digest of the
// engine that was promoted, wherever the engine itself comes from.
export async function openEngine(ort, folder, { provider = "wasm", threads = 1, sha256 } = {}) {
  const response = await fetch(new URL("model.onnx", folder));
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
  const model = new Uint8Array(await response.arrayBuffer());
  if (sha256 && (await digestOf(model)) !== sha256) throw new Error(`${response.url}: its bytes are not those of sha256:${sha256}`);
  ort.env.wasm.numThreads = threads; // more than 1 needs a page that is isolated across origins
  return ort.InferenceSession.create(model, { executionProviders: [provider] });
}

async function digestOf(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)); // pages of https and of localhost have it
  return [...digest].map((b) => b.toString(16).padStart(2, "0")).join("");
}

const kinds = {
  F32: ["float32", Float32Array], F64: ["float64", Float64Array], I64: ["int64", BigInt64Array], I32: ["int32", Int32Array],
  I8: ["int8", Int8Array], U8: ["uint8", Uint8Array], BOOL: ["bool", Uint8Array],
};

// readCases reads a safetensors file whose tensors have the cases as their first dimension.
export function readCases(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const cases = {};
  for (const [name, about] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [type, Kind] = kinds[about.dtype] ?? [];
    if (!Kind) throw new Error(`${name}: cases of ${about.dtype} are not read here`);
    const [begin, end] = about.data_offsets;
    cases[name] = { type, shape: about.shape, data: new Kind(buffer.slice(8 + length + begin, 8 + length + end)) };
  }
  return cases;
}

// runCases runs the engine on each case alone, and returns the outputs of each, by name, with the time of each run.
export async function runCases(ort, engine, cases) {
  const [first] = engine.inputNames;
  const count = cases[first].shape[0];
  const outputs = [];
  const milliseconds = [];
  for (let i = 0; i < count; i++) {
    const feeds = {};
    for (const name of engine.inputNames) {
      const { type, shape, data } = cases[name];
      const size = data.length / count;
      feeds[name] = new ort.Tensor(type, data.slice(i * size, (i + 1) * size), [1, ...shape.slice(1)]);
    }
    const began = performance.now();
    const found = await engine.run(feeds);
    milliseconds.push(performance.now() - began);
    outputs.push(Object.fromEntries(engine.outputNames.map((name) => [name, Array.from(found[name].data, Number)])));
  }
  return { outputs, milliseconds };
}
