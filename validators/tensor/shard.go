package tensor

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// ShardWriter writes a safetensors file of stacked tensors, whose rows arrive one after the
// other for all tensors at once, as an engine yields its outputs case by case. Only the current
// rows are in memory. The result is the same as that of [Write] for the whole tensors. It is
// not safe for concurrent use.
type ShardWriter struct {
	w      io.WriterAt
	layout layout
	infos  map[string]Info
	next   map[string]int64 // rows written
}

// NewShardWriter writes the header to w, which must be empty and which the caller closes. Every
// tensor has a leading dimension: the number of its rows that will follow.
func NewShardWriter(w io.WriterAt, infos map[string]Info, metadata map[string]string) (*ShardWriter, error) {
	for name, info := range infos {
		if len(info.Shape) == 0 {
			return nil, faultf(ErrMismatch, "tensor %q is a scalar: a shard needs a leading dimension", name)
		}
	}
	l, err := newLayout(infos, metadata)
	if err != nil {
		return nil, err
	}
	if _, err := w.WriteAt(l.head, 0); err != nil {
		return nil, err
	}
	return &ShardWriter{w: w, layout: l, infos: maps.Clone(infos), next: map[string]int64{}}, nil
}

// Append writes rows, which has a leading dimension, after the existing rows of the tensor of
// that name. Other dtypes, other row shapes, and more rows than announced give an error of kind
// ErrMismatch.
func (s *ShardWriter) Append(name string, rows Tensor) error {
	if err := rows.Validate(); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	info, ok := s.infos[name]
	if !ok {
		return faultf(ErrMismatch, "tensor %q was not announced to this shard", name)
	}
	if rows.DType != info.DType || len(rows.Shape) == 0 || !slices.Equal(rows.Shape[1:], info.Shape[1:]) {
		return faultf(ErrMismatch,
			"tensor %q: rows of %s %v, expected %s %v", name, rows.DType, rows.Shape, info.DType, info.Shape)
	}
	from := s.next[name]
	if rows.Shape[0] > info.Shape[0]-from {
		return faultf(ErrMismatch,
			"tensor %q: rows %d and %d more, expected %d in all", name, from, rows.Shape[0], info.Shape[0])
	}
	_, stride, err := info.rows(from, from+rows.Shape[0])
	if err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	if _, err := s.w.WriteAt(rows.Data, s.layout.offsets[name]+from*stride); err != nil {
		return err
	}
	s.next[name] = from + rows.Shape[0]
	return nil
}

// Close returns an error if a tensor has fewer rows than announced; the file is then unusable.
// It does not close the underlying writer.
func (s *ShardWriter) Close() error {
	for _, name := range s.layout.names {
		if want := s.infos[name].Shape[0]; s.next[name] != want {
			return faultf(ErrMismatch, "tensor %q has %d rows of %d: the shard is incomplete", name, s.next[name], want)
		}
	}
	return nil
}
