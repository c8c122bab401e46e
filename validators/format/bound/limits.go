// Package bound has what all checks of untrusted files share: limits on what reading costs, readers that keep them, and
// opening a file without waiting for a pipe.
package bound

// Limits bound the cost of reading a model file. A field that is zero or negative means its
// default.
type Limits struct {
	MaxBytes   int64 // size of the file; 2 GiB, beyond which protobuf libraries refuse too
	MaxDepth   int   // subgraphs inside subgraphs; 32
	MaxNodes   int   // nodes, including subgraphs and functions; 1,048,576
	MaxTensors int   // tensors, with those in attributes; 262,144
	MaxFields  int64 // protobuf fields visited, which bounds time; 268,435,456
	MaxMemory  int64 // bytes kept for names, shapes and metadata; 64 MiB
}

// MaxName is the longest name, operator type, domain or location in bytes.
const MaxName = 64 << 10

// WithDefaults sets fields that the caller left empty.
func (l Limits) WithDefaults() Limits {
	return Limits{
		MaxBytes:   orElse(l.MaxBytes, 2<<30),
		MaxDepth:   orElse(l.MaxDepth, 32),
		MaxNodes:   orElse(l.MaxNodes, 1<<20),
		MaxTensors: orElse(l.MaxTensors, 1<<18),
		MaxFields:  orElse(l.MaxFields, 1<<28),
		MaxMemory:  orElse(l.MaxMemory, 64<<20),
	}
}

func orElse[N int | int64](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}
