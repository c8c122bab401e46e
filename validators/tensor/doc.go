// Package tensor provides tensors for all validators: a value with dtype, shape and bytes; and the
// figures that describe the difference between an engine's outputs and the reference model's.
//
// A [Tensor] is little-endian, in C order, and may be a view of another one, so that one case
// of a stacked shard needs no copy.
//
// A [Comparison] takes the outputs of the reference model and of the engine case by case, and
// computes all figures in float64 in one pass. It decides nothing: the caller has the limits
// and computes the verdict.
//
// The package imports only the standard library and keeps no state.
package tensor
