// Package jax recognizes programs of jax.export, and reads which platform they are for.
package jax

import (
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
)

// A file of jax.export is a flatbuffer without an identifier (jax/_src/export/serialization.fbs). Its
// root table has, in field 13, the program as bytecode of MLIR, which has a magic number.
const (
	programField = 13
	mlirMagic    = "ML\xefR"
)

// Of the same table: field 9 has the platforms that the program is for.
const (
	platformsField      = 9
	maxPlatformName     = 64
	flatOffset, flatLen = 4, 4
)

// flatTable is the root table of a flatbuffer.
type flatTable struct {
	r         io.ReaderAt
	size      int64
	root, at  int64 // of the table, and of the offsets of its fields
	fieldsEnd int64
}

// rootTable finds the root table of a flatbuffer; ok is false for other bytes.
func rootTable(r io.ReaderAt, size int64) (t flatTable, ok bool) {
	t = flatTable{r: r, size: size}
	first := t.bytes(0, flatOffset)
	if first == nil {
		return t, false
	}
	t.root = int64(binary.LittleEndian.Uint32(first))
	back := t.bytes(t.root, flatOffset)
	if back == nil {
		return t, false
	}
	t.at = t.root - int64(int32(binary.LittleEndian.Uint32(back)))
	length := t.bytes(t.at, 2)
	if length == nil {
		return t, false
	}
	t.fieldsEnd = int64(binary.LittleEndian.Uint16(length))
	return t, true
}

// bytes reads n bytes at an offset; nil if they are not all there.
func (t flatTable) bytes(offset int64, n int) []byte {
	buf := make([]byte, n)
	if offset < 0 || offset > t.size-int64(n) {
		return nil
	}
	if got, _ := t.r.ReadAt(buf, offset); got < n {
		return nil
	}
	return buf
}

// follow returns the place to which the offset at a place leads; false if there is none.
func (t flatTable) follow(place int64) (int64, bool) {
	offset := t.bytes(place, flatOffset)
	if offset == nil {
		return 0, false
	}
	return place + int64(binary.LittleEndian.Uint32(offset)), true
}

// field returns the place of what a field of the table refers to; false if the table does not have it.
func (t flatTable) field(number int64) (int64, bool) {
	slot := 4 + 2*number
	if t.fieldsEnd < slot+2 {
		return 0, false
	}
	field := t.bytes(t.at+slot, 2)
	if field == nil || binary.LittleEndian.Uint16(field) == 0 {
		return 0, false
	}
	return t.follow(t.root + int64(binary.LittleEndian.Uint16(field)))
}

// IsExport follows the offsets of a flatbuffer to the program.
func IsExport(r io.ReaderAt, size int64) bool {
	table, ok := rootTable(r, size)
	if !ok {
		return false
	}
	program, ok := table.field(programField)
	return ok && strings.HasPrefix(string(table.bytes(program+flatLen, len(mlirMagic))), mlirMagic)
}

// Platform reads which platform a program of jax.export is for. Errors: CodeInvalid.
func Platform(r io.ReaderAt, size int64) (string, error) {
	table, ok := rootTable(r, size)
	if !ok {
		return "", registry.Errorf(registry.CodeInvalid, "this is not a program of jax.export")
	}
	platforms, ok := table.field(platformsField)
	count := table.bytes(platforms, flatLen)
	if !ok || count == nil {
		return "", registry.Errorf(registry.CodeInvalid, "the program of jax.export does not name its platform")
	}
	if n := binary.LittleEndian.Uint32(count); n != 1 {
		return "", registry.Errorf(registry.CodeInvalid, "the program of jax.export is for %d platforms: want one", n)
	}
	name, ok := table.follow(platforms + flatLen)
	if ok {
		if length := table.bytes(name, flatLen); length != nil && binary.LittleEndian.Uint32(length) <= maxPlatformName {
			if text := table.bytes(name+flatLen, int(binary.LittleEndian.Uint32(length))); text != nil && utf8.Valid(text) {
				return string(text), nil
			}
		}
	}
	return "", registry.Errorf(registry.CodeInvalid, "the platform of the program of jax.export cannot be read")
}
