package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/validators/format/classical"
	"mlpromote.dev/mlpromote/validators/format/jax"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/format/pickle"
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
	// unsafe is true if the file harms whoever unpacks it, or hides what is in it.
	unsafe bool
	cut    bool // it begins as an archive that has no readable end, such as a file that was not copied whole
}

// hidden reports whether the file holds something that was not inspected.
func (f finding) hidden() bool { return f.kind == Unknown && f.detail != "" }

// refused reports whether a file in a container gets the container refused, unless a label says
// that it may be native code.
func (f finding) refused() bool { return f.hidden() || f.kind.CarriesCode() }

// inspect does Sniff, and also returns the reason and the first error of r.
func inspect(r io.ReaderAt, size int64) (finding, error) {
	if size <= 0 {
		return finding{kind: Empty}, nil
	}
	src := &source{r: r, size: size}
	found := newInspection().classify(src, 0)
	if src.err != nil {
		return finding{}, src.err
	}
	return found, nil
}

// classify tries the recognizers, those of dangerous kinds first. depth counts the containers
// around src.
func (in *inspection) classify(src *source, depth int) finding {
	if src.size <= 0 {
		return finding{kind: Empty}
	}
	head := src.head(headBytes)
	if !startsZip(head) && pickle.Is(head, src, src.size) {
		return finding{kind: Pickle}
	}
	if found := sniffKeras(head, src); found.refused() { // also if its beginning is the header of a tar
		return found
	}
	if found, ok := in.sniffArchive(head, src, depth); ok {
		return found
	}
	stream, compressed := in.sniffCompressed(head, src, depth)
	if stream.refused() {
		return stream
	}
	if found := sniffMagic(head); found.kind != Unknown || found.detail != "" {
		return found
	}
	switch {
	case hasHDF5(src):
		return finding{kind: HDF5, detail: hdf5Detail(src)}
	case isSafetensors(head, src.size):
		return finding{kind: Safetensors}
	case onnx.Is(src, src.size):
		return finding{kind: ONNX}
	case isSavedModel(src, src.size):
		return finding{kind: SavedModel}
	case compressed:
		return stream
	case jax.IsExport(src, src.size):
		return finding{kind: JAXExport}
	}
	return finding{kind: sniffFlatbuffer(head)}
}

// sniffArchive inspects archives. A file can be two: a tar archive with a zip archive at its end.
func (in *inspection) sniffArchive(head []byte, src *source, depth int) (finding, bool) {
	if !isTar(head) {
		return in.sniffZip(head, src, depth)
	}
	found := in.sniffTar(src, depth)
	if found.kind.pickled() {
		return found, true
	}
	if zipped, ok := in.sniffZip(head, src, depth); ok && zipped.kind.rank() > found.kind.rank() {
		return zipped, true
	}
	return found, true
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

// sniffMagic recognizes the formats that begin with a magic number, and headers of absurd sizes.
func sniffMagic(head []byte) finding {
	switch {
	case bytes.HasPrefix(head, []byte(npyMagic)):
		return sniffNumpy(head)
	case bytes.HasPrefix(head, []byte("GGUF")):
		return finding{kind: GGUF}
	case classical.IsXGBoost(head):
		return finding{kind: XGBoost}
	case classical.IsLightGBM(head):
		return finding{kind: LightGBM}
	case classical.IsPMML(head):
		return finding{kind: PMML}
	case bytes.HasPrefix(head, []byte("ptrt")), bytes.HasPrefix(head, []byte("ftrt")):
		return finding{kind: TensorRT}
	case isNative(head):
		return finding{kind: NativeObject}
	case safetensorsTooLong(head):
		return finding{kind: Unknown, detail: fmt.Sprintf("a safetensors file whose header says that it has %d bytes: at most %d are read",
			binary.LittleEndian.Uint64(head), maxSafetensors), unsafe: true}
	}
	return finding{}
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
	case "IREE":
		return IREE
	}
	return Unknown
}

// nativeMagic are the beginnings of native code other than PE: ELF, Mach-O (both byte orders, 32
// and 64 bit, universal), static libraries, LLVM bitcode, and NVIDIA's container of GPU code.
var nativeMagic = [...]string{
	"\x7fELF", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe",
	"!<arch>\n", "BC\xc0\xde", "\x50\xed\x55\xba",
}

// isNative recognizes native code. For PE it checks more than the two magic letters, which text
// could also have.
func isNative(head []byte) bool {
	for _, magic := range nativeMagic {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
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

// maxSafetensors is the longest header, in bytes, that the safetensors library reads.
const maxSafetensors = 100_000_000

// isSafetensors checks the header's length, and that a JSON object starts there.
func isSafetensors(head []byte, size int64) bool {
	if len(head) < 10 {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n >= 2 && n <= maxSafetensors && int64(n) <= size-8 && head[8] == '{'
}

// safetensorsTooLong recognizes a header that no reader should make room for. In a text, the
// bytes of the length are letters.
func safetensorsTooLong(head []byte) bool {
	if len(head) < 10 || head[8] != '{' || head[9] != '"' && head[9] != '}' || binary.LittleEndian.Uint64(head) <= maxSafetensors {
		return false
	}
	return bytes.ContainsFunc(head[:8], func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == utf8.RuneError })
}
