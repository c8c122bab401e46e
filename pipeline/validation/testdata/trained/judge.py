"""Measures what an engine does to the task of a model: judge.py KIND FOLDER OUTPUTS prints JSON.

OUTPUTS is a folder of safetensors with what an engine computed for the cases. Of the task:
  metric   its name; better is "more" or "less"; reference and engine are its values on the labels
  groups   the same for parts of the cases: classes, quarters, categories, halves of a picture
  changed  the share of answers that differ from the reference's
  state    the error of what a next run gets, relative to its spread; 0 without one
  finite   whether all is finite where the reference is; differs: whether a bit of any case differs
"""

import json
import pathlib
import struct
import sys

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "BOOL": "|b1", "U8": "|u1", "I8": "|i1"}


def safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return {name: np.frombuffer(data[8 + size :][t["data_offsets"][0] : t["data_offsets"][1]], TYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"}


def reference(folder, cases):
    """What the model computes, kept in the folder."""
    kept = folder / "reference.npz"
    if not kept.exists():
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.graph_optimization_level, options.intra_op_num_threads = ort.GraphOptimizationLevel.ORT_DISABLE_ALL, 1
        session = ort.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        found = session.run(None, {i.name: cases[i.name] for i in session.get_inputs()})
        np.savez(kept, **{o.name: v for o, v in zip(session.get_outputs(), found)})
    return dict(np.load(kept))


def share(right):
    return float(np.mean(right))


def task(metric, better, value, ref, engine, groups, changed, least=5):
    """value(outputs, rows) is the metric of some of the cases. Groups of fewer than `least` rows are left out."""
    rows = np.ones(len(next(iter(ref.values()))), bool)
    parts = {name: (value(ref, g), value(engine, g)) for name, g in groups.items() if g.sum() >= least}
    return {"metric": metric, "better": better, "reference": value(ref, rows), "engine": value(engine, rows),
            "groups": {n: v for n, v in parts.items() if v[0] is not None and v[1] is not None}, "changed": changed}


def classes(output, last=False):
    def judge(ref, engine, cases):
        labels = cases["label"].reshape(-1)
        answer = lambda o: o[output].reshape(len(labels), -1).argmax(1)
        groups = {f"class {k}": labels == k for k in np.unique(labels)}
        return task("accuracy", "more", lambda o, g: share(answer(o)[g] == labels[g]), ref, engine, groups, share(answer(ref) != answer(engine)))

    return judge


def overlap(ref, engine, cases):
    """Mean intersection over union of the classes; groups are classes, and classes in the upper and lower half."""
    labels, names = cases["label"], range(ref["mask"].shape[1])

    def each(o, k, rows):
        found, wanted = o["mask"].argmax(1)[:, rows] == k, labels[:, rows] == k
        union = (found | wanted).sum()
        return float((found & wanted).sum() / union) if union else None

    mean = lambda o: float(np.mean([each(o, k, slice(None)) for k in names]))
    groups = {f"class {k}{where}": (each(ref, k, rows), each(engine, k, rows)) for k in names
              for where, rows in (("", slice(None)), (" above", slice(0, 12)), (" below", slice(12, None)))}
    return {"metric": "mean IoU", "better": "more", "reference": mean(ref), "engine": mean(engine), "groups": groups,
            "changed": share(ref["mask"].argmax(1) != engine["mask"].argmax(1))}


def iou(a, b):
    w = np.clip(np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2]), 0, None)
    area = lambda x: (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
    both = w[..., 0] * w[..., 1]
    return both / np.maximum(area(a)[:, None] + area(b)[None] - both, 1e-9)


def precision(o, labels, kind, cases=None):
    """Average precision at an overlap of one half, of a class."""
    scores, hits, wanted = [], [], 0
    for i in range(len(labels)) if cases is None else np.flatnonzero(cases):
        boxes = labels[i][labels[i, :, 4] == kind][:, :4]
        wanted += len(boxes)
        mine = np.flatnonzero((o["classes"][i] == kind) & (o["scores"][i] > 0.01))
        mine = mine[np.argsort(-o["scores"][i][mine], kind="stable")]
        near = iou(o["boxes"][i][mine].astype("float64"), boxes.astype("float64"))
        free = np.ones(len(boxes), bool)
        for n, j in enumerate(mine):
            best = int((near[n] * free).argmax()) if free.any() else -1
            hit = best >= 0 and near[n, best] >= 0.5 and free[best]
            if hit:
                free[best] = False
            scores.append(float(o["scores"][i][j]))
            hits.append(hit)
    if not wanted:
        return None
    order = np.argsort(-np.array(scores), kind="stable")
    found = np.cumsum(np.array(hits)[order]) if hits else np.zeros(1)
    exact = found / np.arange(1, len(found) + 1)
    exact = np.maximum.accumulate(exact[::-1])[::-1]
    return float(np.mean([exact[found / wanted >= level].max(initial=0) for level in np.linspace(0, 1, 101)]))


def confident(o, i):
    keep = o["scores"][i] > 0.3
    return o["boxes"][i][keep].astype("float64"), o["classes"][i][keep]


def same(ref, engine, i):
    (a, ka), (b, kb) = confident(ref, i), confident(engine, i)
    if len(a) != len(b) or not np.array_equal(np.sort(ka), np.sort(kb)):
        return False
    near = (iou(a, b) > 0.7) & (ka[:, None] == kb[None])
    return bool(near.any(1).all() and near.any(0).all())


def boxes(ref, engine, cases):
    labels = cases["label"]
    mean = lambda o: float(np.mean([precision(o, labels, k) for k in range(3)]))
    groups = {f"class {k}": (precision(ref, labels, k), precision(engine, labels, k)) for k in range(3)}
    centre = (labels[:, :, :2] + labels[:, :, 2:4]) / 2
    for n, name in ((0, "left"), (1, "upper")):
        for low in (True, False):
            part = labels.copy()
            part[(centre[:, :, n] < 16) != low, 4] = -1
            both = [float(np.mean([recall(o, part, k) for k in range(3)])) for o in (ref, engine)]
            groups[f"found, {name if low else 'not ' + name}"] = tuple(both)
    changed = share([not same(ref, engine, i) for i in range(len(labels))])
    return {"metric": "mAP50", "better": "more", "reference": mean(ref), "engine": mean(engine), "groups": groups, "changed": changed}


def recall(o, labels, kind):
    hits = []
    for i in range(len(labels)):
        wanted = labels[i][labels[i, :, 4] == kind][:, :4].astype("float64")
        found, classes = confident(o, i)
        found = found[classes == kind]
        hits += [] if not len(wanted) else (iou(wanted, found) > 0.5).any(1).tolist() if len(found) else [False] * len(wanted)
    return np.mean(hits) if hits else 0.0


def area(risk, labels):
    """Area under the receiver operating characteristic, by ranks; None without both labels."""
    positive = labels == 1
    if not positive.any() or positive.all():
        return None
    values, at, counts = np.unique(risk, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[at]
    n = positive.sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (~positive).sum()))


