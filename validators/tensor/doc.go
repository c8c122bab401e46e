// Package tensor is the arithmetic floor under every validator: a value with
// a dtype, a shape and bytes; the files such values travel in; and the
// figures that say how far an engine's numbers are from the reference's.
//
// A [Tensor] is little-endian, C order, and may be a view on another one, so
// that one case of a stacked shard costs no copy. Files come from strangers:
// safetensors ([Open]) are checked to the last byte before the first tensor is
// handed out and then read lazily, row range by row range; npy and npz
// ([ReadNpy], [ReadNpz]) are read without ever running the pickle that they
// may carry. Everything that is allocated is bounded by [Limits].
//
// A [Comparison] takes reference and engine case by case and computes all its
// figures in float64 in one pass. It judges nothing: the limits, and with them
// the verdict, belong to the caller.
//
// The package imports the standard library alone and keeps no state.
package tensor
