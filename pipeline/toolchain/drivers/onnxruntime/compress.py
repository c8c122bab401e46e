"""Compression: what makes another, smaller function of a model. Quantization is something else, and may come after."""

import os

from protocol import Refused, model_of, options_of, output_path, write

DEFAULTS = {"method": "", "pattern": "", "amount": 0.0, "rank": 0, "energy": 0.0, "nodes": [], "exclude": []}
CHOICES = {"method": ("prune", "low-rank"), "pattern": ("unstructured", "2:4", "channels")}
# The options that each method, and each pattern, has besides the names of nodes.
APPLY = {"prune": ("pattern", "amount"), "low-rank": ("rank", "energy")}
INLINE = 1 << 30  # bytes of a model above which its tensors go to a file of their own


def compress(request):
    options = chosen_options(request)
    # Before numpy is loaded: the order of sums, and with it the last bits, must not depend on the number of cores.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    import onnx

    import channels
    import lowrank
    import sparse
    from graphs import load
    from layers import Graph, each

    graph = Graph(load(model_of(request)))
    before = graph.counts()
    change = {"unstructured": sparse.unstructured, "2:4": sparse.in_fours, "channels": channels.remove}.get(options.get("pattern"), lowrank.factorize)
    changed, kept = each(graph, options, lambda layer: change(graph, layer, options))
    after = graph.counts()
    if change in (channels.remove, lowrank.factorize):
        del graph.graph.value_info[:]  # shapes of before
    if graph.model.ByteSize() < INLINE:
        onnx.checker.check_model(graph.model)
        write(request, "model.onnx", graph.model.SerializeToString(deterministic=True))
    else:
        onnx.save_model(graph.model, output_path(request, "model.onnx"), save_as_external_data=True, location="model.onnx.data")
    return {
        **{name: {"before": before[name], "after": after[name]} for name in before},
        "changed": changed, "kept": kept, "options": options,
    }


def chosen_options(request):
    chosen = options_of(request, DEFAULTS, CHOICES)
    if not chosen["method"]:
        raise Refused("bad_input", f"option method is missing: want one of {', '.join(CHOICES['method'])}")
    apply = ("method", "nodes", "exclude", *APPLY[chosen["method"]])
    for name in request.get("options") or {}:
        if name not in apply:
            raise Refused("bad_input", f"option {name} means nothing to method {chosen['method']}: it has {', '.join(apply)}")
    if chosen["method"] == "prune":
        check_prune(chosen)
    elif (chosen["rank"] > 0) == (chosen["energy"] > 0) or chosen["rank"] < 0 or not 0 <= chosen["energy"] <= 1:
        raise Refused("bad_input", f"rank is {chosen['rank']} and energy {chosen['energy']}: want a rank of at least 1, or an energy above 0 and at most 1")
    return {name: chosen[name] for name in DEFAULTS if name in apply}


def check_prune(chosen):
    if not chosen["pattern"]:
        raise Refused("bad_input", f"option pattern is missing: want one of {', '.join(CHOICES['pattern'])}")
    if chosen["pattern"] == "2:4" and chosen["amount"]:
        raise Refused("bad_input", "option amount means nothing to pattern 2:4, which always makes two of four zero")
    if chosen["pattern"] != "2:4" and not 0 < chosen["amount"] < 1:
        raise Refused("bad_input", f"option amount is {chosen['amount']}: want more than 0 and less than 1")
