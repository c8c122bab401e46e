package format

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

const (
	// peekBytes is how much of a compressed stream or of an archive entry is read.
	peekBytes = 64 << 10
	// streamInput is how much of a compressed stream is read to get these bytes.
	streamInput = 64 << 20
	// streamBytes replaces the unknown length of a compressed stream. If the first letters of a
	// text are read as a pickle's 32-bit length, the result is larger, which distinguishes text
	// from a pickle.
	streamBytes = 1 << 29
)

// opaque are the signatures of compressed streams that this package cannot decompress, so that
// they are not accepted as harmless: xz, zstd, lz4, lzma.
var opaque = [...]string{"\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "\x04\x22\x4d\x18", "\x5d\x00\x00"}

// sniffCompressed recognizes compressed streams, and pickles in them, which joblib.dump(...,
// compress=...) writes.
func sniffCompressed(head []byte, src io.ReaderAt) (finding, bool) {
	if bytes.HasPrefix(head, []byte("ZF0x")) { // joblib before 0.10: always a pickle
		return finding{Pickle, "compressed by joblib"}, true
	}
	inner, name := decompressor(head, io.NewSectionReader(src, 0, streamInput))
	if inner != nil {
		return sniffStream(inner, name)
	}
	for _, magic := range opaque {
		if bytes.HasPrefix(head, []byte(magic)) {
			return finding{Unknown, "a compressed stream that cannot be looked into; decompress it first"}, true
		}
	}
	return finding{}, false
}

// sniffStream classifies the first bytes of a decompressed stream. If they are corrupt and not
// a pickle, the stream's short signature was a coincidence.
func sniffStream(inner io.Reader, name string) (finding, bool) {
	peek, err := io.ReadAll(io.LimitReader(inner, peekBytes))
	size := int64(streamBytes)
	if err == nil && len(peek) < peekBytes {
		size = int64(len(peek))
	}
	if len(peek) > 0 && holdsPickle(peek, size) {
		return finding{Pickle, "compressed by " + name}, true
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return finding{}, false
	}
	return finding{Compressed, name}, true
}

// holdsPickle reports whether something of size bytes begins with a pickle.
func holdsPickle(peek []byte, size int64) bool {
	if bytes.HasPrefix(peek, []byte(npyMagic)) {
		return sniffNumpy(peek) == NumpyObject
	}
	return looksPickled(peek, bytes.NewReader(peek), size)
}

// decompressor returns a reader of the content of r and the method's name, or nil if head has
// no signature of a method that the standard library reads.
func decompressor(head []byte, r io.Reader) (io.Reader, string) {
	switch {
	case len(head) < 3:
	case head[0] == 0x1f && head[1] == 0x8b:
		if z, err := gzip.NewReader(r); err == nil {
			return z, "gzip"
		}
	case head[0]&0x0f == 8 && head[0]>>4 <= 7 && (int(head[0])<<8|int(head[1]))%31 == 0:
		if z, err := zlib.NewReader(r); err == nil {
			return z, "zlib"
		}
	case string(head[:3]) == "BZh":
		return bzip2.NewReader(r), "bzip2"
	}
	return nil, ""
}
