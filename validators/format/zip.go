package format

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/bzip2"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators/format/bound"
)

const (
	// zipFree is what an archive may expand to, whatever its own size is; beyond that, zipRatio
	// is how often its size.
	zipFree, zipRatio = 1 << 30, 200
	// skopsSchemaBytes limits how much of a skops archive's schema is read.
	skopsSchemaBytes = 32 << 20
	// zipBzip2 is the compression method that Python reads and Go does not.
	zipBzip2 = 12
)

// sniffZip recognizes zip archives by the directory at their end, like zipfile and torch.load,
// so also after other bytes. An archive that cannot be inspected completely is Unknown, because
// it could contain pickles.
func (in *inspection) sniffZip(head []byte, src *source, depth int) (finding, bool) {
	starts := startsZip(head)
	if !starts && !hasZipEnd(src) {
		return finding{}, false
	}
	if depth >= maxNesting {
		return tooDeep("a zip archive"), true
	}
	limited := &bound.Budget{R: src, Left: bound.ZipDirectoryBytes}
	entries, err := zip.NewReader(limited, src.size)
	switch {
	case errors.Is(err, bound.ErrBudget):
		return finding{kind: Unknown, detail: "a zip archive with a directory that is too large to inspect", unsafe: true}, true
	case zipHides(src, err):
		return finding{kind: Unknown, detail: "a zip archive with a directory that Python and Go find at different places", unsafe: true}, true
	case err == nil && (starts || len(entries.File) > 0):
		limited.Left = bound.ZipBytes
		return in.sniffEntries(entries, limited, src.size, depth), true
	case starts && IsName(firstEntry(head)):
		return finding{kind: PickleZip, detail: fmt.Sprintf("entry %q of a damaged archive", firstEntry(head)), unsafe: true}, true
	case starts:
		return finding{kind: Unknown, detail: "a damaged zip archive", cut: true}, true
	}
	return finding{}, false
}

// startsZip reports whether an archive starts at the first byte. A pickle can start in the same
// way, with the persistent identifier "K\x03\x04...", but an unpickler stops there unless it
// knows how to handle persistent identifiers.
func startsZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// hasZipEnd reports whether the end-of-directory signature is where readers look for it: in the
// last 22 bytes plus at most 64 KiB of comment.
func hasZipEnd(src *source) bool {
	tail := make([]byte, min(src.size, 22+1<<16))
	n, _ := src.ReadAt(tail, src.size-int64(len(tail)))
	return bytes.Contains(tail[:n], []byte("PK\x05\x06"))
}

// firstEntry returns the name in the first local header, or the part of it that head has.
func firstEntry(head []byte) string {
	if len(head) < 30 {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(head[26:]))
	return string(head[30:min(30+n, len(head))])
}

