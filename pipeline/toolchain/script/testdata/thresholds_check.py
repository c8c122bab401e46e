"""Holds what trees.single makes of thresholds against the thresholds, for the float32 numbers around each."""

import operator
import sys

sys.path.insert(0, sys.argv[1])

import numpy  # noqa: E402
import trees  # noqa: E402

MODES = {"BRANCH_LEQ": operator.le, "BRANCH_GT": operator.gt, "BRANCH_LT": operator.lt, "BRANCH_GTE": operator.ge}
random = numpy.random.default_rng(3)
given = [0.0, -0.0, 1e-46, -1e-46, 1e300, -1e300, 16777216.5, 0.1, -0.1, float("inf"), float("-inf")]
given += [float(v) for v in random.normal(size=500) * 10.0 ** random.integers(-30, 30, 500)]
down = up = 0
for threshold in given:
    with numpy.errstate(over="ignore", under="ignore"):
        near = numpy.float32(threshold)
        around = [near, numpy.nextafter(near, numpy.float32("inf")), numpy.nextafter(near, numpy.float32("-inf"))]
    for mode, compare in MODES.items():
        made = trees.single(threshold, mode)
        assert made == float(numpy.float32(made)), (threshold, mode, made)
        for x in map(float, around):
            assert compare(x, made) == compare(x, threshold), (threshold, mode, made, x)
        down, up = down + (made < threshold), up + (made > threshold)
assert down > 100 and up > 100, (down, up)
