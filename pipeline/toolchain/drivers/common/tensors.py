"""Cases and outputs as safetensors files with a leading case dimension."""

import json
import os
import struct

from protocol import Refused

# As safetensors calls them, and as numpy does. Others have no numpy dtype.
DTYPES = {
    "BOOL": "?", "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8",
    "F16": "<f2", "F32": "<f4", "F64": "<f8",
}
MAX_HEADER = 16 << 20


def read_shard(item):
    """The tensors of a safetensors file, mapped into memory and checked against its size."""
    import numpy

    name, size = item["name"], os.path.getsize(item["path"])
    with open(item["path"], "rb") as f:
        prefix = f.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else size
        if length > min(size - 8, MAX_HEADER):
            raise Refused("bad_input", f"{name}: this is no safetensors file, or it is cut short", shard=name)
        text = f.read(length)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        entries = [(k, v["dtype"], v["shape"], v["data_offsets"]) for k, v in header.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Refused("bad_input", f"{name}: its header is no safetensors header: {e}", shard=name) from None
    tensors = {}
    for key, dtype, shape, offsets in entries:
        if dtype not in DTYPES:
            raise Refused("bad_input", f"{name}: tensor {key!r} is {dtype}: want one of {', '.join(DTYPES)}", shard=name)
        numbers = [*shape, *offsets]
        if len(offsets) != 2 or not all(type(n) is int and 0 <= n <= size for n in numbers):
            raise Refused("bad_input", f"{name}: tensor {key!r} has shape {shape} and offsets {offsets}", shard=name)
        want = numpy.dtype(DTYPES[dtype]).itemsize
        for n in shape:
            want *= n
        if not shape or offsets[1] - offsets[0] != want or 8 + length + offsets[1] > size:
            raise Refused("bad_input", f"{name}: tensor {key!r} of shape {shape} lies outside its file, or has no case dimension", shard=name)
        at = 8 + length + offsets[0]
        if want == 0:
            tensors[key] = numpy.zeros(shape, DTYPES[dtype])
        else:
            tensors[key] = numpy.memmap(item["path"], DTYPES[dtype], "r", at, tuple(shape))
    return tensors


def cases(shards, inputs):
    """One feed after the other: {input name: array}. A tensor of the input's rank keeps
    a leading dimension of 1, one of a rank more drops the case dimension."""
    for item in shards:
        tensors = read_shard(item)
        missing = sorted(set(inputs) - set(tensors))
        if missing:
            raise Refused("bad_input", f"{item['name']} has no tensor for the model's input {', '.join(missing)}: it has {', '.join(sorted(tensors))}", shard=item["name"])
        counts = {tensors[name].shape[0] for name in inputs}
        if len(counts) != 1:
            raise Refused("bad_input", f"{item['name']}: its tensors have different numbers of cases: {sorted(counts)}", shard=item["name"])
        for name, (dtype, shape) in inputs.items():
            check_fit(item["name"], name, tensors[name], dtype, shape)
        for case in range(counts.pop()):
            yield {name: one_case(tensors[name], case, dtype, shape)[0] for name, (dtype, shape) in inputs.items()}


def one_case(tensor, case, dtype, shape):
    """One case of an input, and whether it kept its case dimension as a batch of one."""
    import numpy

    keep = tensor.ndim == len(shape) + is_text(dtype)
    one = numpy.asarray(tensor[case : case + 1] if keep else tensor[case, ...])  # with the ellipsis, a scalar keeps its rank
    return text(one) if is_text(dtype) else one, keep


def is_text(dtype):
    """Inputs of text have the dtype object; cases have their bytes as uint8, along one more dimension."""
    import numpy

    return numpy.dtype(dtype) == object


def as_given(stored, dtype):
    """All cases of an input as a plain array, with text as such."""
    import numpy

    return text(stored) if is_text(dtype) else stored.view(numpy.ndarray)


def text(stored):
    import numpy

    packed = numpy.ascontiguousarray(stored).view(numpy.ndarray).view(f"S{stored.shape[-1]}")[..., 0]
    try:
        return numpy.char.decode(packed, "utf-8").astype(object)
    except UnicodeDecodeError as e:
        raise Refused("bad_input", f"text of the cases is no UTF-8: {e}") from None


def check_fit(shard, name, tensor, dtype, shape, any_numbers=False):
    """Refuses cases that are no inputs of the model. With any_numbers, an input of floats takes other numbers too."""
    import numpy

    got = tuple(tensor.shape)
    wide = is_text(dtype)
    of_case = got[:-1] if wide else got
    one = (1, *of_case[1:]) if len(of_case) == len(shape) else of_case[1:]
    fits = len(one) == len(shape) and all(want < 0 or want == have for want, have in zip(shape, one))
    held = any_numbers and not wide and numpy.dtype(dtype).kind == "f" and tensor.dtype.kind in "fiu"
    if tensor.dtype != ("uint8" if wide else dtype) and not held or not fits:
        dtype = "text" if wide else dtype
        raise Refused("bad_input", f"{shard}: tensor {name!r} is {tensor.dtype} {list(got)}: the model's input wants {dtype} {list(shape)} for each case", shard=shard)


def write_shard(path, tensors):
    """Writes {name: array}, by name. The header is padded so that data begins at a
    multiple of 8 bytes."""
    import numpy

    words = {numpy.dtype(dtype): word for word, dtype in DTYPES.items()}
    header, offset, blocks = {}, 0, []
    for name in sorted(tensors):
        array = numpy.ascontiguousarray(tensors[name])
        if array.dtype not in words:
            raise Refused("unsupported_format", f"output {name!r} is {array.dtype}, which safetensors has no word for")
        header[name] = {"dtype": words[array.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        blocks.append(array)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for array in blocks:
            f.write(array.tobytes())