// sniffEntries checks all names first, which is enough for most archives, and then the content of
// every entry.
func (in *inspection) sniffEntries(entries *zip.Reader, src io.ReaderAt, size int64, depth int) finding {
	for _, f := range entries.File {
		if IsName(f.Name) {
			return finding{kind: PickleZip, detail: fmt.Sprintf("entry %q", f.Name), unsafe: true}
		}
	}
	if in.entries -= len(entries.File); in.entries < 0 {
		return finding{kind: Unknown, detail: fmt.Sprintf("a zip archive with %d entries, more than can be looked into", len(entries.File)), unsafe: true}
	}
	all := archive{noun: "a zip archive", plain: Zip, pickled: PickleZip, found: finding{kind: Zip}}
	if why := zipProblem(entries, size); why != "" {
		all.worse(finding{kind: Unknown, detail: "a zip archive " + why, unsafe: true})
	}
	entries.RegisterDecompressor(zipBzip2, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	for _, f := range entries.File {
		if strings.HasSuffix(f.Name, "/") { // a folder, or zipProblem has objected
			continue
		}
		member, err := in.zipMember(src, f)
		if err != nil {
			all.worse(finding{kind: Unknown, detail: fmt.Sprintf("a zip archive with an entry %q that cannot be looked into: %v", f.Name, err), unsafe: true})
			if errors.Is(err, errExpands) {
				break
			}
			continue
		}
		if all.add(f.Name, in.classifyMember(f.Name, member, depth+1)) {
			return all.found
		}
	}
	if all.found.kind == Zip && hasSkopsSchema(entries) {
		all.found.kind = Skops
	}
	return all.found
}

// zipMember is the content of an entry: in its place if it is stored as it is, else decompressed.
func (in *inspection) zipMember(src io.ReaderAt, f *zip.File) (*source, error) {
	if f.Flags&1 != 0 {
		return nil, errEncrypted
	}
	if f.Method == zip.Store {
		from, err := f.DataOffset()
		if err != nil || f.CompressedSize64 != f.UncompressedSize64 || f.CompressedSize64 > 1<<62 {
			return nil, errors.Join(err, errSizes)
		}
		size := int64(f.CompressedSize64)
		return &source{r: io.NewSectionReader(src, from, size), size: size}, nil
	}
	body, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return in.member(counted{in, body}, int64(min(f.UncompressedSize64, 1<<62)))
}

// zipProblem says what is wrong with an archive that should not be unpacked; empty for nothing.
func zipProblem(entries *zip.Reader, size int64) string {
	type span struct{ from, end int64 }
	var spans []span
	var expanded uint64
	for _, f := range entries.File {
		switch {
		case leaves(f.Name):
			return fmt.Sprintf("with an entry %q that would be written outside its folder", f.Name)
		case isRenamed(f):
			return fmt.Sprintf("with an entry %q that has another name for some readers", f.Name)
		case f.Mode()&fs.ModeSymlink != 0:
			return fmt.Sprintf("with an entry %q that is a link, which could lead outside its folder", f.Name)
		case f.FileInfo().IsDir() && !isFolder(f):
			return fmt.Sprintf("with an entry %q that is a folder with bytes of its own", f.Name)
		}
		if sum := expanded + f.UncompressedSize64; sum >= expanded {
			expanded = sum
		} else {
			expanded = 1<<64 - 1
		}
		if from, err := f.DataOffset(); err == nil && f.CompressedSize64 > 0 {
			spans = append(spans, span{from, from + int64(min(f.CompressedSize64, 1<<62))})
		}
	}
	if expanded > zipFree && expanded/zipRatio > uint64(size) {
		return fmt.Sprintf("of %d bytes that expands to %d (a zip bomb?)", size, expanded)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].end {
			return "with entries that overlap (a zip bomb?)"
		}
	}
	return ""
}

// isFolder reports whether an entry is a folder for every reader. Some go by the attributes, others
// like Python's zipfile by the name, and read what is left as a file. Java compresses the nothing
// in a folder, to two bytes.
func isFolder(f *zip.File) bool {
	empty := f.CompressedSize64 == 0 || f.Method == zip.Deflate && f.CompressedSize64 <= 2
	return strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0 && empty
}

// zipUnicodePath is the extra field in which an entry has a second name, in UTF-8 (APPNOTE.TXT, 4.6.9).
const zipUnicodePath = 0x7075

// isRenamed reports whether an entry has a second name that is not its first. Python from 3.12 on and Info-ZIP
// go by the second, and Go by the first.
func isRenamed(f *zip.File) bool {
	for extra := f.Extra; len(extra) >= 4; {
		kind, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if n > len(extra)-4 {
			return kind == zipUnicodePath
		}
		if kind == zipUnicodePath && (n < 5 || string(extra[9:4+n]) != f.Name) { // behind a version and a checksum
			return true
		}
		extra = extra[4+n:]
	}
	return false
}

// hasSkopsSchema recognizes what skops writes beside its arrays: one JSON object, whose root
// has the class and the version of skops.
func hasSkopsSchema(archive *zip.Reader) bool {
	body, err := archive.Open("schema.json")
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }() // only read from
	var schema struct {
		Class   *string `json:"__class__"`
		Version *string `json:"_skops_version"`
	}
	err = json.NewDecoder(io.LimitReader(body, skopsSchemaBytes)).Decode(&schema)
	return err == nil && schema.Class != nil && schema.Version != nil
}

var (
	errEncrypted = errors.New("entry is encrypted")
	errSizes     = errors.New("it states two sizes")
)

// IsName reports whether an entry's name alone identifies a pickle.
func IsName(name string) bool {
	name = strings.ToLower(name)
	for _, ext := range []string{".pkl", ".pickle", ".joblib", ".dill"} {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}
