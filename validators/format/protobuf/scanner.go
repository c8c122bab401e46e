// Package protobuf reads the wire format of protobuf in untrusted files, in memory that does not depend on their size.
package protobuf

import (
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
)

// windowBytes is how much is read at once; payloads are skipped.
const windowBytes = 32 << 10

// Span is a range of bytes of the file, end excluded.
type Span struct{ Start, End int64 }

// Len returns the number of bytes.
func (s Span) Len() int64 { return s.End - s.Start }

// Field is one field of a message: its number, its wire type, the position of its tag, and its
// value or, if it is length-delimited, the span of its payload.
type Field struct {
	Num  protowire.Number
	Type protowire.Type
	At   int64
	Span Span
	Val  uint64
}

// Scanner reads protobuf's wire format (protobuf.dev/programming-guides/encoding)
// through a window, in memory that does not depend on the size of the file.
type Scanner struct {
	r      io.ReaderAt
	Size   int64
	fields int64 // how many more may be visited
	memory int64 // how many more bytes may be kept
	window []byte
	base   int64
}

// NewScanner returns a scanner of the size bytes of r. Of the limits it uses MaxFields and MaxMemory.
func NewScanner(r io.ReaderAt, size int64, lim bound.Limits) *Scanner {
	return &Scanner{r: r, Size: max(size, 0), fields: lim.MaxFields, memory: lim.MaxMemory}
}

// All is the span of all bytes.
func (s *Scanner) All() Span { return Span{0, s.Size} }

// Again returns a scanner for a second look at the same bytes, within limits of its own.
func (s *Scanner) Again(lim bound.Limits) *Scanner { return NewScanner(s.r, s.Size, lim) }

// Each calls visit for every field of the message in sp; the message's name is only for errors.
// It stops at the first error.
func (s *Scanner) Each(sp Span, message string, visit func(Field) error) error {
	for at := sp.Start; at < sp.End; {
		f, next, err := s.Next(at, sp, message)
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

// Next reads the field whose tag is at the given position, and returns the position of the next
// field.
func (s *Scanner) Next(at int64, sp Span, message string) (Field, int64, error) {
	if s.fields--; s.fields < 0 {
		return Field{}, 0, Invalid(at, "more protobuf fields than the limit allows")
	}
	tag, body, err := s.Varint(at, sp, message)
	if err != nil {
		return Field{}, 0, err
	}
	num, typ := protowire.DecodeTag(tag)
	if num < protowire.MinValidNumber || tag > math.MaxUint32 {
		return Field{}, 0, Invalid(at, "%s has a field with the impossible number %d", message, tag>>3)
	}
	f := Field{Num: num, Type: typ, At: at, Span: Span{body, body}}
	switch typ {
	case protowire.VarintType:
		f.Val, f.Span.End, err = s.Varint(body, sp, message)
	case protowire.Fixed32Type:
		f.Span.End = body + 4
	case protowire.Fixed64Type:
		f.Span.End = body + 8
	case protowire.BytesType:
		var n uint64
		n, body, err = s.Varint(body, sp, message)
		f.Span = Span{body, body + int64(min(n, math.MaxInt64/4))}
	default:
		err = Invalid(at, "%s has a field of wire type %d, which no model has", message, typ)
	}
	if err == nil && f.Span.End > sp.End {
		err = s.overrun(f, sp, message)
	}
	return f, f.Span.End, err
}

// overrun decides whether a field that exceeds its message was truncated or is malformed. A
// truncation shows at the outermost message, the only one that starts at byte 0.
func (s *Scanner) overrun(f Field, sp Span, message string) error {
	if sp.Start == 0 && f.Span.End > s.Size {
		return registry.Errorf(registry.CodeInvalid,
			"truncated at byte %d of at least %d: field %d of %s at byte %d goes on beyond the end of the file; copy or export it again",
			s.Size, f.Span.End, f.Num, message, f.At)
	}
	return Invalid(f.At,
		"field %d of %s ends at byte %d, but the message around it ends at byte %d", f.Num, message, f.Span.End, sp.End)
}

// Varint reads a varint at the given position inside sp, and returns the position after it.
func (s *Scanner) Varint(at int64, sp Span, message string) (uint64, int64, error) {
	raw, err := s.view(at, min(10, sp.End-at))
	if err != nil {
		return 0, 0, err
	}
	val, n := protowire.ConsumeVarint(raw)
	switch {
	case n > 0:
		return val, at + int64(n), nil
	case len(raw) == 10:
		return 0, 0, Invalid(at, "%s has a number of more than 64 bits", message)
	case sp.Start == 0 && sp.End == s.Size:
		return 0, 0, registry.Errorf(registry.CodeInvalid,
			"truncated at byte %d: %s ends in the middle of the number at byte %d; copy or export the file again", s.Size, message, at)
	}
	return 0, 0, Invalid(at, "%s ends in the middle of a number", message)
}

// view returns n bytes, at most windowBytes, which are valid until the next call.
func (s *Scanner) view(at, n int64) ([]byte, error) {
	if at < s.base || at+n > s.base+int64(len(s.window)) {
		if s.window == nil {
			s.window = make([]byte, windowBytes)
		}
		s.window = s.window[:min(windowBytes, s.Size-at)]
		s.base = at
		if got, err := s.r.ReadAt(s.window, at); got < len(s.window) {
			s.window = s.window[:0]
			return nil, readError(at+int64(got), s.Size, err)
		}
	}
	return s.window[at-s.base : at-s.base+n], nil
}

// Text reads the payload of f as a string of at most bound.MaxName bytes.
func (s *Scanner) Text(f Field) (string, error) {
	if f.Span.Len() > bound.MaxName {
		return "", Invalid(f.At, "a name of %d bytes; at most %d are allowed", f.Span.Len(), bound.MaxName)
	}
	return s.Read(f)
}

// Read reads the whole payload of f. The caller must count bytes that it keeps with [Scanner.Keep] first.
func (s *Scanner) Read(f Field) (string, error) {
	if n := f.Span.Len(); n <= windowBytes {
		raw, err := s.view(f.Span.Start, n)
		return string(raw), err
	}
	buf := make([]byte, f.Span.Len())
	if got, err := s.r.ReadAt(buf, f.Span.Start); got < len(buf) {
		return "", readError(f.Span.Start+int64(got), s.Size, err)
	}
	return string(buf), nil
}

// Keep counts n bytes against the limit, with the overhead of a map or slice.
func (s *Scanner) Keep(at, n int64) error {
	const overhead = 64
	if s.memory -= n + overhead; s.memory < 0 {
		return Invalid(at, "more bytes of names, shapes and metadata than the limit allows")
	}
	return nil
}

// Invalid returns an error about the bytes at a position.
func Invalid(at int64, format string, args ...any) error {
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

// Descend calls leaf for every field at the end of a path of field numbers.
func (s *Scanner) Descend(message string, sp Span, way []protowire.Number, leaf func(Field) error) error {
	return s.Each(sp, message, func(f Field) error {
		switch {
		case f.Num != way[0] || f.Type != protowire.BytesType:
			return nil
		case len(way) == 1:
			return leaf(f)
		}
		return s.Descend(message, f.Span, way[1:], leaf)
	})
}
