package format

import (
	"encoding/binary"
	"strings"
)

// A file of jax.export is a flatbuffer without an identifier (jax/_src/export/serialization.fbs). Its
// root table has, in field 13, the program as bytecode of MLIR, which has a magic number.
const (
	jaxProgramField = 13
	mlirMagic       = "ML\xefR"
)

// isJAXExport follows the offsets of a flatbuffer to the program.
func isJAXExport(src *source) bool {
	at := func(offset int64, n int) []byte {
		buf := make([]byte, n)
		if offset < 0 || offset > src.size-int64(n) {
			return nil
		}
		if got, _ := src.ReadAt(buf, offset); got < n {
			return nil
		}
		return buf
	}
	le := binary.LittleEndian
	first := at(0, 4)
	if first == nil {
		return false
	}
	root := int64(le.Uint32(first))
	back := at(root, 4)
	if back == nil {
		return false
	}
	table := root - int64(int32(le.Uint32(back)))
	slot := 4 + 2*int64(jaxProgramField)
	size := at(table, 2)
	if size == nil || int64(le.Uint16(size)) < slot+2 {
		return false
	}
	field := at(table+slot, 2)
	if field == nil || le.Uint16(field) == 0 {
		return false
	}
	place := root + int64(le.Uint16(field))
	offset := at(place, 4)
	if offset == nil {
		return false
	}
	return strings.HasPrefix(string(at(place+int64(le.Uint32(offset))+4, len(mlirMagic))), mlirMagic)
}
