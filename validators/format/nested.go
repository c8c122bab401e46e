package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

const (
	// maxNesting is how many containers may be around a file: an archive in a compressed stream
	// in an archive.
	maxNesting = 4
	// maxExpanded limits the bytes that are decompressed to inspect one file, with all that is in
	// it. It bounds the time that a zip bomb costs.
	maxExpanded = 512 << 20
	// maxMember limits the bytes of one member that are in memory. Of a longer one, the rest is
	// not inspected.
	maxMember = 16 << 20
	// maxEntries limits the entries that are inspected, of all archives together.
	maxEntries = 4096
)

// inspection is the inspection of one file: what it may still cost.
type inspection struct {
	bytes   int64 // that may still be decompressed
	entries int   // that may still be inspected
}

func newInspection() *inspection { return &inspection{bytes: maxExpanded, entries: maxEntries} }

var (
	errExpands = errors.New("it expands too much")
	errTail    = errors.New("it may have an archive at its end")
	errLong    = errors.New("it is too long")
)

// counted counts what is decompressed.
type counted struct {
	in *inspection
	r  io.Reader
}

func (c counted) Read(p []byte) (int, error) {
	if c.in.bytes <= 0 {
		return 0, errExpands
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.in.bytes)])
	c.in.bytes -= int64(n)
	return n, err
}

// member decompresses a member to its end, and keeps the beginning in memory. size is how long it
// claims to be. Errors: errExpands, errTail, and those of r.
func (in *inspection) member(r io.Reader, size int64) (*source, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxMember))
	if err != nil {
		return nil, err
	}
	more, err := drain(r)
	if err != nil {
		return nil, err
	}
	if more == 0 {
		return partial(data, int64(len(data))), nil
	}
	return partial(data, max(size, int64(len(data))+more)), nil
}

// drain reads the rest of a member, which is not kept, and returns its length. Errors: errTail if
// there may be a zip archive at its end.
func drain(r io.Reader) (int64, error) {
	var n int64
	var last, before []byte
	for buf := make([]byte, 1<<16); ; {
		got, err := io.ReadFull(r, buf)
		n += int64(got)
		if got > 0 {
			before, last = append(before[:0], last...), append(last[:0], buf[:got]...)
		}
		switch ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); {
		case err == nil:
		case errors.Is(err, errExpands), errors.Is(err, errLong):
			return n, err
		case bytes.Contains(append(before, last...), []byte("PK\x05\x06")): // also if it broke there
			return n, errTail
		case ended:
			return n, nil
		default:
			return n, err
		}
	}
}

// partial is a source of which only the beginning is at hand.
func partial(data []byte, size int64) *source {
	return &source{r: readerAt(data), size: size}
}

// readerAt are bytes in memory.
type readerAt []byte

func (b readerAt) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// archive collects what is found in the members of an archive.
type archive struct {
	noun    string // "a zip archive"
	plain   Kind   // if nothing is found
	pickled Kind
	found   finding
}

// add takes the finding of an entry, and reports whether nothing worse can be found.
func (a *archive) add(name string, f finding) bool {
	where := fmt.Sprintf("entry %q", name)
	switch {
	case f.detail != "" && f.kind != Unknown:
		where += ", " + f.detail
	case f.detail != "":
		where = fmt.Sprintf("%s whose entry %q is %s", a.noun, name, f.detail)
	}
	switch {
	case f.kind.pickled():
		a.found = finding{kind: a.pickled, detail: where, unsafe: true}
		return true
	case f.kind == Keras && !a.found.kind.pickled():
		a.found = finding{kind: Keras, detail: where, unsafe: true}
	case f.kind.risky() && a.found.kind.rank() < CodeArchive.rank():
		a.found = finding{kind: CodeArchive, detail: where + ": " + f.kind.Describe(), unsafe: true}
	case f.hidden() && a.found.kind.rank() < Unknown.rank():
		a.found = finding{kind: Unknown, detail: where, unsafe: f.unsafe}
	case f.kind.native() && a.found.kind == a.plain:
		a.found = finding{kind: NativeArchive, detail: where + ": " + f.kind.Describe()}
	}
	return false
}

// rank orders what archives can be found to be, from harmless to dangerous.
func (k Kind) rank() int {
	switch {
	case k.pickled():
		return 4
	case k.risky():
		return 3
	case k == Unknown:
		return 2
	case k.native():
		return 1
	}
	return 0
}

// risky reports whether k runs code when it is loaded, whatever a label says.
func (k Kind) risky() bool { return kinds[k.row()].risk == riskCode }

// leaves reports whether an entry of an archive would be written outside the folder that it is
// unpacked into, on any system.
func leaves(name string) bool {
	name = strings.TrimSuffix(name, "/")
	if name == "" || name == "." || strings.ContainsAny(name, "\\\x00") || strings.HasPrefix(name, "/") ||
		len(name) > 1 && name[1] == ':' {
		return true
	}
	clean := path.Clean(name)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

// classifyMember classifies an entry of an archive, by its name too.
func (in *inspection) classifyMember(name string, src *source, depth int) finding {
	if IsName(name) {
		return finding{kind: Pickle}
	}
	found := in.classify(src, depth)
	if src.err != nil {
		return finding{kind: Unknown, detail: "unreadable", unsafe: true}
	}
	if !found.refused() && hiddenConfig(name, src) {
		return finding{kind: Unknown, detail: "a configuration that cannot be looked into to its end"}
	}
	return found
}

// tooDeep is the finding of a container inside too many others.
func tooDeep(what string) finding {
	return finding{kind: Unknown, detail: fmt.Sprintf("%s inside more than %d others, which is not looked into", what, maxNesting), unsafe: true}
}
