"""Holds the thresholds of the ONNX form of scikit-learn's trees against those of the trees."""

import sys

sys.path[:0] = [sys.argv[1] + "/scikit-learn", sys.argv[1] + "/common"]

import numpy  # noqa: E402
from convert import convert  # noqa: E402
from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402
from sklearn.tree import DecisionTreeRegressor  # noqa: E402

random = numpy.random.default_rng(1)
rows = 1.7e9 + random.random((3000, 2)) * 1e5
wanted = (rows[:, 0] % 977) / 977 + (rows[:, 1] % 500) / 500


def thresholds(model):
    found = {a.name: a for n in model.graph.node for a in n.attribute if a.name in ("nodes_values", "nodes_modes")}
    pairs = zip(found["nodes_values"].floats, found["nodes_modes"].strings)
    return numpy.sort([value for value, mode in pairs if mode == b"BRANCH_LEQ"])


def check(what, got, given):
    given = numpy.sort(given)
    assert len(got) == len(given) > 100, (what, len(got), len(given))
    above = numpy.float32(given).astype(float) > given
    assert above.sum() > 50 and (got <= given).all() and (numpy.nextafter(numpy.float32(got), numpy.float32("inf")).astype(float) > given).all(), what


tree = DecisionTreeRegressor(random_state=1).fit(rows, wanted)
check("tree", thresholds(convert(tree)[0]), tree.tree_.threshold[tree.tree_.children_left >= 0])
boosted = make_pipeline(FunctionTransformer(), HistGradientBoostingRegressor(max_iter=20, random_state=1)).fit(rows, wanted)
before = [t.nodes["num_threshold"][t.nodes["is_leaf"] == 0] for stage in boosted[-1]._predictors for t in stage]
check("histograms", thresholds(convert(boosted)[0]), numpy.concatenate(before))
after = [t.nodes["num_threshold"][t.nodes["is_leaf"] == 0] for stage in boosted[-1]._predictors for t in stage]
assert all((a == b).all() for a, b in zip(before, after)), "the estimator that predicts was changed"
