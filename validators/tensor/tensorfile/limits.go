package tensorfile

import (
	"cmp"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Defaults of the fields of [Limits].
const (
	DefaultMaxHeaderBytes = 16 << 20
	DefaultMaxTensors     = 1 << 16
	DefaultMaxRank        = 32
	DefaultMaxTotalBytes  = 4 << 30
)

// Limits bound the memory that this process allocates for an untrusted file. The zero value of a field
// is its default; a negative field allows nothing.
type Limits struct {
	// MaxHeaderBytes bounds the JSON header of safetensors (never more than the
	// format's own 100,000,000) and the directory of an npz archive.
	// An npy header is bounded by numpy's 10,000 bytes. Default 16 MiB.
	MaxHeaderBytes int64
	// MaxTensors bounds the tensors in one file. Default 65,536.
	MaxTensors int
	// MaxRank bounds the dimensions of one tensor. Default 32.
	MaxRank int
	// MaxTensorBytes bounds the data that one call loads for one tensor, or for the requested
	// rows of it. Default 2 GiB.
	MaxTensorBytes int64
	// MaxTotalBytes bounds the data of all tensors that one call loads
	// ([ReadFile], [ReadNpz]). Default 4 GiB.
	MaxTotalBytes int64
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxHeaderBytes: cmp.Or(l.MaxHeaderBytes, DefaultMaxHeaderBytes),
		MaxTensors:     cmp.Or(l.MaxTensors, DefaultMaxTensors),
		MaxRank:        cmp.Or(l.MaxRank, DefaultMaxRank),
		MaxTensorBytes: cmp.Or(l.MaxTensorBytes, tensor.DefaultMaxTensorBytes),
		MaxTotalBytes:  cmp.Or(l.MaxTotalBytes, DefaultMaxTotalBytes),
	}
}
