// What a driver in JavaScript needs of the protocol mlpromote.driver/v1.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

export const PROTOCOL = "mlpromote.driver/v1";

// A job that cannot be done, with the protocol's code for why, and the fields of its error that are known: op, dtype, engine, shard, row
// and case.
export class Refused extends Error {
  constructor(code, message, subject = {}) {
    super(message);
    this.code = code;
    this.subject = subject;
  }
}

// The input files of a role, by name.
export function inputsOf(request, role) {
  return request.inputs.filter((i) => i.role === role).sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function write(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { flag: "wx" });
}

function* walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else yield path;
  }
}

// Every file below outDir with its size and digest.
function listing(outDir) {
  const found = [];
  for (const path of walk(outDir)) {
    const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
    found.push({ path: relative(outDir, path).split(sep).join("/"), size: statSync(path).size, sha256 });
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

// Answers the one request, by the function of its verb.
export async function main(verbs) {
  const request = JSON.parse(readFileSync(0, "utf8"));
  let response;
  try {
    if (request.protocol !== PROTOCOL) throw new Refused("bad_input", `protocol ${request.protocol}: this driver speaks ${PROTOCOL}`);
    const verb = verbs[request.verb];
    if (!verb) throw new Refused("bad_input", `verb ${request.verb}: this driver has ${Object.keys(verbs).join(", ")}`);
    const result = await verb(request);
    response = { ok: true, files: listing(request.out_dir), result };
  } catch (e) {
    if (!(e instanceof Refused)) console.error(e);
    response = { ok: false, error: { ...(e instanceof Refused ? { ...e.subject, code: e.code } : { code: "tool_failed" }), message: String(e.message ?? e) } };
  }
  writeFileSync(request.response_path, JSON.stringify({ ...response, protocol: PROTOCOL, id: request.id }));
  process.exit(response.ok ? 0 : 1);
}
