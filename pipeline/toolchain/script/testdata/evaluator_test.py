"""Tests of evaluator.py and operators.py, run by TestEvaluatorInPython with the folder of the
driver as the only argument."""

import sys
import unittest

sys.path.insert(0, sys.argv.pop())

import evaluator  # noqa: E402
import numpy  # noqa: E402
import operators  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402


def value(name, shape=("n",)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(*nodes, version=21, more=(), functions=(), shape=("n",)):
    graph = helper.make_graph(list(nodes), "graph", [value("x", shape)], [value("y", shape)])
    opsets = [helper.make_opsetid("", version), *(helper.make_opsetid(domain, 1) for domain in more)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def node(operator, domain="", **attributes):
    return helper.make_node(operator, ["x"], ["y"], domain=domain, **attributes)


class Missing(unittest.TestCase):
    def check(self, made, want):
        operators.normalize(made)
        self.assertEqual(operators.missing(made), want)

    def test_nothing(self):
        self.check(model(node("Relu")), [])

    def test_long_name_of_the_domain(self):
        made = model(node("Relu", domain="ai.onnx"))
        made.opset_import[0].domain = "ai.onnx"
        self.check(made, [])
        self.assertEqual(made.graph.node[0].domain, "")

    def test_other_domain(self):
        self.check(model(node("Relu"), node("Gelu", "com.microsoft"), more=["com.microsoft"]), ["com.microsoft::Gelu"])

    def test_no_such_operator(self):
        self.check(model(node("Straighten")), ["ai.onnx::Straighten"])

    def test_domain_without_version(self):
        self.check(model(node("Scaler", "ai.onnx.ml")), ["ai.onnx.ml::Scaler"])

    def test_operators_of_ml(self):
        self.check(model(node("Scaler", "ai.onnx.ml"), node("Scale", "ai.onnx.ml"), more=["ai.onnx.ml"]), ["ai.onnx.ml::Scale"])

    def test_chance(self):
        self.check(model(node("RandomNormalLike")), ["ai.onnx::RandomNormalLike"])

    def test_dropout_in_training(self):
        for training, want in ((False, []), (True, ["ai.onnx::Dropout"]), (None, ["ai.onnx::Dropout"])):
            made = model(helper.make_node("Dropout", ["x", "", "training"], ["y"]))
            if training is not None:
                made.graph.initializer.append(helper.make_tensor("training", TensorProto.BOOL, [], [training]))
            self.check(made, want)
        self.check(model(node("Dropout")), [])

    def test_subgraph(self):
        inner = helper.make_graph([helper.make_node("Gelu", ["x"], ["z"], domain="com.microsoft")], "inner", [], [value("z")])
        branch = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
        self.check(model(branch, more=["com.microsoft"]), ["com.microsoft::Gelu"])

    def test_functions(self):
        opsets = [helper.make_opsetid("", 12), helper.make_opsetid("com.microsoft", 1)]
        inner = [helper.make_node("Gelu", ["x"], ["z"], domain="com.microsoft"), helper.make_node("Softmax", ["z"], ["y"])]
        function = helper.make_function("own", "Twice", ["x"], ["y"], inner, opsets)
        made = model(node("Twice", "own"), more=["own"], functions=[function])
        self.check(made, ["ai.onnx::Softmax of version 12", "com.microsoft::Gelu"])

    def test_older_versions(self):
        for made, want in (
            (model(node("Resize"), version=10), ["ai.onnx::Resize of version 10"]),
            (model(node("Resize"), version=11), []),
            (model(node("Add", axis=1), version=6), ["ai.onnx::Add of version 6"]),  # it has no such attribute now
            (model(node("Add"), version=6), []),
            (model(node("GridSample"), version=16), ["ai.onnx::GridSample of version 16"]),  # its default mode has another name now
            (model(node("Softmax"), node("DequantizeLinear"), version=12), []),
        ):
            self.check(made, want)


class Older(unittest.TestCase):
    def test_softmax_takes_axes_for_one(self):
        x = numpy.arange(24, dtype=numpy.float32).reshape((2, 3, 4))
        for attributes, axis in (({}, 1), ({"axis": 0}, 0), ({"axis": 2}, 2), ({"axis": -1}, 2)):
            made = model(node("Softmax", **attributes), version=11, shape=(2, 3, 4))
            rows = x.reshape((int(numpy.prod(x.shape[:axis])), -1))
            want = numpy.exp(rows - rows.max(axis=1, keepdims=True))
            want = (want / want.sum(axis=1, keepdims=True)).reshape(x.shape)
            got = ReferenceEvaluator(made, new_ops=operators.older(11)).run(None, {"x": x})[0]
            numpy.testing.assert_allclose(got, want, rtol=1e-6)

    def test_newer_graphs_need_none(self):
        self.assertEqual(operators.older(19), [])
        self.assertEqual([c.__name__ for c in operators.older(13)], ["DequantizeLinear"])


class Clock:
    """A clock that only moves when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


class Slow:
    """An engine whose cases take these seconds."""

    inputs, outputs = {"x": (numpy.dtype("float32"), [1])}, ["y"]

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.ran = clock, iter(seconds), 0

    def run(self, feed):
        self.ran += 1
        self.clock.now += next(self.seconds)
        return [feed["x"]]


class Shard:
    name, count = "cases", 4

    def feeder(self, engine):
        return lambda case: {"x": numpy.zeros(1, numpy.float32)}, False


class Outputs:
    def append(self, *_):
        pass


class Budget(unittest.TestCase):
    def ran(self, *seconds):
        clock, timings = Clock(), []
        engine = Slow(clock, seconds)
        said = evaluator.run_cases(engine, [Shard()], Outputs(), evaluator.Budget(10, clock), timings)
        self.assertEqual(engine.ran, len(timings))
        return engine.ran, said.get("reason")

    def test_all(self):
        self.assertEqual(self.ran(2.5, 2.5, 2.5, 2.5), (4, None))

    def test_next_would_be_late(self):
        self.assertEqual(self.ran(4, 4, 4, 4), (2, "the next case would not end within 10 s"))

    def test_the_longest_counts(self):
        self.assertEqual(self.ran(6, 1, 1, 1)[0], 1)

    def test_first_in_any_case(self):
        self.assertEqual(self.ran(11, 1, 1, 1)[0], 1)


unittest.main()
