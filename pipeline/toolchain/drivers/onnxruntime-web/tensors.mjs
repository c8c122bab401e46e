// Cases and outputs as safetensors files with a leading case dimension.
import { readFileSync } from "node:fs";
import { Refused, write } from "./protocol.mjs";

// As safetensors calls them, as the runtime does, and what holds them here.
const DTYPES = [
  ["F32", "float32", Float32Array], ["F64", "float64", Float64Array], ["F16", "float16", Uint16Array],
  ["I64", "int64", BigInt64Array], ["I32", "int32", Int32Array], ["I16", "int16", Int16Array], ["I8", "int8", Int8Array],
  ["U64", "uint64", BigUint64Array], ["U32", "uint32", Uint32Array], ["U16", "uint16", Uint16Array], ["U8", "uint8", Uint8Array],
  ["BOOL", "bool", Uint8Array],
];
const MAX_HEADER = 16 << 20;

const elements = (shape) => shape.reduce((n, d) => n * d, 1);

// The tensors of a file: {name: {type, shape, array}}, checked against its size.
export function readShard(item) {
  const file = readFileSync(item.path);
  const length = file.length >= 8 ? Number(file.readBigUInt64LE(0)) : file.length;
  if (length > Math.min(file.length - 8, MAX_HEADER)) throw new Refused("bad_input", `${item.name}: this is no safetensors file, or it is cut short`);
  let header;
  try {
    header = JSON.parse(file.toString("utf8", 8, 8 + length));
  } catch (e) {
    throw new Refused("bad_input", `${item.name}: its header is no JSON: ${e.message}`);
  }
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    tensors[name] = tensorOf(item.name, name, entry, file, 8 + length);
  }
  return tensors;
}

function tensorOf(shard, name, entry, file, base) {
  const known = DTYPES.find(([word]) => word === entry?.dtype);
  const [begin, end] = entry?.data_offsets ?? [];
  const shape = entry?.shape;
  const whole = (n) => Number.isSafeInteger(n) && n >= 0;
  if (!known || !Array.isArray(shape) || !shape.length || ![...shape, begin, end].every(whole)) {
    throw new Refused("bad_input", `${shard}: tensor ${name} is ${entry?.dtype} ${shape}: no tensor that can be read, or without a case dimension`);
  }
  const [, type, Kind] = known;
  if (end - begin !== elements(shape) * Kind.BYTES_PER_ELEMENT || base + end > file.length) {
    throw new Refused("bad_input", `${shard}: tensor ${name} lies outside its file`);
  }
  const bytes = file.buffer.slice(file.byteOffset + base + begin, file.byteOffset + base + end);
  return { type, shape, array: new Kind(bytes) };
}

// One case of a tensor for an input of this rank; batched where the case dimension stays.
export function rowOf(tensor, rank, index) {
  const inner = tensor.shape.slice(1);
  const size = elements(inner);
  const batched = tensor.shape.length === rank;
  return { shape: batched ? [1, ...inner] : inner, array: tensor.array.slice(index * size, (index + 1) * size), batched };
}

// Writes {name: {type, shape, parts}}, by name; parts are arrays that follow each other.
export function writeShard(path, tensors) {
  const header = {};
  const blocks = [];
  let offset = 0;
  for (const name of Object.keys(tensors).sort()) {
    const { type, shape, parts } = tensors[name];
    const known = DTYPES.find(([, t]) => t === type);
    if (!known) throw new Refused("unsupported_format", `output ${name} is ${type}, which safetensors has no word for`);
    const begin = offset;
    for (const part of parts) {
      const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength);
      blocks.push(bytes);
      offset += bytes.length;
    }
    header[name] = { dtype: known[0], shape, data_offsets: [begin, offset] };
  }
  let text = JSON.stringify(header);
  text += " ".repeat((8 - (Buffer.byteLength(text) % 8)) % 8);
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  write(path, Buffer.concat([prefix, Buffer.from(text), ...blocks]));
}
