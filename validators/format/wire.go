package format

import (
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
)

// windowBytes is how much is read at once; payloads are skipped.
const windowBytes = 32 << 10

// span is a range of bytes of the file, end excluded.
type span struct{ start, end int64 }

func (s span) len() int64 { return s.end - s.start }

// field is one field of a message: its number, its wire type, the position of its tag, and its
// value or, if it is length-delimited, the span of its payload.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	at   int64
	span span
	val  uint64
}

// scanner reads protobuf's wire format (protobuf.dev/programming-guides/encoding)
// through a window, in memory that does not depend on the size of the file.
type scanner struct {
	r      io.ReaderAt
	size   int64
	fields int64 // how many more may be visited
	memory int64 // how many more bytes may be kept
	window []byte
	base   int64
}

// newScanner returns a scanner of the size bytes of r. Of the limits it uses MaxFields and MaxMemory.
func newScanner(r io.ReaderAt, size int64, lim Limits) *scanner {
	return &scanner{r: r, size: max(size, 0), fields: lim.MaxFields, memory: lim.MaxMemory}
}

// each calls visit for every field of the message in sp; the message's name is only for errors.
// It stops at the first error.
func (s *scanner) each(sp span, message string, visit func(field) error) error {
	for at := sp.start; at < sp.end; {
		f, next, err := s.next(at, sp, message)
		if err != nil {
			return err
		}
		if err := visit(f); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// next reads the field whose tag is at the given position, and returns the position of the next
// field.
func (s *scanner) next(at int64, sp span, message string) (field, int64, error) {
	if s.fields--; s.fields < 0 {
		return field{}, 0, invalidAt(at, "more protobuf fields than the limit allows")
	}
	tag, body, err := s.varint(at, sp, message)
	if err != nil {
		return field{}, 0, err
	}
	num, typ := protowire.DecodeTag(tag)
	if num < protowire.MinValidNumber || tag > math.MaxUint32 {
		return field{}, 0, invalidAt(at, "%s has a field with the impossible number %d", message, tag>>3)
	}
	f := field{num: num, typ: typ, at: at, span: span{body, body}}
	switch typ {
	case protowire.VarintType:
		f.val, f.span.end, err = s.varint(body, sp, message)
	case protowire.Fixed32Type:
		f.span.end = body + 4
	case protowire.Fixed64Type:
		f.span.end = body + 8
	case protowire.BytesType:
		var n uint64
		n, body, err = s.varint(body, sp, message)
		f.span = span{body, body + int64(min(n, math.MaxInt64/4))}
	default:
		err = invalidAt(at, "%s has a field of wire type %d, which no model has", message, typ)
	}
	if err == nil && f.span.end > sp.end {
		err = s.overrun(f, sp, message)
	}
	return f, f.span.end, err
}

// overrun decides whether a field that exceeds its message was truncated or is malformed. A
// truncation shows at the outermost message, the only one that starts at byte 0.
func (s *scanner) overrun(f field, sp span, message string) error {
	if sp.start == 0 && f.span.end > s.size {
		return registry.Errorf(registry.CodeInvalid,
			"truncated at byte %d of at least %d: field %d of %s at byte %d goes on beyond the end of the file; copy or export it again",
			s.size, f.span.end, f.num, message, f.at)
	}
	return invalidAt(f.at,
		"field %d of %s ends at byte %d, but the message around it ends at byte %d", f.num, message, f.span.end, sp.end)
}

// varint reads a varint at the given position inside sp, and returns the position after it.
func (s *scanner) varint(at int64, sp span, message string) (uint64, int64, error) {
	raw, err := s.view(at, min(10, sp.end-at))
	if err != nil {
		return 0, 0, err
	}
	val, n := protowire.ConsumeVarint(raw)
	switch {
	case n > 0:
		return val, at + int64(n), nil
	case len(raw) == 10:
		return 0, 0, invalidAt(at, "%s has a number of more than 64 bits", message)
	case sp.start == 0 && sp.end == s.size:
		return 0, 0, registry.Errorf(registry.CodeInvalid,
			"truncated at byte %d: %s ends in the middle of the number at byte %d; copy or export the file again", s.size, message, at)
	}
	return 0, 0, invalidAt(at, "%s ends in the middle of a number", message)
}

// view returns n bytes, at most windowBytes, which are valid until the next call.
func (s *scanner) view(at, n int64) ([]byte, error) {
	if at < s.base || at+n > s.base+int64(len(s.window)) {
		if s.window == nil {
			s.window = make([]byte, windowBytes)
		}
		s.window = s.window[:min(windowBytes, s.size-at)]
		s.base = at
		if got, err := s.r.ReadAt(s.window, at); got < len(s.window) {
			s.window = s.window[:0]
			return nil, readError(at+int64(got), s.size, err)
		}
	}
	return s.window[at-s.base : at-s.base+n], nil
}

// text reads the payload of f as a string of at most maxName bytes.
func (s *scanner) text(f field) (string, error) {
	if f.span.len() > maxName {
		return "", invalidAt(f.at, "a name of %d bytes; at most %d are allowed", f.span.len(), maxName)
	}
	return s.read(f)
}

// read reads the whole payload of f. The caller must count bytes that it keeps with keep first.
func (s *scanner) read(f field) (string, error) {
	if n := f.span.len(); n <= windowBytes {
		raw, err := s.view(f.span.start, n)
		return string(raw), err
	}
	buf := make([]byte, f.span.len())
	if got, err := s.r.ReadAt(buf, f.span.start); got < len(buf) {
		return "", readError(f.span.start+int64(got), s.size, err)
	}
	return string(buf), nil
}

// keep counts n bytes against the limit, with the overhead of a map or slice.
func (s *scanner) keep(at, n int64) error {
	const overhead = 64
	if s.memory -= n + overhead; s.memory < 0 {
		return invalidAt(at, "more bytes of names, shapes and metadata than the limit allows")
	}
	return nil
}

// invalidAt returns an error about the bytes at a position.
func invalidAt(at int64, format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, "at byte %d: %s", at, fmt.Sprintf(format, args...))
}

// readError returns an error for bytes that could not be read.
func readError(at, size int64, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return registry.Errorf(registry.CodeInvalid,
			"truncated at byte %d of %d: the file became shorter while it was read", at, size)
	}
	return fmt.Errorf("read at byte %d: %w", at, err)
}

// descend calls leaf for every field at the end of a path of field numbers.
func (s *scanner) descend(message string, sp span, way []protowire.Number, leaf func(field) error) error {
	return s.each(sp, message, func(f field) error {
		switch {
		case f.num != way[0] || f.typ != protowire.BytesType:
			return nil
		case len(way) == 1:
			return leaf(f)
		}
		return s.descend(message, f.span, way[1:], leaf)
	})
}
