package format

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// tarBlock is the size of a header, and what contents are padded to (POSIX.1-2017, pax).
const tarBlock = 512

// isTar checks the checksum of the first header, which the oldest archives have too.
func isTar(head []byte) bool {
	if len(head) < tarBlock || head[0] == 0 {
		return false
	}
	want, err := strconv.ParseInt(strings.Trim(string(head[148:156]), " \x00"), 8, 64)
	if err != nil {
		return false
	}
	sum := int64(8 * ' ') // in place of the checksum itself
	for i, c := range head[:tarBlock] {
		if i < 148 || i >= 156 {
			sum += int64(c)
		}
	}
	return sum == want
}

// sniffTar inspects the entries of an archive that can be read at any place.
func (in *inspection) sniffTar(src *source, depth int) finding {
	if depth >= maxNesting {
		return tooDeep("a tar archive")
	}
	at := io.NewSectionReader(src, 0, src.size)
	return in.tarEntries(at, depth, func(h *tar.Header, body io.Reader) (*source, error) {
		from, err := at.Seek(0, io.SeekCurrent) // tar reads whole blocks and nothing ahead
		if err != nil || h.Size > src.size-from {
			return in.member(body, h.Size)
		}
		return &source{r: io.NewSectionReader(src, from, h.Size), size: h.Size}, nil
	})
}

// tarStream inspects the entries of an archive that comes out of a decompressor.
func (in *inspection) tarStream(r io.Reader, depth int) finding {
	return in.tarEntries(r, depth, func(h *tar.Header, body io.Reader) (*source, error) {
		return in.member(body, h.Size)
	})
}

// tarEntries inspects all entries, in order.
func (in *inspection) tarEntries(r io.Reader, depth int, open func(*tar.Header, io.Reader) (*source, error)) finding {
	all := archive{noun: "a tar archive", plain: Tar, pickled: PickleTar, found: finding{kind: Tar}}
	for entries := tar.NewReader(r); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return all.found
		}
		if found, stop := in.tarEntry(err); stop {
			all.worse(found)
			return all.found
		}
		if why := tarProblem(h); why != "" {
			all.worse(finding{kind: Unknown, detail: fmt.Sprintf("a tar archive; its entry %q %s", h.Name, why), unsafe: true})
			continue
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		member, err := open(h, entries)
		if err != nil {
			all.worse(finding{kind: Unknown, detail: fmt.Sprintf("a tar archive with an entry %q that cannot be looked into: %v", h.Name, err), unsafe: true})
			return all.found
		}
		if all.add(h.Name, in.classifyMember(h.Name, member, depth+1)) {
			return all.found
		}
	}
}

// tarEntry counts an entry, and reports whether the archive cannot be inspected further.
func (in *inspection) tarEntry(err error) (finding, bool) {
	if err != nil {
		return finding{kind: Unknown, detail: "a tar archive that is damaged or expands too much", unsafe: true}, true
	}
	if in.entries--; in.entries < 0 {
		return finding{kind: Unknown, detail: fmt.Sprintf("a tar archive with more than %d entries, more than can be looked into", maxEntries), unsafe: true}, true
	}
	return finding{}, false
}

// worse replaces what was found by what is more dangerous.
func (a *archive) worse(f finding) {
	if a.found.kind.rank() < f.kind.rank() {
		a.found = f
	}
}

// tarProblem says what is wrong with an entry that should not be unpacked; empty for nothing.
func tarProblem(h *tar.Header) string {
	if why := paxProblem(h); why != "" {
		return why
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader:
		if h.Typeflag != tar.TypeXGlobalHeader && h.Name != "./" && leaves(h.Name) {
			return "would be written outside its folder"
		}
		return ""
	case tar.TypeLink, tar.TypeSymlink:
		return "is a link, which could lead outside its folder"
	case tar.TypeGNUSparse:
		return sparse
	}
	return "is neither a file nor a folder"
}

const sparse = "is sparse, so that it is longer than its bytes"

// paxProblem says what is wrong with the records before an entry. Of a sparse file, Go's reader gives
// the length with its holes, and no sign of them but the records. Records for all entries that follow
// are ignored by Go, and by Python applied: it would find other entries at other places.
func paxProblem(h *tar.Header) string {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return sparse
		}
		if h.Typeflag == tar.TypeXGlobalHeader && (key == "size" || key == "path" || key == "linkpath") {
			return "says where all that follow are"
		}
	}
	return ""
}