def risks(ref, engine, cases):
    """The area under the curve. Groups: the frauds of a shop or country that the reference's threshold for a tenth of the cases finds."""
    labels, risk = cases["label"], lambda o: o["risk"][:, 0].astype("float64")
    threshold = np.quantile(risk(ref), 0.9)
    found = lambda o, g: share(risk(o)[g] >= threshold)
    groups = {f"{column} {k}": (cases[column] == k) & (labels == 1) for column in ("shop", "country") for k in np.unique(cases[column])}
    groups["all frauds"] = labels == 1
    of = {n: (found(ref, g), found(engine, g)) for n, g in groups.items() if g.sum() >= 5}
    changed = share((risk(ref) >= threshold) != (risk(engine) >= threshold))
    return {"metric": "AUC", "better": "more", "reference": area(risk(ref), labels), "engine": area(risk(engine), labels), "groups": of, "changed": changed}


def quarters(values):
    edges = np.quantile(values, (0.25, 0.5, 0.75))
    of = np.searchsorted(edges, values)
    return {f"quarter {q + 1}": of == q for q in range(4)}


def prices(ref, engine, cases):
    labels, of = cases["label"][:, 0].astype("float64"), lambda o: o["price"][:, 0].astype("float64")
    value = lambda o, g: share(abs(of(o) - labels)[g] / labels[g])
    return task("MAPE", "less", value, ref, engine, quarters(of(ref)), share(abs(of(engine) - of(ref)) > 0.1 * of(ref)))


