"""Inner tensors of a graph: a list of them, and the graph with some as outputs.

A tensor that an engine has in 8 bits alone, since its runtime joined operators, is given in floating
point: the quantizer keeps the names, and its scale and zero point are initializers.
"""

from halves import needs
from protocol import Refused

# What the quantizer of ONNX Runtime calls the 8-bit form of a tensor, by format: qdq and qoperator.
EIGHT_BITS = ("_QuantizeLinear_Output", "_quantized")


def listed(model):
    """Every tensor that a node of the graph computes, in the order of the graph:
        name, node, operator
        inputs   those that it is computed of, without initializers
        dtype, shape  as far as shape inference knows them: "" and no shape otherwise
    A graph without constants has one entry for each output of a node."""
    import onnx

    graph = model.graph
    weights = {i.name for i in graph.initializer}
    known = types(model)
    quantized = eight_bits(graph)
    found, made = [], set()
    for n, node in enumerate(graph.node):
        inputs = sorted({name for name in needs(node) if name and name not in weights})
        if node.op_type == "Constant":
            weights.update(node.output)
            continue
        for name in node.output:
            if not name:
                continue
            about = {"node": node.name or f"{node.op_type}_{n}", "operator": node.op_type, "inputs": inputs}
            entry = {"name": name, **about, "dtype": "", "shape": None}
            value = known.get(name)
            if value is not None and value.HasField("tensor_type"):
                entry["dtype"] = onnx.TensorProto.DataType.Name(value.tensor_type.elem_type).lower()
                if value.tensor_type.HasField("shape"):
                    entry["shape"] = [d.dim_value if d.HasField("dim_value") else -1 for d in value.tensor_type.shape.dim]
            found.append(entry)
            made.add(name)
            if name in quantized:
                found.append({**entry, "name": quantized[name], "inputs": [name], "dtype": "float", "dequantized": True})
    return [entry for entry in found if not (entry.get("dequantized") and entry["name"] in made)]


def types(model):
    """Types by name; what inference cannot take, such as a runtime's own operators, is missing. Inference knows no shapes behind operators of
    ai.onnx.ml, and skl2onnx writes that all inner tensors are scalars: a runtime then makes room for one number. So these get their ranks here."""
    import onnx

    learned = [node for node in model.graph.node if node.domain == "ai.onnx.ml"]
    if not learned:
        return inferred(model)
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.value_info[:]
    whole.graph.value_info.extend(v for v in model.graph.value_info if v.type.tensor_type.shape.dim)
    while True:  # an operator takes its rank from the one before it
        found = inferred(whole)
        later = []
        for node in learned:
            count = ranks(node, found)
            if count is None:
                later.append(node)
                continue
            for i, (name, rank) in enumerate(zip(node.output, count)):
                value = found.get(name)
                if value is None or not value.tensor_type.shape.dim:
                    kind = value.tensor_type.elem_type if value is not None else 0
                    whole.graph.value_info.append(onnx.helper.make_tensor_value_info(name, kind or element(node, i, found), [None] * rank))
        if len(later) == len(learned):
            return {name: value for name, value in found.items() if name not in {i.name for i in model.graph.input}}
        learned = later


# Ranks of the outputs of operators of ai.onnx.ml that do not follow from their inputs.
RANKS = {
    "TreeEnsembleClassifier": (1, 2), "LinearClassifier": (1, 2), "SVMClassifier": (1, 2),
    "TreeEnsembleRegressor": (2,), "TreeEnsemble": (2,), "LinearRegressor": (2,), "SVMRegressor": (2,), "FeatureVectorizer": (2,),
}


def ranks(node, found):
    """How many dimensions the outputs of an operator of ai.onnx.ml have; nothing while those of its input are not known."""
    if node.op_type in RANKS:
        return RANKS[node.op_type]
    value = found.get(node.input[0]) if node.input else None
    if value is None or not value.tensor_type.HasField("shape"):
        return None
    rank = len(value.tensor_type.shape.dim)
    return (rank + 1,) if node.op_type == "OneHotEncoder" else (rank,)


def element(node, output, found):
    """The element type of an output of an operator of ai.onnx.ml."""
    from onnx import TensorProto

    words = {a.name for a in node.attribute}
    if node.op_type.endswith("Classifier") and output == 0:
        return TensorProto.STRING if "classlabels_strings" in words else TensorProto.INT64
    for name, kind in (("values_strings", TensorProto.STRING), ("values_int64s", TensorProto.INT64)):
        if node.op_type == "LabelEncoder" and name in words:
            return kind
    if node.op_type in ("Imputer", "Binarizer", "ArrayFeatureExtractor") and node.input[0] in found:
        return found[node.input[0]].tensor_type.elem_type or TensorProto.FLOAT
    return TensorProto.FLOAT


def inferred(model):
    import onnx

    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except onnx.shape_inference.InferenceError:
        graph = model.graph
    return {v.name: v.type for v in (*graph.input, *graph.value_info, *graph.output)}


def eight_bits(graph):
    """By the name of a tensor in 8 bits, that of the tensor that it is the 8-bit form of."""
    weights = {i.name for i in graph.initializer}
    found = {}
    for node in graph.node:
        for name in node.output:
            for suffix in EIGHT_BITS:
                whole = name.removesuffix(suffix)
                if whole != name and whole + "_scale" in weights and whole + "_zero_point" in weights:
                    found[name] = whole
    return found


def expose(model, names):
    """Makes these tensors outputs of the graph, besides those that it has."""
    import onnx

    graph = model.graph
    have = {o.name for o in graph.output}
    made = {name for node in graph.node for name in node.output}
    known = types(model)
    stored = {whole: name for name, whole in eight_bits(graph).items()}
    said = [v for v in graph.value_info if v.name not in names]
    del graph.value_info[:]
    graph.value_info.extend(said)
    for name in names:
        if name in have:
            continue
        if name not in made and name in stored:
            graph.node.append(onnx.helper.make_node("DequantizeLinear", [stored[name], name + "_scale", name + "_zero_point"], [name], name=f"show {name}"))
            graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
        elif name in made:
            value = onnx.ValueInfoProto(name=name)
            if name in known:
                value.type.CopyFrom(known[name])
            graph.output.append(value)
        else:
            raise Refused("bad_input", f"option expose: no node of the graph computes {name!r}")
