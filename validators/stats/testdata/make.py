"""Writes vectors.json, what SciPy computes for the functions of package stats:

    python3 -m venv /tmp/v && /tmp/v/bin/pip install scipy==1.17.1 && /tmp/v/bin/python make.py > vectors.json
"""

import json
import math

from scipy.special import betainc
from scipy.stats import beta, binom


def between(bound, misses, n, level):
    """Interpolates between whole numbers of misses."""
    part, whole = math.modf(misses)
    return bound(whole, n, level) if part == 0 else (1 - part) * bound(whole, n, level) + part * bound(whole + 1, n, level)


def whole_upper(misses, n, level):
    return 1.0 if misses == n else float(beta.ppf(level, misses + 1, n - misses))


def whole_lower(misses, n, level):
    return 0.0 if misses == 0 else float(beta.ppf(1 - level, misses, n - misses + 1))


def upper(misses, n, level):
    return between(whole_upper, misses, n, level)


def lower(misses, n, level):
    return between(whole_lower, misses, n, level)


def early_stopping(over, percentile, confidence):
    """MLPerf's formula, by counting up in doubling steps and bisecting."""
    enough = lambda h: betainc(h, over + 1, percentile) <= 1 - confidence
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def quantile_ranks(n, q, level):
    low = max([k for k in range(1, n + 1) if binom.sf(k - 1, n, q) >= level], default=0)
    high = min([k for k in range(1, n + 1) if binom.cdf(k - 1, n, q) >= level], default=n + 1)
    return low, high


rates = [
    (misses, n, level)
    for n in (1, 2, 10, 59, 300, 1000, 12345, 10**6, 10**7)
    for misses in sorted({0, 1, 3, n // 100, n // 3, n / 2, n - 1, n, 0.25, n * 0.7})
    for level in (0.5, 0.9, 0.95, 0.975, 0.99, 0.999999)
    if 0 <= misses <= n
]
vectors = {
    "rates": [
        {"misses": m, "n": n, "level": c, "upper": upper(m, n, c), "lower": lower(m, n, c)} for m, n, c in rates
    ],
    "drops": [
        {
            "lost": b,
            "won": c,
            "n": n,
            "level": level,
            "upper": upper(b, n, 1 - (1 - level) / 2) - lower(c, n, 1 - (1 - level) / 2),
            "lower": lower(b, n, 1 - (1 - level) / 2) - upper(c, n, 1 - (1 - level) / 2),
        }
        for b, c, n in ((0, 0, 300), (3, 1, 300), (0, 7, 600), (25, 25, 1000), (1, 0, 1), (40, 10, 50))
        for level in (0.95, 0.99)
    ],
    "cases": [
        {"rate": r, "level": c, "n": math.ceil(math.log(1 - c) / math.log1p(-r))}
        for r in (0.5, 0.05, 0.02, 0.01, 0.005, 0.001, 1e-6)
        for c in (0.9, 0.95, 0.99)
    ],
    "earlyStopping": [
        {"over": t, "percentile": p, "confidence": c, "under": early_stopping(t, p, c)}
        for t in (0, 1, 2, 10, 100, 2000)
        for p in (0.9, 0.97, 0.99, 0.999)
        for c in (0.95, 0.99)
    ],
    "quantiles": [
        {"n": n, "q": q, "level": c, "low": quantile_ranks(n, q, c)[0], "high": quantile_ranks(n, q, c)[1]}
        for n in (0, 1, 5, 10, 298, 299, 1000)
        for q in (0.5, 0.9, 0.99)
        for c in (0.95, 0.99)
    ],
}
print(json.dumps(vectors, indent=0))