def numbers(ref, engine, cases):
    labels, of = cases["label"].reshape(-1).astype("float64"), lambda o: o["y"].reshape(-1).astype("float64")
    value = lambda o, g: share(abs(of(o) - labels)[g])
    groups = {**quarters(of(ref)), **{f"code {k:g}": cases["x"][:, 2] == k for k in np.unique(cases["x"][:, 2])}}
    return task("MAE", "less", value, ref, engine, groups, share(abs(of(engine) - of(ref)) > 0.1 * of(ref).std()))


def tokens(ref, engine, cases):
    labels = cases["label"].reshape(-1)

    def log(o):
        z = o["logits"].reshape(len(labels), -1).astype("float64")
        z = z - z.max(1, keepdims=True)
        return (z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(len(labels)), labels]

    best = lambda o: o["logits"].reshape(len(labels), -1).argmax(1)
    groups = {f"token {k}": labels == k for k in np.unique(labels)}
    return task("perplexity", "less", lambda o, g: float(np.exp(min(-log(o)[g].mean(), 25))), ref, engine, groups, share(best(ref) != best(engine)), 15)


def neighbours(ref, engine, cases):
    """Recall at 1: the cases are looked for by the engine's embeddings among those of the reference, as stored ones are."""
    labels, stored = cases["label"], ref["embedding"].astype("float64")

    def nearest(o):
        match = o["embedding"].astype("float64") @ stored.T
        np.fill_diagonal(match, -np.inf)
        return match.argmax(1)

    groups = {f"identities {p}": labels % 5 == p for p in range(5)}
    return task("recall at 1", "more", lambda o, g: share((labels[nearest(o)] == labels)[g]), ref, engine, groups, share(nearest(ref) != nearest(engine)))


JUDGES = {
    "cnn": classes("logits"), "vit": classes("logits"), "text": classes("logits"), "audio": classes("logits"), "recurrent": classes("logits"),
    "trees": classes("probabilities"), "segmentation": overlap, "detection": boxes, "fraud": risks, "price": prices, "trees-regressor": numbers,
    "decoder": tokens, "embedding": neighbours,
}
STATES = {"recurrent": "new_state", "decoder": "present"}


def main(kind, folder, outputs):
    cases = {**np.load(folder / "cases.npz"), **np.load(folder / "truth.npz")}
    ref = reference(folder, cases)
    parts = [safetensors(p) for p in sorted(outputs.iterdir())]
    engine = {n: np.concatenate([p[n] for p in parts]).reshape(ref[n].shape) for n in ref}
    floats = [n for n in ref if ref[n].dtype.kind == "f"]
    finite = bool(all(np.isfinite(engine[n][np.isfinite(ref[n])]).all() for n in floats))
    differs = any(not np.array_equal(ref[n], engine[n], equal_nan=ref[n].dtype.kind == "f") for n in ref)
    clean = {n: np.nan_to_num(v, posinf=1e30, neginf=-1e30) if n in floats else v for n, v in engine.items()}
    made = JUDGES[kind](ref, clean, cases)
    made["state"] = 0.0
    if kind in STATES:
        wanted, found = (o[STATES[kind]].astype("float64") for o in (ref, clean))
        made["state"] = float(np.sqrt(np.mean((wanted - found) ** 2)) / wanted.std())
    print(json.dumps({**made, "finite": finite, "differs": differs}, default=float))


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
