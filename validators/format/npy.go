package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// npyMagic is the beginning of every .npy file (numpy.lib.format). The version, the header's
// length, and the header follow; the header is a Python dict literal.
const npyMagic = "\x93NUMPY"

// sniffNumpy distinguishes plain arrays from arrays of Python objects. The header is Python
// source, in which one type can be spelled in many ways. So it is accepted as plain only if it
// cannot name the object type: if it is short, and has neither the letter O nor "obj" nor an
// escape. A structured array with a field called "Offset" is therefore refused too.
func sniffNumpy(head []byte) finding {
	header, ok := npyHeader(head)
	switch {
	case !ok:
		return finding{kind: NumpyObject, detail: fmt.Sprintf("or may be: its header is damaged or longer than %d bytes", headBytes), unsafe: true}
	case bytes.ContainsAny(header, "O\\") || bytes.Contains(header, []byte("obj")):
		return finding{kind: NumpyObject}
	}
	return finding{kind: Numpy}
}

// npyHeader returns the dict literal, if head has all of it.
func npyHeader(head []byte) ([]byte, bool) {
	rest := head[len(npyMagic):]
	switch {
	case len(rest) >= 4 && rest[0] == 1:
		return take(rest[4:], uint64(binary.LittleEndian.Uint16(rest[2:])))
	case len(rest) >= 6 && (rest[0] == 2 || rest[0] == 3):
		return take(rest[6:], uint64(binary.LittleEndian.Uint32(rest[2:])))
	}
	return nil, false
}

// take returns the first n bytes of b, or all of b if it is shorter.
func take(b []byte, n uint64) ([]byte, bool) {
	if n > uint64(len(b)) {
		return nil, false
	}
	return b[:n], true
}
