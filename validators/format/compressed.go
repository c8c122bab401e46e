package format

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// streamInput is how much of a compressed stream is read to look at its content.
	streamInput = 512 << 20
	// streamBytes replaces the unknown length of a compressed stream. If the first letters of a
	// text are read as a pickle's 32-bit length, the result is larger, which distinguishes text
	// from a pickle.
	streamBytes = 1 << 29
)

// opaque are the signatures of compressed streams that this package cannot decompress, so that
// they are not accepted as harmless: xz, zstd, lz4.
var opaque = [...]string{"\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "\x04\x22\x4d\x18"}

// sniffCompressed recognizes compressed streams and inspects what is in them: a pickle, which
// joblib.dump(..., compress=...) writes, or an archive.
func (in *inspection) sniffCompressed(head []byte, src io.ReaderAt, depth int) (finding, bool) {
	if bytes.HasPrefix(head, []byte("ZF0x")) { // joblib before 0.10: always a pickle
		return finding{Pickle, "compressed by joblib", true}, true
	}
	inner, name := decompressor(head, io.NewSectionReader(src, 0, streamInput))
	if inner != nil {
		return in.sniffStream(inner, name, depth)
	}
	if isOpaque(head) {
		return finding{Unknown, "a compressed stream that cannot be looked into; decompress it first", false}, true
	}
	return finding{}, false
}

func isOpaque(head []byte) bool {
	for _, magic := range opaque {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return isLZMA(head)
}

// isLZMA recognizes the old format of lzma, which has no signature, as xz does: by properties, a
// size of the dictionary that is a power of two or halfway between two, and an unknown or
// plausible length (liblzma, lzma_alone_decoder).
func isLZMA(head []byte) bool {
	if len(head) < 13 || head[0] > (4*5+4)*9+8 || head[0] != 0x5d && head[0] != 0x6d {
		return false
	}
	dictionary, length := binary.LittleEndian.Uint32(head[1:]), binary.LittleEndian.Uint64(head[5:])
	top := dictionary &^ (dictionary >> 1)
	plausible := dictionary >= 4096 && (dictionary&(dictionary-1) == 0 || dictionary == top|top>>1)
	return plausible && (length == 1<<64-1 || length > 0 && length < 1<<38)
}

// sniffStream classifies what a stream decompresses to. If that is corrupt and not a pickle, the
// stream's short signature was a coincidence.
func (in *inspection) sniffStream(inner io.Reader, name string, depth int) (finding, bool) {
	if depth >= maxNesting {
		return tooDeep("a compressed stream"), true
	}
	content := bufio.NewReaderSize(counted{in, inner}, headBytes)
	if peek, _ := content.Peek(tarBlock); isTar(peek) {
		return in.tarStream(content, depth+1).within("compressed by " + name), true
	}
	member, corrupt, err := in.stream(content)
	if err != nil {
		return finding{Unknown, fmt.Sprintf("a compressed stream of %s that cannot be looked into, because %v", name, err), true}, true
	}
	if member.size == 0 {
		return finding{kind: Compressed, detail: name}, !corrupt
	}
	found := in.classify(member, depth+1)
	switch {
	case found.kind.pickled():
		return found.within("compressed by " + name), true
	case corrupt:
		return finding{}, false
	case found.hidden() || found.kind.CarriesCode():
		return found.within("compressed by " + name), true
	}
	return finding{kind: Compressed, detail: name}, true
}

// stream decompresses a stream to its end, and keeps the beginning. corrupt is true if the bytes
// are not such a stream; one that only ends too early is. Errors: errExpands, errTail.
func (in *inspection) stream(r io.Reader) (src *source, corrupt bool, err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxMember))
	more := int64(0)
	if err == nil {
		more, err = drain(r)
	}
	cut := errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case errors.Is(err, errExpands), errors.Is(err, errTail):
		return nil, false, err
	case err == nil && more == 0:
		return partial(data, int64(len(data))), false, nil
	case len(data) == 0:
		return partial(nil, 0), !cut, nil
	}
	return partial(data, streamBytes), err != nil && !cut, nil
}

// within adds how a file was wrapped to its finding.
func (f finding) within(how string) finding {
	if f.detail != "" {
		how += ", " + f.detail
	}
	f.detail = how
	return f
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
