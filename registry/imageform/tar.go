package imageform

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Folder is the folder of the layer that has the files of the engine.
const Folder = "models"

// Sizes of the tar format.
const (
	block    = 512
	trailer  = 2 * block // of zeros, at the end of an archive
	maxName  = 100       // bytes of a name in the header
	maxOctal = 1<<33 - 1 // bytes of a file in the header: 11 octal digits
)

// whiteout begins the base names by which an image layer deletes files of the layers below it.
const whiteout = ".wh."

// Open opens a file of an engine. The caller closes it.
type Open func(f artifact.File) (io.ReadCloser, error)

// Layer describes the layer of an engine: a tar archive in the USTAR format of POSIX.1-2017, pax. It has the folder models/,
// every folder of a file, and the files, in byte order of their names. Names of folders end with a slash. All have owner and
// group 0 and the time 0, folders the mode 0755 and files the mode 0644. A pax extended header precedes an entry only if its
// name is longer than 100 bytes or not ASCII, or if it has 8 GiB or more. Two blocks of zeros end the archive.
type Layer struct {
	entries []entry
	size    int64
}

// entry is a folder or a file of the archive.
type entry struct {
	name string // "models/", "models/model.onnx"
	file artifact.File
}

func (e entry) folder() bool { return strings.HasSuffix(e.name, "/") }

// NewLayer returns the layer of an engine with these files, in any order. Errors: CodeInvalid for names
// that cannot be in one folder or that image layers use for deletions, and for negative sizes.
func NewLayer(files []artifact.File) (Layer, error) {
	folders, seen := map[string]bool{Folder + "/": true}, make(map[string]bool, len(files))
	l := Layer{size: trailer}
	for _, f := range files {
		if err := checkFile(f); err != nil {
			return Layer{}, err
		}
		if seen[f.Path] {
			return Layer{}, registry.Errorf(registry.CodeInvalid, "image form: two files are named %q", f.Path)
		}
		seen[f.Path] = true
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			folders[Folder+"/"+dir+"/"] = true
		}
		l.entries = append(l.entries, entry{Folder + "/" + f.Path, f})
	}
	for name := range folders {
		if seen[strings.TrimSuffix(strings.TrimPrefix(name, Folder+"/"), "/")] {
			return Layer{}, registry.Errorf(registry.CodeInvalid, "image form: %q is a file and a folder", strings.TrimSuffix(name, "/"))
		}
		l.entries = append(l.entries, entry{name: name})
	}
	slices.SortFunc(l.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range l.entries {
		l.size += int64(len(header(e))) + e.file.Size + padding(e.file.Size)
	}
	return l, nil
}

// checkFile refuses a file that an image layer cannot hold.
func checkFile(f artifact.File) error {
	switch {
	case !fs.ValidPath(f.Path) || f.Path == "." || strings.ContainsRune(f.Path, 0):
		return registry.Errorf(registry.CodeInvalid, "image form: file name %q: want a relative path with '/' that stays in its folder", f.Path)
	case f.Size < 0 || f.Size > 1<<50:
		return registry.Errorf(registry.CodeInvalid, "image form: file %q has %d bytes: want at least 0, and at most 1 PiB", f.Path, f.Size)
	}
	for _, base := range strings.Split(f.Path, "/") {
		if strings.HasPrefix(base, whiteout) {
			return registry.Errorf(registry.CodeInvalid,
				"image form: file name %q: names that begin with %s delete files in images: rename it", f.Path, whiteout)
		}
	}
	return nil
}

// Size returns the size of the layer in bytes.
func (l Layer) Size() int64 { return l.size }

// Open returns the bytes of the layer. It opens one file at a time, and reads each to its end. Reading returns the errors
// of open and of its files, and CodeDigest for a file that has another size. The caller closes the reader.
func (l Layer) Open(open Open) io.ReadCloser { return &reader{open: open, left: l.entries} }

// Piece is a part of a layer: literal bytes, or all bytes of a file.
type Piece struct {
	Literal []byte
	File    artifact.File // if Literal is empty
}

// Pieces returns the pieces of the layer in their order. Its literal bytes follow no others, and none is empty. Errors:
// CodeInvalid if there are more than maxLiteral literal bytes.
func (l Layer) Pieces(maxLiteral int) ([]Piece, error) {
	var pieces []Piece
	var literal []byte
	left := maxLiteral
	add := func(more []byte) { literal, left = append(literal, more...), left-len(more) }
	for _, e := range l.entries {
		if add(header(e)); left < 0 {
			break
		}
		if e.file.Size > 0 {
			pieces = append(pieces, Piece{Literal: literal}, Piece{File: e.file})
			literal = nil
			add(make([]byte, padding(e.file.Size)))
		}
	}
	if add(make([]byte, trailer)); left < 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "image form: the headers of the layer have more than %d bytes", maxLiteral)
	}
	return append(pieces, Piece{Literal: literal}), nil
}

