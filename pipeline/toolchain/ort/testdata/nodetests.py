"""ONNX's backend node tests, generated from the onnx package, as the runner of engines takes
them: nodetests.py FOLDER COUNT SEED. COUNT 0 is all, and a
name in its place is that test.

Leaves for each test NAME/model.onnx, and case-N.safetensors and want-N.safetensors for each of its data
sets, and index.json: what ONNX Runtime's own Python and ONNX's evaluator say of each.
"""

import json
import os
import random
import struct
import sys
import warnings

import ml_dtypes
import numpy
import onnx
import onnxruntime
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")
WORDS = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32",
    "uint64": "U64", "float16": "F16", "float32": "F32", "float64": "F64", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}
# Types of numpy that stand for one that numpy does not have.
OTHERS = {"bfloat16": onnx.TensorProto.BFLOAT16, "float8_e4m3fn": onnx.TensorProto.FLOAT8E4M3FN, "float8_e5m2": onnx.TensorProto.FLOAT8E5M2}


def plain(value):
    """A value of a data set, which can be a tensor as ONNX stores it."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return numpy.asarray(value) if isinstance(value, numpy.generic) else value


def unfit(case):
    """Why the runner cannot be given a test; empty where it can."""
    values = [*case.model.graph.input, *case.model.graph.output]
    kinds = {v.type.WhichOneof("value") for v in values} - {"tensor_type"}
    if kinds:
        return "has a value of type " + sorted(kinds)[0].removesuffix("_type")
    for inputs, outputs in case.data_sets:
        for array in (*inputs, *outputs):
            if not isinstance(array, (numpy.ndarray, numpy.generic)):
                return f"has a value of type {type(array).__name__}"
            if str(array.dtype) not in WORDS:
                return "has text" if array.dtype.kind in "OUS" else f"has elements of type {array.dtype}"
    return ""


def write(path, names, arrays):
    """A safetensors file of one case: each tensor with a case dimension in front."""
    header, blocks, offset = {}, [], 0
    for name, array in zip(names, arrays):
        data = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": WORDS[str(array.dtype)], "shape": [1, *array.shape], "data_offsets": [offset, offset + len(data)]}
        blocks.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def same(wants, gots, rtol, atol):
    """Empty, or how outputs differ from those that are wanted."""
    for want, got in zip(wants, gots):
        if isinstance(want, list):
            text = same(want, got, rtol, atol) if len(want) == len(got) else "another number of tensors"
            if text:
                return text
            continue
        if want is None or got is None:
            if (want is None) != (got is None):
                return "a value where none is wanted, or none where one is"
            continue
        want, got = numpy.asarray(want), numpy.asarray(got)
        if want.shape != got.shape:
            return f"shape {list(got.shape)} for {list(want.shape)}"
        if want.dtype != got.dtype:
            return f"type {got.dtype} for {want.dtype}"
        if want.dtype.kind in "OUS":
            if not numpy.array_equal(want, got):
                return "other text"
            continue
        a, b = want.astype(numpy.float64), got.astype(numpy.float64)
        wrong = ~numpy.isclose(b, a, rtol=rtol, atol=atol, equal_nan=True)
        if wrong.any():
            return f"{int(wrong.sum())} of {wrong.size} elements, such as {b[wrong].flat[0]:g} for {a[wrong].flat[0]:g}"
    return ""


def verdict(case, run):
    """pass, "fail: how" or "error: why"."""
    try:
        for inputs, outputs in case.data_sets:
            differs = same(outputs, run(inputs), case.rtol, case.atol)
            if differs:
                return "fail: " + differs
    except Exception as e:
        return f"error: {type(e).__name__}: {' '.join(str(e).split())[:160]}"
    return "pass"


def by_runtime(case, level):
    def run(inputs):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level, options.log_severity_level = level, 4
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [i.name for i in case.model.graph.input]
        feed = {n: v for n, v in zip(names, inputs) if v is not None}
        known = all(str(getattr(v, "dtype", "")) not in OTHERS for v in inputs)
        if known and all(v.type.tensor_type.elem_type not in OTHERS.values() for v in case.model.graph.output):
            return session.run(None, feed)
        values = {n: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(v, OTHERS[str(v.dtype)]) if str(v.dtype) in OTHERS
                  else onnxruntime.OrtValue.ortvalue_from_numpy(v) for n, v in feed.items()}
        return [as_numpy(v) for v in session.run_with_ort_values(None, values)]

    return verdict(case, run)


def as_numpy(value):
    """An output; ONNX Runtime knows no numpy type for some."""
    for name, code in OTHERS.items():
        if value.element_type() == code:
            raw = numpy.from_dlpack(Packed(value._get_c_value()))
            return raw.view(getattr(ml_dtypes, name))
    return value.numpy()


class Packed:
    """A value of ONNX Runtime for numpy.from_dlpack."""

    def __init__(self, value):
        self.value = value

    def __dlpack__(self, **_):
        return self.value.to_dlpack()

    def __dlpack_device__(self):
        return (1, 0)


def by_evaluator(case):
    from onnx.reference import ReferenceEvaluator

    names = [i.name for i in case.model.graph.input]
    return verdict(case, lambda inputs: ReferenceEvaluator(case.model).run(None, dict(zip(names, inputs))))


def main(folder, count, seed):
    cases = sorted(collect_testcases(None), key=lambda c: c.name)
    if not count.isdigit():
        cases = [c for c in cases if c.name == count]
    elif int(count):
        cases = sorted(random.Random(seed).sample(cases, int(count)), key=lambda c: c.name)
    for case in cases:
        case.data_sets = [tuple([plain(v) for v in side] for side in pair) for pair in case.data_sets]
    levels = onnxruntime.GraphOptimizationLevel
    index = []
    for case in cases:
        entry = {
            "name": case.name, "rtol": case.rtol, "atol": case.atol, "sets": len(case.data_sets), "unfit": unfit(case),
            "runtime": by_runtime(case, levels.ORT_DISABLE_ALL), "evaluator": by_evaluator(case),
        }
        index.append(entry)
        if entry["unfit"]:
            continue
        to = os.path.join(folder, case.name)
        os.makedirs(to)
        onnx.save(case.model, os.path.join(to, "model.onnx"))
        for n, (inputs, outputs) in enumerate(case.data_sets):
            write(os.path.join(to, f"case-{n}.safetensors"), [i.name for i in case.model.graph.input], inputs)
            write(os.path.join(to, f"want-{n}.safetensors"), [o.name for o in case.model.graph.output], outputs)
    with open(os.path.join(folder, "index.json"), "w", encoding="utf-8") as f:
        json.dump({"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__, "tests": index}, f)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
