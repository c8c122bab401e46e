package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Sniff returns the kind of the size bytes of r. It reads a limited part of them, if necessary
// also at the end, and never executes anything. Unreadable files are Unknown.
//
// If bytes have two interpretations, the more dangerous one wins: an ONNX model with a zip
// archive at its end is an archive.
func Sniff(r io.ReaderAt, size int64) Kind {
	found, err := inspect(r, size)
	if err != nil {
		return Unknown
	}
	return found.kind
}

// finding is a kind, and where in the file it was recognized, for messages.
type finding struct {
	kind   Kind
	detail string // such as `entry "archive/data.pkl"`; may be empty
}

// inspect does Sniff, and also returns the reason and the first error of r.
func inspect(r io.ReaderAt, size int64) (finding, error) {
	if size <= 0 {
		return finding{kind: Empty}, nil
	}
	src := &source{r: r, size: size}
	found := classify(src)
	if src.err != nil {
		return finding{}, src.err
	}
	return found, nil
}

// classify tries the recognizers, those of dangerous kinds first.
func classify(src *source) finding {
	head := src.head(headBytes)
	if !startsZip(head) && looksPickled(head, src, src.size) {
		return finding{kind: Pickle}
	}
	if found, ok := sniffZip(head, src); ok {
		return found
	}
	stream, compressed := sniffCompressed(head, src)
	if stream.kind == Pickle {
		return stream
	}
	if kind := sniffMagic(head); kind != Unknown {
		return finding{kind: kind}
	}
	switch {
	case hasHDF5(src):
		return finding{kind: HDF5}
	case isSafetensors(head, src.size):
		return finding{kind: Safetensors}
	case isONNX(src, src.size):
		return finding{kind: ONNX}
	case isSavedModel(src, src.size):
		return finding{kind: SavedModel}
	case compressed:
		return stream
	}
	return finding{kind: sniffFlatbuffer(head)}
}

// headBytes is how much of the beginning the recognizers of magic numbers get.
const headBytes = 4096

// source reads a file and remembers the first error other than its end, so that a broken disk
// is not mistaken for an unknown format.
type source struct {
	r    io.ReaderAt
	size int64
	err  error
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.r.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) && s.err == nil {
		s.err = err
	}
	return n, err
}

// head returns the first n bytes, or all if there are fewer.
func (s *source) head(n int64) []byte {
	buf := make([]byte, min(n, s.size))
	got, _ := s.ReadAt(buf, 0)
	return buf[:got]
}

// sniffMagic recognizes the formats that begin with a magic number.
func sniffMagic(head []byte) Kind {
	switch {
	case bytes.HasPrefix(head, []byte(npyMagic)):
		return sniffNumpy(head)
	case bytes.HasPrefix(head, []byte("GGUF")):
		return GGUF
	case bytes.HasPrefix(head, []byte("ptrt")), bytes.HasPrefix(head, []byte("ftrt")):
		return TensorRT
	case isNative(head):
		return NativeObject
	}
	return Unknown
}

// sniffFlatbuffer recognizes a flatbuffer by its file identifier, four bytes after the offset
// of the root table.
func sniffFlatbuffer(head []byte) Kind {
	if len(head) < 8 {
		return Unknown
	}
	switch string(head[4:8]) {
	case "TFL3":
		return TFLite
	case "ORTM":
		return ORT
	}
	return Unknown
}

// isNative recognizes ELF, Mach-O (both byte orders, 32 and 64 bit, universal) and PE, for
// which it checks more than the two magic letters, which text could also have.
func isNative(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	switch binary.BigEndian.Uint32(head) {
	case 0x7f454c46, 0xfeedface, 0xfeedfacf, 0xcefaedfe, 0xcffaedfe, 0xcafebabe:
		return true
	}
	if len(head) < 64 || string(head[:2]) != "MZ" {
		return false
	}
	at := int64(binary.LittleEndian.Uint32(head[60:]))
	return at+4 <= int64(len(head)) && string(head[at:at+4]) == "PE\x00\x00"
}

// hasHDF5 looks for the signature at byte 0, 512, 1024, 2048 and so on, where the HDF5
// superblock may start (HDF5 File Format Specification 3.0, II.A).
func hasHDF5(src *source) bool {
	var sig [8]byte
	for at := int64(0); at+int64(len(sig)) <= src.size; at = max(512, 2*at) {
		if n, _ := src.ReadAt(sig[:], at); n == len(sig) && string(sig[:]) == "\x89HDF\r\n\x1a\n" {
			return true
		}
	}
	return false
}

// isSafetensors checks the header's length, at most 100,000,000 bytes, and
// that a JSON object starts there.
func isSafetensors(head []byte, size int64) bool {
	if len(head) < 10 {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n >= 2 && n <= 100_000_000 && int64(n) <= size-8 && head[8] == '{'
}
