package tensorfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// maxSafetensorsHeader is the format's own limit on the header.
const maxSafetensorsHeader = 100_000_000

// File is an open safetensors file. Opening it checks the whole structure; the data of a tensor
// is read on request. Its methods except Close are safe for concurrent use.
//
// The format (README of huggingface/safetensors): a little-endian uint64, the
// JSON header of that many bytes, the data. Our reading of it is strict: names
// and keys occur once, nothing unknown stands in a tensor's entry, the data of
// the tensors touches without holes or overlap and ends where the file ends.
type File struct {
	r      io.ReaderAt
	closer io.Closer
	limits Limits
	header header
	data   int64 // offset of the data section in the file
}

// Open opens the safetensors file at that path. Errors of an invalid file are of kind
// ErrMalformed, ErrUnsupported or ErrLimit. The caller closes the file.
func Open(path string, limits Limits) (*File, error) {
	// Stat first: opening a FIFO would block until a process writes to it.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, tensor.Errorf(tensor.ErrMalformed, "%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file, err := NewFile(f, info.Size(), limits)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	file.closer = f
	return file, nil
}

// NewFile reads the header of a safetensors file of size bytes from r, which must stay readable
// while the File is used. Close does not close r.
func NewFile(r io.ReaderAt, size int64, limits Limits) (*File, error) {
	limits = limits.withDefaults()
	text, err := readHeader(r, size, limits)
	if err != nil {
		return nil, err
	}
	h, err := parseHeader(text, limits)
	if err != nil {
		return nil, err
	}
	data := 8 + int64(len(text))
	if err := h.checkLayout(size - data); err != nil {
		return nil, err
	}
	return &File{r: r, limits: limits, header: h, data: data}, nil
}

func readHeader(r io.ReaderAt, size int64, limits Limits) ([]byte, error) {
	var prefix [8]byte
	if size < int64(len(prefix)) {
		return nil, tensor.Errorf(tensor.ErrMalformed, "safetensors: %d bytes are too few for a header", size)
	}
	if err := readAt(r, prefix[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	switch {
	case n > maxSafetensorsHeader:
		return nil, tensor.Errorf(tensor.ErrMalformed,
			"safetensors: header of %d bytes: the format allows %d; is this a safetensors file?", n, maxSafetensorsHeader)
	case int64(n) > size-8:
		return nil, tensor.Errorf(tensor.ErrMalformed,
			"safetensors: header of %d bytes in a file of %d: the file is cut short or is not safetensors", n, size)
	case int64(n) > limits.MaxHeaderBytes:
		return nil, tensor.Errorf(tensor.ErrLimit, "safetensors: header of %d bytes: the limit is %d", n, limits.MaxHeaderBytes)
	}
	text := make([]byte, n)
	return text, readAt(r, text, 8)
}

// ReadFile reads all tensors of the safetensors file of that path, at most
// limits.MaxTotalBytes of them.
func ReadFile(path string, limits Limits) (map[string]tensor.Tensor, error) {
	f, err := Open(path, limits)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := make(map[string]tensor.Tensor, len(f.header.entries))
	var total int64
	for _, name := range f.Names() {
		e := f.header.entries[name]
		if total += e.end - e.begin; total > f.limits.MaxTotalBytes {
			return nil, tensor.Errorf(tensor.ErrLimit,
				"%s: its tensors have more than %d bytes, the limit: read them one by one", path, f.limits.MaxTotalBytes)
		}
		if all[name], err = f.Tensor(name); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}

// Names returns the names of the tensors, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.header.entries)) }

// Metadata returns a copy of the header's __metadata__, never nil.
func (f *File) Metadata() map[string]string {
	out := make(map[string]string, len(f.header.metadata))
	maps.Copy(out, f.header.metadata)
	return out
}

// Info returns the dtype and shape of a tensor, and whether it exists.
func (f *File) Info(name string) (tensor.Info, bool) {
	e, ok := f.header.entries[name]
	return tensor.Info{DType: e.info.DType, Shape: slices.Clone(e.info.Shape)}, ok
}

// Tensor reads one tensor, at most Limits.MaxTensorBytes of it. If the file has no tensor of
// that name, the error is of kind ErrMismatch.
func (f *File) Tensor(name string) (tensor.Tensor, error) {
	e, ok := f.header.entries[name]
	if !ok {
		return tensor.Tensor{}, f.unknown(name)
	}
	return f.read(nil, name, tensor.Info{DType: e.info.DType, Shape: slices.Clone(e.info.Shape)}, e.begin, e.end)
}

// Rows reads only the rows [from, to) of a tensor along its leading dimension. The limit of
// Tensor applies to these rows.
func (f *File) Rows(name string, from, to int64) (tensor.Tensor, error) {
	return f.RowsInto(nil, name, from, to)
}

// RowsInto is Rows into the memory of room, from its start, if that is large enough, and else into
// new memory.
func (f *File) RowsInto(room []byte, name string, from, to int64) (tensor.Tensor, error) {
	e, ok := f.header.entries[name]
	if !ok {
		return tensor.Tensor{}, f.unknown(name)
	}
	info, stride, err := e.info.Rows(from, to)
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("tensor %q: %w", name, err)
	}
	return f.read(room, name, info, e.begin+from*stride, e.begin+to*stride)
}

// Close closes the file that Open opened.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

func (f *File) unknown(name string) error {
	return tensor.Errorf(tensor.ErrMismatch, "safetensors: no tensor %.256q among the %d of the file", name, len(f.header.entries))
}

// read loads the bytes [begin, end) of the data section as a tensor.
func (f *File) read(room []byte, name string, info tensor.Info, begin, end int64) (tensor.Tensor, error) {
	if end-begin > f.limits.MaxTensorBytes {
		return tensor.Tensor{}, tensor.Errorf(tensor.ErrLimit, "tensor %.256q: %d bytes asked for, the limit is %d: read fewer rows at a time",
			name, end-begin, f.limits.MaxTensorBytes)
	}
	if int64(cap(room)) < end-begin {
		room = make([]byte, end-begin)
	}
	data := room[:end-begin]
	if err := readAt(f.r, data, f.data+begin); err != nil {
		return tensor.Tensor{}, fmt.Errorf("tensor %q: %w", name, err)
	}
	return tensor.Tensor{DType: info.DType, Shape: info.Shape, Data: data}, nil
}

// readAt fills p. If a reader ends early, the file is shorter than declared.
func readAt(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return tensor.Errorf(tensor.ErrMalformed, "read %d bytes at offset %d, expected %d: the file was cut short", n, offset, len(p))
	}
	return err
}
