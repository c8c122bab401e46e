// Package stats has the exact and the seeded statistics of verdicts: bounds of rates, of drops,
// of means, of ratios of latencies and of quantiles.
//
// Every bound is one-sided and has a level, such as 0.95: over repeated samples, at least this
// share of the bounds is on the right side of the true value. A limit passes if the bound on the
// bad side keeps it, fails if the bound on the good side exceeds it, and else the cases do not
// decide. Arguments that make no sense give the bound that proves nothing, never NaN.
//
// Equal arguments give equal results. Bounds by resampling draw from a PCG generator (O'Neill
// 2014) with the given seed and use only operations that IEEE 754 rounds exactly, so they are the
// same bits on every platform. Bounds by the beta distribution use logarithms, and their
// last digit differs between processors: compare them with a tolerance of 1e-9.
package stats
