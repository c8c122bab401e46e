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
func (in *inspection) sniffCompressed(head []byte, src *source, depth int) (finding, bool) {
	if bytes.HasPrefix(head, []byte("ZF0x")) { // joblib before 0.10: always a pickle
		return finding{kind: Pickle, detail: "compressed by joblib", unsafe: true}, true
	}
	if inner := decompressor(head, streamOf(src)); inner != nil {
		return in.sniffStream(inner, depth)
	}
	if isOpaque(head) {
		return finding{kind: Unknown, detail: "a compressed stream that cannot be looked into; decompress it first"}, true
	}
	return finding{}, false
}

// streamOf reads a file as a stream, and fails where more of it would be read than is looked at.
func streamOf(src *source) io.Reader {
	r := io.NewSectionReader(src, 0, min(src.size, streamInput))
	if src.size <= streamInput {
		return r
	}
	return io.MultiReader(r, failing{errLong})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

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

// sniffStream classifies what a stream decompresses to. If that is corrupt and harmless, and the
// signature short, it was a coincidence.
func (in *inspection) sniffStream(z *stream, depth int) (finding, bool) {
	if depth >= maxNesting {
		return tooDeep("a compressed stream"), true
	}
	content := bufio.NewReaderSize(counted{in, z}, headBytes)
	if peek, _ := content.Peek(tarBlock); isTar(peek) && !startsJSON(peek) {
		return in.tarStream(content, depth+1).within("compressed by " + z.name), true
	}
	data, more, err := in.decompress(content)
	if errors.Is(err, errExpands) || errors.Is(err, errTail) || errors.Is(err, errLong) {
		return finding{kind: Unknown, detail: fmt.Sprintf("a compressed stream of %s that cannot be looked into, because %v", z.name, err), unsafe: true}, true
	}
	corrupt := err != nil && !errors.Is(err, io.ErrUnexpectedEOF)
	switch found := in.classifyStream(data, more, err, depth+1); {
	case found.refused():
		return found.within("compressed by " + z.name), true
	case corrupt && z.sure:
		return finding{kind: Unknown, detail: "a damaged stream of " + z.name}, true
	case corrupt:
		return finding{}, false
	}
	return finding{kind: Compressed, detail: z.name}, true
}

// decompress reads a stream to its end, and keeps the beginning; more is how much is behind that.
func (in *inspection) decompress(r io.Reader) (data []byte, more int64, err error) {
	data, err = io.ReadAll(io.LimitReader(r, maxMember))
	if err == nil {
		more, err = drain(r)
	}
	return data, more, err
}

// classifyStream classifies what came out of a stream before it ended with err. Of one that broke,
// a reader may see what came out as a whole, or the beginning of something longer.
func (in *inspection) classifyStream(data []byte, more int64, err error, depth int) finding {
	if err == nil && more > 0 {
		return in.classify(partial(data, streamBytes), depth)
	}
	found := in.classify(partial(data, int64(len(data))), depth)
	if err == nil || len(data) == 0 || found.refused() {
		return found
	}
	return in.classify(partial(data, streamBytes), depth)
}

// within adds how a file was wrapped to its finding.
func (f finding) within(how string) finding {
	if f.detail != "" {
		how += ", " + f.detail
	}
	f.detail = how
	return f
}

// stream is a compressed stream: its content, and the name of its method. sure is false if the
// signature is so short that other files begin with it too.
type stream struct {
	r    io.Reader
	name string
	sure bool
	err  error // of r
}

// Read repeats an error for good. The readers of the standard library would read on after some, and
// bufio forgets those that it has reported once.
func (z *stream) Read(p []byte) (n int, err error) {
	if z.err == nil {
		n, z.err = z.r.Read(p)
	}
	return n, z.err
}

// decompressor returns the stream in r, or nil if head has no signature of a method that the
// standard library reads.
func decompressor(head []byte, r io.Reader) *stream {
	switch {
	case len(head) < 3:
	case string(head[:3]) == gzipMagic:
		return &stream{r: &gzipMembers{r: bufio.NewReaderSize(r, 1<<16)}, name: "gzip", sure: true}
	case head[0]&0x0f == 8 && head[0]>>4 <= 7 && (int(head[0])<<8|int(head[1]))%31 == 0:
		if z, err := zlib.NewReader(r); err == nil {
			return &stream{r: z, name: "zlib", sure: false}
		}
	case string(head[:3]) == "BZh":
		return &stream{r: bzip2Members{bzip2.NewReader(r)}, name: "bzip2", sure: isBzip2(head)}
	}
	return nil
}

// gzipMagic are the signature and the only method of gzip (RFC 1952, 2.3).
const gzipMagic = "\x1f\x8b\x08"

// gzipMembers reads the members of a gzip file as Python does: zeros between them are skipped, and
// the file ends where no other member begins. To Go's reader both are errors.
type gzipMembers struct {
	r *bufio.Reader
	z *gzip.Reader // of the current member; nil before the first
}

func (m *gzipMembers) Read(p []byte) (int, error) {
	for {
		if m.z != nil {
			n, err := m.z.Read(p)
			if n > 0 && errors.Is(err, io.EOF) {
				err = nil
			}
			if n > 0 || !errors.Is(err, io.EOF) {
				return n, err
			}
		}
		if err := m.next(); err != nil {
			return 0, err
		}
	}
}

// next goes to the next member. Errors: io.EOF if there is none.
func (m *gzipMembers) next() (err error) {
	if m.z == nil {
		if m.z, err = gzip.NewReader(m.r); err == nil {
			m.z.Multistream(false)
		}
		return err
	}
	for c := byte(0); c == 0; {
		if c, err = m.r.ReadByte(); err != nil {
			return err
		}
	}
	if err := m.r.UnreadByte(); err != nil {
		return err
	}
	if magic, _ := m.r.Peek(len(gzipMagic)); string(magic) != gzipMagic {
		return io.EOF
	}
	if err := m.z.Reset(m.r); err != nil {
		return err
	}
	m.z.Multistream(false)
	return nil
}

// bzip2Members ends where no other stream follows, as for Python. To Go's reader that is an error.
type bzip2Members struct{ r io.Reader }

func (m bzip2Members) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if errors.Is(err, bzip2.StructuralError("bad magic value in continuation file")) {
		err = io.EOF
	}
	return n, err
}

// isBzip2 recognizes a stream by its level and the signature of a block or of its end, which no
// text has. Go's reader does not read all of them: not randomized blocks.
func isBzip2(head []byte) bool {
	if len(head) < 10 || head[3] < '1' || head[3] > '9' {
		return false
	}
	block := string(head[4:10])
	return block == "1AY&SY" || block == "\x17\x72\x45\x38\x50\x90"
}