// reader reads a layer piece by piece: the header of an entry, its file, zeros.
type reader struct {
	open Open
	left []entry // whose header was not read yet
	now  []byte  // of the current piece, if that is not a file
	file *exact  // the current file
	end  bool    // the last piece is the current one
	err  error
}

// Read reads the next bytes of the layer.
func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil && len(p) > 0 {
		if len(r.now) > 0 {
			n := copy(p, r.now)
			r.now = r.now[n:]
			return n, nil
		}
		if r.file == nil {
			r.err = r.next()
			continue
		}
		n, err := r.file.Read(p)
		if errors.Is(err, io.EOF) {
			r.now, err = make([]byte, padding(r.file.want.Size)), r.file.Close()
			r.file = nil
		}
		if r.err = err; n > 0 {
			return n, r.err
		}
	}
	if len(p) == 0 && r.err == nil {
		return 0, nil
	}
	return 0, r.err
}

// next begins the next entry, or the end of the archive.
func (r *reader) next() error {
	if r.end {
		return io.EOF
	}
	if len(r.left) == 0 {
		r.now, r.end = make([]byte, trailer), true
		return nil
	}
	e := r.left[0]
	r.left, r.now = r.left[1:], header(e)
	if e.folder() {
		return nil
	}
	rc, err := r.open(e.file)
	if err != nil {
		return err
	}
	r.file = &exact{ReadCloser: rc, want: e.file}
	return nil
}

// Close closes the file that is being read.
func (r *reader) Close() error {
	if r.err == nil {
		r.err = registry.Errorf(registry.CodeInternal, "image form: the layer is closed")
	}
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	return file.Close()
}

// exact reads a file to its end, and compares its size.
type exact struct {
	io.ReadCloser
	want artifact.File
	read int64
}

func (f *exact) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.read += int64(n)
	if f.read > f.want.Size || errors.Is(err, io.EOF) && f.read < f.want.Size {
		return 0, registry.Errorf(registry.CodeDigest, "image form: file %q has another size than %d bytes", f.want.Path, f.want.Size)
	}
	return n, err
}

// padding returns how many zeros follow a file of a size.
func padding(size int64) int64 { return (block - size%block) % block }

// header returns the header of an entry, and the pax header before it if the entry needs one.
func header(e entry) []byte {
	name, size, records := e.name, e.file.Size, ""
	if len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		name, records = longName, record("path", e.name)
	}
	if size > maxOctal {
		size, records = 0, records+record("size", strconv.FormatInt(e.file.Size, 10))
	}
	kind, mode := byte('0'), 0o644
	if e.folder() {
		kind, mode = '5', 0o755
	}
	var out []byte
	if records != "" {
		out = append(raw(paxName, 'x', 0o644, int64(len(records))), records...)
		out = append(out, make([]byte, padding(int64(len(records))))...)
	}
	return append(out, raw(name, kind, mode, size)...)
}

// Names in headers whose real names are in a pax record, and of pax headers.
const (
	longName = Folder + "/@LongName"
	paxName  = Folder + "/@PaxHeader"
)

// record returns a pax record: its own length, a space, key=value and a line feed.
func record(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	n := len(rest)
	for n != len(strconv.Itoa(n))+len(rest) {
		n = len(strconv.Itoa(n)) + len(rest)
	}
	return strconv.Itoa(n) + rest
}

// raw returns one USTAR header.
func raw(name string, kind byte, mode int, size int64) []byte {
	h := make([]byte, block)
	copy(h, name)
	octal(h[100:108], int64(mode))
	octal(h[108:116], 0) // owner
	octal(h[116:124], 0) // group
	octal(h[124:136], size)
	octal(h[136:148], 0) // time
	copy(h[148:156], bytes.Repeat([]byte{' '}, 8))
	h[156] = kind
	copy(h[257:265], "ustar\x0000")
	octal(h[329:337], 0) // device
	octal(h[337:345], 0)
	var sum int64
	for _, b := range h {
		sum += int64(b)
	}
	octal(h[148:155], sum) // six digits, a zero, and the space that is there
	return h
}

// octal writes a number with leading zeros, and a zero byte at the end.
func octal(field []byte, n int64) {
	digits := strconv.FormatInt(n, 8)
	at := len(field) - 1 - len(digits)
	for i := range at {
		field[i] = '0'
	}
	copy(field[at:], digits)
	field[len(field)-1] = 0
}
