package tensorfile

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// ShardWriter writes a safetensors file of stacked tensors. Rows arrive one after the other
// for all tensors at once, as an engine yields its outputs case by case. At most
// writeAhead bytes wait in memory until they are written. The result is the same as from [Write] for the whole tensors. It is
// not safe for concurrent use.
type ShardWriter struct {
	w      io.WriterAt
	layout layout
	infos  map[string]tensor.Info
	next   map[string]int64 // rows that arrived
	rows   map[string]*waiting
}

// writeAhead is how many bytes of rows a ShardWriter keeps until it writes them, of all tensors
// together: rows of a few bytes are not worth a system call each.
const writeAhead = 1 << 20

// waiting is the bytes of rows of one tensor that are not written yet.
type waiting struct {
	data   []byte
	offset int64 // in the file
}

// NewShardWriter writes the header to w, which must be empty and which the caller closes. Every
// tensor has a leading dimension: the number of its rows that will follow.
func NewShardWriter(w io.WriterAt, infos map[string]tensor.Info, metadata map[string]string) (*ShardWriter, error) {
	for name, info := range infos {
		if len(info.Shape) == 0 {
			return nil, tensor.Errorf(tensor.ErrMismatch, "tensor %q is a scalar: a shard needs a leading dimension", name)
		}
	}
	l, err := newLayout(infos, metadata)
	if err != nil {
		return nil, err
	}
	if _, err := w.WriteAt(l.head, 0); err != nil {
		return nil, err
	}
	s := &ShardWriter{w: w, layout: l, infos: maps.Clone(infos), next: map[string]int64{}, rows: map[string]*waiting{}}
	for name := range infos {
		s.rows[name] = &waiting{offset: l.offsets[name]}
	}
	return s, nil
}

// Append adds rows, which has a leading dimension, after the existing rows of the tensor of
// that name; their memory can be used again after it. An error of writing can also come later. Other dtypes, other
// row shapes, and more rows than announced give an error of kind ErrMismatch.
func (s *ShardWriter) Append(name string, rows tensor.Tensor) error {
	if err := rows.Validate(); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	info, ok := s.infos[name]
	if !ok {
		return tensor.Errorf(tensor.ErrMismatch, "tensor %q was not announced to this shard", name)
	}
	if rows.DType != info.DType || len(rows.Shape) == 0 || !slices.Equal(rows.Shape[1:], info.Shape[1:]) {
		return tensor.Errorf(tensor.ErrMismatch,
			"tensor %q: rows of %s %v, expected %s %v", name, rows.DType, rows.Shape, info.DType, info.Shape)
	}
	from := s.next[name]
	if rows.Shape[0] > info.Shape[0]-from {
		return tensor.Errorf(tensor.ErrMismatch,
			"tensor %q: rows %d and %d more, expected %d in all", name, from, rows.Shape[0], info.Shape[0])
	}
	s.next[name] = from + rows.Shape[0]
	return s.rows[name].add(s.w, rows.Data, writeAhead/len(s.infos))
}

// add appends data, of which at most so many bytes wait.
func (r *waiting) add(w io.WriterAt, data []byte, most int) error {
	if len(r.data)+len(data) > most {
		if err := r.flush(w); err != nil {
			return err
		}
	}
	if len(data) > most {
		_, err := w.WriteAt(data, r.offset)
		r.offset += int64(len(data))
		return err
	}
	r.data = append(r.data, data...)
	return nil
}

func (r *waiting) flush(w io.WriterAt) error {
	_, err := w.WriteAt(r.data, r.offset)
	r.offset, r.data = r.offset+int64(len(r.data)), r.data[:0]
	return err
}

// Close writes what waits. It returns an error if a tensor has fewer rows than announced; the file
// is then unusable. It does not close the underlying writer.
func (s *ShardWriter) Close() error {
	for _, name := range s.layout.names {
		if err := s.rows[name].flush(s.w); err != nil {
			return err
		}
		if want := s.infos[name].Shape[0]; s.next[name] != want {
			return tensor.Errorf(tensor.ErrMismatch, "tensor %q has %d rows of %d: the shard is incomplete", name, s.next[name], want)
		}
	}
	return nil
}
