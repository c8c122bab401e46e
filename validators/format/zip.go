package format

import (
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// zipDirBytes limits the size of an archive's directory, which is also the memory that
	// listing needs.
	zipDirBytes = 32 << 20
	// zipEntries limits the number of entries that are inspected.
	zipEntries = 4096
	// skopsSchemaBytes limits how much of a skops archive's schema is read.
	skopsSchemaBytes = 32 << 20
	// zipBzip2 is the compression method that Python reads and Go does not.
	zipBzip2 = 12
)

// sniffZip recognizes zip archives by the directory at their end, like zipfile and torch.load,
// so also after other bytes. An archive that cannot be inspected completely is Unknown, because
// it could contain pickles.
func sniffZip(head []byte, src *source) (finding, bool) {
	starts := startsZip(head)
	if !starts && !hasZipEnd(src) {
		return finding{}, false
	}
	limited := &budget{r: src, left: zipDirBytes}
	archive, err := zip.NewReader(limited, src.size)
	switch {
	case err == nil && (starts || len(archive.File) > 0):
		limited.left = zipEntries * 2 * peekBytes
		return sniffEntries(archive), true
	case errors.Is(err, errBudget):
		return finding{Unknown, "a zip archive whose directory is too large to look at"}, true
	case starts && isPickleName(firstEntry(head)):
		return finding{PickleZip, fmt.Sprintf("entry %q of a damaged archive", firstEntry(head))}, true
	case starts:
		return finding{Unknown, "a damaged zip archive"}, true
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

// sniffEntries checks all names first, which is enough for most archives, and then the
// beginning of every entry.
func sniffEntries(archive *zip.Reader) finding {
	for _, f := range archive.File {
		if isPickleName(f.Name) {
			return finding{PickleZip, fmt.Sprintf("entry %q", f.Name)}
		}
	}
	if len(archive.File) > zipEntries {
		return finding{Unknown, fmt.Sprintf("a zip archive with %d entries, more than can be looked into", len(archive.File))}
	}
	archive.RegisterDecompressor(zipBzip2, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	result := finding{kind: Zip}
	for _, f := range archive.File {
		switch pickled, err := entryPickled(f); {
		case pickled:
			return finding{PickleZip, fmt.Sprintf("entry %q", f.Name)}
		case err != nil:
			result = finding{Unknown, fmt.Sprintf("a zip archive whose entry %q cannot be looked into", f.Name)}
		}
	}
	if result.kind == Zip && hasSkopsSchema(archive) {
		result.kind = Skops
	}
	return result
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

var errEncrypted = errors.New("entry is encrypted")

// entryPickled checks the first bytes of one entry, also inside one layer of compression.
func entryPickled(f *zip.File) (bool, error) {
	if strings.HasSuffix(f.Name, "/") {
		return false, nil
	}
	if f.Flags&1 != 0 {
		return false, errEncrypted
	}
	body, err := f.Open()
	if err != nil {
		return false, err
	}
	defer body.Close()
	peek, err := io.ReadAll(io.LimitReader(body, peekBytes))
	if err != nil && len(peek) == 0 {
		return false, err
	}
	if holdsPickle(peek, int64(min(max(f.UncompressedSize64, uint64(len(peek))), 1<<62))) {
		return true, nil
	}
	found, ok := sniffCompressed(peek, bytes.NewReader(peek))
	return ok && found.kind == Pickle, nil
}

// isPickleName reports whether an entry's name alone identifies a pickle.
func isPickleName(name string) bool {
	name = strings.ToLower(name)
	for _, ext := range []string{".pkl", ".pickle", ".joblib", ".dill"} {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}

var errBudget = errors.New("too many bytes")

// budget fails after left bytes were read through it.
type budget struct {
	r    io.ReaderAt
	left int64
}

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errBudget
	}
	return b.r.ReadAt(p, off)
}
