"""Trees to ONNX: what importers of boosted trees have in common.

A tree is a list of nodes, the root first. A node is a Split or a Leaf; children are indices in
the list. Trees are checked before anything runs them: a child must be there, and belong to one
node alone.
"""

from protocol import Refused

BATCH, INPUT = "batch", "input"
OPSETS = {"": 17, "ai.onnx.ml": 3}  # which the compilers of all targets read
MAX_NODES = 20_000_000
# Of a TreeEnsembleRegressor, in the order of the rows that scores makes.
NODE_KEYS = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")


class Split:
    """Goes left where mode holds of the feature and the threshold, or the feature is missing and
    missing_left says so. mode is BRANCH_LT or another of ONNX."""

    __slots__ = ("feature", "mode", "threshold", "left", "right", "missing_left")

    def __init__(self, feature, mode, threshold, left, right, missing_left):
        self.feature, self.mode, self.threshold = feature, mode, threshold
        self.left, self.right, self.missing_left = left, right, missing_left


class Leaf:
    """Adds value to the score of the tree's target; a list of values to those of all targets."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def check(trees, targets, features):
    """Refuses trees that no runtime should be given."""
    total = 0
    for number, (target, nodes) in enumerate(trees):
        total += len(nodes)
        if not nodes or not 0 <= target < targets or total > MAX_NODES:
            raise Refused("bad_input", (
                f"tree {number} has {len(nodes)} nodes for score {target}: want one of {targets} scores, and at most {MAX_NODES} nodes of all trees"))
        seen, waiting = {0}, [0]
        while waiting:
            node = nodes[waiting.pop()]
            if isinstance(node, Leaf):
                continue
            if not 0 <= node.feature < features:
                raise Refused("bad_input", f"tree {number} asks for feature {node.feature}: the model has {features}")
            for child in (node.left, node.right):
                if not 0 <= child < len(nodes) or child in seen:
                    raise Refused("bad_input", (
                        f"tree {number} has {len(nodes)} nodes, and one of them leads to {child}, which is not there or is led to twice"))
                seen.add(child)
                waiting.append(child)


class Graph:
    """An ONNX graph that grows node by node."""

    def __init__(self, features, double=False):
        from onnx import TensorProto

        self.features, self.nodes, self.weights, self.outputs = features, [], [], []
        self.double, self.kind = double, TensorProto.DOUBLE if double else TensorProto.FLOAT

    def add(self, operator, inputs, domain="", **attributes):
        """Adds a node; gives the name of its result."""
        from onnx import helper

        name = f"{operator.lower()}_{len(self.nodes)}"
        results = [name, name + "_at"] if operator == "TopK" else [name]
        self.nodes.append(helper.make_node(operator, inputs, results, name=name, domain=domain, **attributes))
        return name

    def constant(self, array):
        from onnx import numpy_helper

        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def scores(self, rows, trees, targets):
        """The sum of all trees for each target, float32 [batch, targets]. Leaves are added in double
        precision if the graph is of such. Rows are float32, so thresholds are rounded to float32 too, in the
        direction that sends each float32 where the threshold itself sends it."""
        import numpy
        from onnx import helper

        check(trees, targets, self.features)
        table = {key: [] for key in NODE_KEYS}
        leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
        for tree, (target, nodes) in enumerate(trees):
            for at in reached(nodes):
                node, leaf = nodes[at], isinstance(nodes[at], Leaf)
                row = (tree, at, 0, 0.0, "LEAF", 0, 0, 0) if leaf else (
                    tree, at, node.feature, single(node.threshold, node.mode), node.mode, node.left, node.right, int(node.missing_left))
                for key, value in zip(table, row):
                    table[key].append(value)
                if not leaf:
                    continue
                values = enumerate(node.value) if isinstance(node.value, list) else [(target, node.value)]
                for to, value in values:
                    for key, entry in zip(leaves, (tree, at, to, value)):
                        leaves[key].append(entry)
        attributes = {f"nodes_{key}": value for key, value in table.items() if key != "values"}
        attributes.update({f"target_{key}": value for key, value in leaves.items() if key != "weights"})
        numbers = {"nodes_values": table["values"], "target_weights": leaves["weights"]}
        for key, values in numbers.items():
            if self.double:
                attributes[key + "_as_tensor"] = helper.make_tensor(key, self.kind, [len(values)], numpy.asarray(values, "f8"))
            else:
                attributes[key] = [float(v) for v in values]
        attributes.update(n_targets=targets, aggregate_function="SUM", post_transform="NONE")
        return self.add("TreeEnsembleRegressor", [rows], "ai.onnx.ml", **attributes)

    def output(self, name, result, shape, whole=False):
        """Calls a result so."""
        from onnx import TensorProto, helper

        kind = TensorProto.INT64 if whole else TensorProto.FLOAT
        for node in self.nodes:
            node.output[:] = [name if o == result else o for o in node.output]
            node.input[:] = [name if i == result else i for i in node.input]
        self.outputs.append(helper.make_tensor_value_info(name, kind, [BATCH, *shape]))

    def model(self):
        import onnx
        from onnx import TensorProto, helper

        taken = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [BATCH, self.features])
        graph = helper.make_graph(self.nodes, "model", [taken], self.outputs, self.weights)
        used = {n.domain for n in self.nodes} | {""}
        sets = [helper.make_opsetid(d, OPSETS[d]) for d in sorted(used)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=8, producer_name="mlpromote")
        onnx.checker.check_model(model, full_check=True)
        return model


def single(threshold, mode):
    """A threshold as float32. x <= t and x > t hold of the same float32 numbers x for t and for the largest float32 up to t; x < t
    and x >= t for t and for the smallest float32 from t on. No float32 equals a number that is none."""
    import numpy

    if mode == "BRANCH_EQ":
        return threshold
    with numpy.errstate(over="ignore"):
        near = numpy.float32(threshold)
    # As Python's floats, since numpy compares a float32 with one as two float32.
    if mode in ("BRANCH_LEQ", "BRANCH_GT") and float(near) > threshold:
        near = numpy.nextafter(near, numpy.float32(-numpy.inf))
    if mode in ("BRANCH_LT", "BRANCH_GTE") and float(near) < threshold:
        near = numpy.nextafter(near, numpy.float32(numpy.inf))
    return float(near)


def reached(nodes):
    """The indices of the nodes that the root leads to; some formats keep what was pruned."""
    waiting, found = [0], []
    while waiting:
        at = waiting.pop()
        found.append(at)
        if isinstance(nodes[at], Split):
            waiting += (nodes[at].right, nodes[at].left)
    return found


def two_classes(graph, second):
    """label and probabilities of a model that gives the probability of the second class [batch, 1]."""
    import numpy

    first = graph.add("Sub", [graph.constant(numpy.float32([1])), second])
    both = graph.add("Concat", [first, second], axis=1)
    above = graph.add("Greater", [second, graph.constant(numpy.float32([0.5]))])
    flat = graph.add("Squeeze", [above, graph.constant(numpy.int64([1]))])
    graph.output("label", graph.add("Cast", [flat], to=7), [], whole=True)
    graph.output("probabilities", both, [2])


def many_classes(graph, probabilities, classes):
    """label and probabilities of a model that gives those of all classes."""
    graph.output("label", graph.add("ArgMax", [probabilities], axis=1, keepdims=0), [], whole=True)
    graph.output("probabilities", probabilities, [classes])


class Engine:
    """What the framework itself predicts, under the names of the outputs of model.onnx: predict takes
    rows [batch, features] of numbers as the user gave them, and gives {name: array}."""

    any_numbers = True

    def __init__(self, features, outputs, predict):
        import numpy

        self.inputs, self.outputs, self.predict = {INPUT: (numpy.dtype("float32"), [-1, features])}, outputs, predict

    def run(self, feed):
        found = self.predict(feed[INPUT])
        return [found[name] for name in self.outputs]


def classified(probabilities):
    """label and probabilities of what a framework predicts: one number of a case, or one of each class."""
    import numpy

    found = numpy.asarray(probabilities)
    if found.ndim == 1 or found.shape[1] == 1:
        second = found.reshape(-1)
        # As float32 first: the classes are those of the numbers that are compared.
        second = second.astype(numpy.float32)
        return {"label": (second > 0.5).astype(numpy.int64), "probabilities": numpy.stack([1 - second, second], axis=1)}
    return {"label": found.argmax(axis=1).astype(numpy.int64), "probabilities": found.astype(numpy.float32)}
