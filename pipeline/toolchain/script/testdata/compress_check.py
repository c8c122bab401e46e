"""Compresses small graphs of every kind and runs them before and after. Weights and inputs are small integers, so that sums are
exact and outputs can be equal bit for bit. The result says of each check what went wrong; empty for nothing."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from compress import compress  # noqa: E402
from protocol import Refused, main  # noqa: E402


def probe(_request):
    import numpy

    numbers = numpy.random.default_rng(7)
    failed = {}
    for check in (zero_channels, chains_that_end, fewest_first, fours, smallest, low_rank, low_rank_of_all, shared, subgraphs, old_inputs, large_amounts):
        try:
            failed[check.__name__] = "; ".join(check(numbers))
        except Exception as e:
            failed[check.__name__] = f"{type(e).__name__}: {e}"
    return {"tool": {}, "failed": failed}


def integers(numbers, *shape):
    return numbers.integers(-4, 5, shape).astype("float32")


def model(nodes, constants, inputs, outputs, ir=8):
    from onnx import TensorProto, helper, numpy_helper

    def values(of):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in of.items()]

    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), [numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir)


def node(op, inputs, output, name=None, **attributes):
    from onnx import helper

    return helper.make_node(op, inputs.split(), [output], name=name or output, **attributes)


def compressed(of, **options):
    """The model after a step, and what the step says."""
    import onnx

    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "model.onnx")
    onnx.save(of, path)
    request = {"inputs": [{"role": "model", "name": "model.onnx", "path": path}], "options": options, "out_dir": os.path.join(folder, "out")}
    said = compress(request)
    return onnx.load(os.path.join(folder, "out", "model.onnx")), said


def outputs(of, feed):
    import onnxruntime

    return onnxruntime.InferenceSession(of.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)


def sizes(of):
    return {i.name: tuple(i.dims) for i in of.graph.initializer}


def chains(numbers):
    """Graphs in which the first layer has 8 channels, of which 2 and 5 are zero, and something behind it: (name, model, feed, node)."""
    import numpy

    image, row = {"x": integers(numbers, 2, 3, 6, 6)}, {"x": integers(numbers, 3, 4)}

    def dead(array, axis=0):
        array = array.copy()
        numpy.moveaxis(array, axis, 0)[[2, 5]] = 0
        return array

    first = {"w": dead(integers(numbers, 8, 3, 3, 3)), "b": dead(integers(numbers, 8))}
    conv = node("Conv", "x w b", "a", "first", pads=[1] * 4)
    last = {"v": integers(numbers, 4, 8, 3, 3)}
    powers = {"scale": numpy.array([1, 2, 4, 1, 2, 4, 1, 2], "float32"), "offset": dead(integers(numbers, 8)), "mean": dead(integers(numbers, 8)),
              "variance": numpy.array([4, 1, 0.25, 4, 1, 0.25, 4, 1], "float32")}
    shape = {"x": ["n", 3, 6, 6]}
    for act in ("Relu", "LeakyRelu", "Neg", "Abs", "Identity"):
        extra = {"alpha": 0.5} if act == "LeakyRelu" else {}
        yield act, model([conv, node(act, "a", "r", **extra), node("Conv", "r v", "y")], {**first, **last}, shape, {"y": ["n", 4, 4, 4]}), image
    yield "BatchNormalization", model([conv, node("BatchNormalization", "a scale offset mean variance", "r", epsilon=0.0), node("Conv", "r v", "y")],
                                      {**first, **last, **powers}, shape, {"y": ["n", 4, 4, 4]}), image
    yield "Clip", model([conv, node("Clip", "a low high", "r"), node("Conv", "r v", "y")],
                        {**first, **last, "low": numpy.float32(-3).reshape(()), "high": numpy.float32(3).reshape(())}, shape, {"y": ["n", 4, 4, 4]}), image
    yield "constants", model([conv, node("Mul", "a m", "r"), node("Add", "s r", "t"), node("Div", "t d", "u"), node("Sub", "u o", "z"), node("PRelu", "z p", "q"), node("Conv", "q v", "y")],
                             {**first, **last, "m": integers(numbers, 8, 1, 1), "s": dead(integers(numbers, 1, 8, 1, 1), 1), "o": dead(integers(numbers, 8, 1, 1)), "d": numpy.full((), 2, "float32"),
                              "p": numpy.full((8, 1, 1), 0.5, "float32")}, shape, {"y": ["n", 4, 4, 4]}), image
    yield "pool and flatten", model([conv, node("MaxPool", "a", "r", kernel_shape=[2, 2], strides=[2, 2]), node("Flatten", "r", "f"), node("Gemm", "f g c", "y", transB=1)],
                                    {**first, "g": integers(numbers, 5, 72), "c": integers(numbers, 5)}, shape, {"y": ["n", 5]}), image
    yield "reshape", model([conv, node("Reshape", "a columns", "f"), node("MatMul", "f g", "y")],
                           {**first, "g": integers(numbers, 288, 5), "columns": numpy.array([-1, 288])}, shape, {"y": ["n", 5]}), image
    yield "mean", model([conv, node("ReduceMean", "a", "r", axes=[2, 3], keepdims=0), node("MatMul", "r g", "y")],
                        {**first, "g": integers(numbers, 8, 5)}, shape, {"y": ["n", 5]}), image
    yield "squeeze", model([conv, node("GlobalMaxPool", "a", "p"), node("Squeeze", "p axes", "r"), node("Gemm", "r g", "y")],
                           {**first, "g": integers(numbers, 8, 5), "axes": numpy.array([2, -1])}, shape, {"y": ["n", 5]}), image
    yield "depthwise", model([conv, node("Conv", "a w2 b2", "d", group=8, pads=[1] * 4), node("Relu", "d", "r"), node("ConvTranspose", "r v", "y")],
                             {**first, "w2": integers(numbers, 8, 1, 3, 3), "b2": dead(integers(numbers, 8)), "v": integers(numbers, 8, 4, 1, 1)}, shape, {"y": ["n", 4, 6, 6]}), image
    rows = {"x": ["n", 4]}
    yield "Gemm", model([node("Gemm", "x w b", "a", "first", transB=1, alpha=2.0, beta=0.5), node("Tanh", "a", "r"), node("Abs", "r", "s"), node("Sign", "s", "t"), node("Gemm", "t v", "y")],
                        {"w": dead(integers(numbers, 8, 4)), "b": dead(integers(numbers, 1, 8), 1), "v": integers(numbers, 8, 5)}, rows, {"y": ["n", 5]}), row
    yield "MatMul", model([node("MatMul", "x w", "a", "first"), node("Add", "a b", "s"), node("Relu", "s", "r"), node("MatMul", "r v", "y")],
                          {"w": dead(integers(numbers, 4, 8), 1), "b": dead(integers(numbers, 8)), "v": integers(numbers, 8, 5)}, {"x": ["n", 2, 4]}, {"y": ["n", 2, 5]}), {"x": integers(numbers, 3, 2, 4)}
    yield "constant nodes", lifted(model([node("MatMul", "x w", "a", "first"), node("MatMul", "a v", "y")],
                                         {"w": dead(integers(numbers, 4, 8), 1), "v": integers(numbers, 8, 5)}, rows, {"y": ["n", 5]})), row


def lifted(of):
    """The model with Constant nodes in place of initializers, as some exporters write them."""
    from onnx import helper

    constants = [helper.make_node("Constant", [], [i.name], value=i) for i in of.graph.initializer]
    nodes = [*constants, *of.graph.node]
    del of.graph.initializer[:], of.graph.node[:]
    of.graph.node.extend(nodes)
    return of


def zero_channels(numbers):
    """Channels that are all zero are those that go, and without them nothing changes."""
    import numpy

    for name, of, feed in chains(numbers):
        after, said = compressed(of, method="prune", pattern="channels", amount=0.25, nodes=["first"])
        if said["changed"][0]["channels"] != {"before": 8, "after": 6} or said["parameters"]["after"] >= said["parameters"]["before"]:
            yield f"{name}: {said}"
        for was, now in zip(outputs(of, feed), outputs(after, feed)):
            if not numpy.array_equal(was, now):
                yield f"{name}: outputs differ by {numpy.abs(was - now).max()}"


def chains_that_end(numbers):
    """A layer whose channels are needed whole is refused by name, with what needs them."""
    first = {"w": integers(numbers, 4, 4), "v": integers(numbers, 4, 4), "u": integers(numbers, 3, 4, 4)}
    mul = node("MatMul", "x w", "a", "first")
    shape = {"x": ["n", 4]}
    for reason, nodes, wanted in (
        ("Sigmoid r behind it", [mul, node("Sigmoid", "a", "r"), node("MatMul", "r v", "y")], {"y": ["n", 4]}),
        ("Softmax r behind it", [mul, node("Softmax", "a", "r"), node("MatMul", "r v", "y")], {"y": ["n", 4]}),
        ("is read by", [mul, node("Relu", "a", "r"), node("Add", "a r", "s"), node("MatMul", "s v", "y")], {"y": ["n", 4]}),
        ("Add s behind it", [mul, node("Add", "a x", "s"), node("MatMul", "s v", "y")], {"y": ["n", 4]}),
        ("are the output 'y'", [mul, node("Relu", "a", "y")], {"y": ["n", 4]}),
        ("are the output 'a'", [mul, node("MatMul", "a v", "y")], {"y": ["n", 4], "a": ["n", 4]}),
        ("is shared", [mul, node("MatMul", "a w", "y")], {"y": ["n", 4]}),
        ("MatMul y behind it", [mul, node("MatMul", "v a", "y")], {"y": [4, 4]}),
        ("MatMul y behind it", [mul, node("MatMul", "a u", "y")], {"y": [3, "n", 4]}),
    ):
        of = model(nodes, {k: v for k, v in first.items() if any(k in n.input for n in nodes)}, shape, wanted)
        try:
            compressed(of, method="prune", pattern="channels", amount=0.5, nodes=["first"])
            yield f"{reason}: not refused"
        except Refused as e:
            if "'first'" not in str(e) or reason.replace("is read by", "are read by").split(" ", 1)[1] not in str(e):
                yield f"{reason}: {e}"


def fewest_first(numbers):
    """Of equal channels those with the lowest numbers go."""
    import numpy

    weights = numpy.ones((4, 6), "float32") * numpy.array([1, 2, 1, 2, 1, 2], "float32")
    of = model([node("MatMul", "x w", "a", "first"), node("MatMul", "a v", "y")], {"w": weights, "v": numpy.ones((6, 2), "float32")}, {"x": ["n", 4]}, {"y": ["n", 2]})
    after, _ = compressed(of, method="prune", pattern="channels", amount=0.34)
    from onnx import numpy_helper

    kept = next(numpy_helper.to_array(i) for i in after.graph.initializer if i.name == "w")[0]
    if kept.tolist() != [2, 1, 2, 2] and kept.tolist() != [2, 2, 1, 2]:
        yield f"kept {kept}"
    if kept.tolist() == [2, 1, 2, 2]:
        yield "the channels with the highest numbers went"


def fours(numbers):
    """Of every four weights along the axis that is summed over at most two are not zero, and those that are left are the largest."""
    import numpy
    from onnx import numpy_helper

    cases = (("MatMul", (8, 5), 0, {}), ("MatMul", (2, 8, 5), 1, {}), ("Gemm", (8, 5), 0, {}), ("Gemm", (5, 8), 1, {"transB": 1}),
             ("Conv", (5, 8, 3, 3), 1, {}), ("ConvTranspose", (8, 5, 3, 3), 0, {}))
    for op, shape, axis, attributes in cases:
        weights = numbers.standard_normal(shape).astype("float32")
        image = "Conv" in op
        of = model([node(op, "x w", "y", **attributes)], {"w": weights}, {"x": [1, 8, 6, 6] if image else [3, 8]},
                   {"y": [None] * (4 if image else max(2, len(shape)))})
        after, said = compressed(of, method="prune", pattern="2:4")
        got = numpy.moveaxis(numpy_helper.to_array(after.graph.initializer[0]), axis, -1).reshape(-1, 4)
        was = numpy.moveaxis(weights, axis, -1).reshape(-1, 4)
        if ((got != 0).sum(axis=1) != 2).any() or ((got != 0) & (got != was)).any():
            yield f"{op} {shape}: other weights"
        if (numpy.abs(got).max(axis=1) != numpy.abs(was).max(axis=1)).any() or (numpy.abs(numpy.sort(numpy.abs(was))[:, 2:].sum(1) - numpy.abs(got).sum(1)) > 1e-6).any():
            yield f"{op} {shape}: not the largest are left"
        if said["zeros"] != {"before": 0, "after": weights.size // 2}:
            yield f"{op}: {said['zeros']}"
    left = model([node("MatMul", "w x", "y")], {"w": numbers.standard_normal((5, 8)).astype("float32")}, {"x": [8, 3]}, {"y": [5, 3]})
    got = numpy_helper.to_array(compressed(left, method="prune", pattern="2:4")[0].graph.initializer[0]).reshape(-1, 4)
    if ((got != 0).sum(axis=1) != 2).any():
        yield "weights on the left: other axis"


def smallest(numbers):
    """Unstructured pruning takes the amount of each layer, the smallest first, and of equal ones the first."""
    import numpy
    from onnx import numpy_helper

    weights = numpy.array([[1, -1, 3, -4], [1, 5, 1, 7]], "float32")
    of = model([node("MatMul", "x w", "y")], {"w": weights}, {"x": ["n", 2]}, {"y": ["n", 4]})
    for amount, want in ((0.25, [0, 0, 3, -4, 1, 5, 1, 7]), (0.29, [0, 0, 3, -4, 1, 5, 1, 7]), (0.5, [0, 0, 3, -4, 0, 5, 0, 7]), (0.625, [0, 0, 0, -4, 0, 5, 0, 7])):
        got = numpy_helper.to_array(compressed(of, method="prune", pattern="unstructured", amount=amount)[0].graph.initializer[0]).reshape(-1).tolist()
        if got != want:
            yield f"{amount}: {got}"


def low_rank(numbers):
    """A layer whose weights have rank 2 becomes two of that rank, and computes the same."""
    import numpy

    matrix, bias = integers(numbers, 20, 2) @ integers(numbers, 2, 30), integers(numbers, 30)
    graphs = {
        "MatMul": (model([node("MatMul", "x w", "y")], {"w": matrix}, {"x": [4, 20]}, {"y": [4, 30]}), (4, 20)),
        "MatMul of three": (model([node("MatMul", "x w", "y")], {"w": matrix}, {"x": [2, 4, 20]}, {"y": [2, 4, 30]}), (2, 4, 20)),
        "Gemm": (model([node("Gemm", "x w b", "y", alpha=0.5, beta=2.0, transA=1)], {"w": matrix, "b": bias}, {"x": [20, 4]}, {"y": [4, 30]}), (20, 4)),
        "Gemm turned": (model([node("Gemm", "x w b", "y", transB=1)], {"w": matrix.T.copy(), "b": bias}, {"x": [4, 20]}, {"y": [4, 30]}), (4, 20)),
        "Conv": (model([node("Conv", "x w b", "y", strides=[2, 2], pads=[1] * 4)], {"w": matrix.T.reshape(30, 20, 1, 1), "b": bias}, {"x": [1, 20, 5, 5]},
                       {"y": [1, 30, 4, 4]}), (1, 20, 5, 5)),
        "Conv of one dimension": (model([node("Conv", "x w", "y")], {"w": matrix.T.reshape(30, 20, 1)}, {"x": [1, 20, 5]}, {"y": [1, 30, 5]}), (1, 20, 5)),
    }
    for name, (of, shape) in graphs.items():
        feed = {"x": integers(numbers, *shape)}
        for options in ({"energy": 1.0}, {"rank": 2}):
            after, said = compressed(of, method="low-rank", **options)
            if said["changed"][0]["rank"] != 2 or len(after.graph.node) != 2:
                yield f"{name}: {said['changed']}"
            off = numpy.abs(outputs(of, feed)[0] - outputs(after, feed)[0]).max() / numpy.abs(outputs(of, feed)[0]).max()
            if off > 1e-5:
                yield f"{name}: off by {off}"
        one, two = (compressed(of, method="low-rank", rank=2)[0].SerializeToString(deterministic=True) for _ in range(2))
        if one != two:
            yield f"{name}: other bytes the second time"


def low_rank_of_all(numbers):
    """What would not be smaller stays, and is refused where nothing else is left."""
    matrix = numbers.standard_normal((6, 6)).astype("float32")
    of = model([node("MatMul", "x w", "a", "small"), node("MatMul", "a v", "y", "wide")], {"w": matrix, "v": numbers.standard_normal((6, 60)).astype("float32") * 0 + 1},
               {"x": [2, 6]}, {"y": [2, 60]})
    _, said = compressed(of, method="low-rank", rank=4)
    if [c["node"] for c in said["changed"]] != ["wide"] or [k["node"] for k in said["kept"]] != ["small"]:
        yield str(said)
    for options, want in (({"rank": 4, "nodes": ["small"]}, "makes it no smaller"), ({"rank": 4, "nodes": ["nowhere"]}, "no node 'nowhere'"),
                          ({"rank": 60}, "no layer of the model"), ({"rank": 1, "exclude": ["small", "wide"]}, "no layer of the model")):
        try:
            compressed(of, method="low-rank", **options)
            yield f"{options}: not refused"
        except Refused as e:
            if want not in str(e):
                yield f"{options}: {e}"


def shared(numbers):
    """Weights of two layers stay as they are."""
    of = model([node("MatMul", "x w", "a"), node("MatMul", "a w", "b"), node("MatMul", "b v", "y")], {"w": integers(numbers, 4, 4), "v": integers(numbers, 4, 4)},
               {"x": [2, 4]}, {"y": [2, 4]})
    for options in ({"method": "prune", "pattern": "2:4"}, {"method": "prune", "pattern": "unstructured", "amount": 0.5}, {"method": "low-rank", "rank": 1}):
        _, said = compressed(of, **options)
        if [c["node"] for c in said["changed"]] != ["y"] or len(said["kept"]) != 2 or "shared" not in said["kept"][0]["why"]:
            yield f"{options}: {said}"


def subgraphs(numbers):
    """What a subgraph reads stays as it is."""
    import numpy
    from onnx import TensorProto, helper

    def branch(name):
        return helper.make_graph([node("MatMul", "a v", name)], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4])])

    of = model([node("MatMul", "x w", "a", "first"), helper.make_node("If", ["yes"], ["y"], name="if", then_branch=branch("t"), else_branch=branch("e"))],
               {"w": integers(numbers, 4, 8), "v": integers(numbers, 8, 4), "yes": numpy.array(True)}, {"x": [2, 4]}, {"y": [2, 4]})
    try:
        compressed(of, method="prune", pattern="channels", amount=0.5)
        yield "not refused"
    except Refused as e:
        if "a subgraph" not in str(e):
            yield str(e)
    _, said = compressed(of, method="prune", pattern="2:4")
    if [c["node"] for c in said["changed"]] != ["first"]:
        yield str(said)


def old_inputs(numbers):
    """Initializers that are inputs too, as in files before IR version 4, are constants."""
    from onnx import TensorProto, helper

    of = model([node("MatMul", "x w", "a", "first"), node("MatMul", "a v", "y")], {"w": integers(numbers, 4, 8), "v": integers(numbers, 8, 5)}, {"x": [2, 4]}, {"y": [2, 5]}, ir=3)
    of.graph.input.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("w", [4, 8]), ("v", [8, 5])))
    after, _ = compressed(of, method="prune", pattern="channels", amount=0.5)
    if [v.name for v in after.graph.input] != ["x"] or sizes(after) != {"w": (4, 4), "v": (4, 5)}:
        yield f"{[v.name for v in after.graph.input]}, {sizes(after)}"


def large_amounts(numbers):
    """One channel stays whatever is asked for, and nothing is done where the amount is less than one."""
    of = model([node("MatMul", "x w", "a", "first"), node("MatMul", "a v", "y")], {"w": integers(numbers, 4, 8), "v": integers(numbers, 8, 5)}, {"x": [2, 4]}, {"y": [2, 5]})
    after, _ = compressed(of, method="prune", pattern="channels", amount=0.999)
    if sizes(after) != {"w": (4, 1), "v": (1, 5)}:
        yield str(sizes(after))
    for pattern in ("channels", "unstructured"):
        try:
            compressed(of, method="prune", pattern=pattern, amount=0.01)
            yield f"{pattern}: not refused"
        except Refused as e:
            if "less than one" not in str(e):
                yield str(e)


if __name__ == "__main__":
    sys.exit(main({"probe": probe}))
