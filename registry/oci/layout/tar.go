package layout

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
)

const (
	block      = 512
	maxEntries = 1 << 16
	maxIndex   = 4 << 20
	// versionFile is all that the file oci-layout holds.
	versionFile = `{"imageLayoutVersion":"1.0.0"}`
)

// header is what an archive has before a file.
func header(name string, size int64) ([]byte, error) {
	var buf bytes.Buffer
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o444}
	if err := tar.NewWriter(&buf).WriteHeader(h); err != nil {
		return nil, fmt.Errorf("tar header of %s: %w", name, err)
	}
	return buf.Bytes(), nil
}

// padding is how many zeros follow a file of that size.
func padding(size int64) int64 { return -size & (block - 1) }

// span is where a file lies in an archive.
type span struct{ at, size int64 }

// scan lists the files of an archive. Errors: CodeTrust for bytes that are not those that a writer
// of this package would have written.
func scan(r io.ReaderAt, size int64) (map[string]span, error) {
	files, last := make(map[string]span), ""
	for at := int64(0); ; {
		if size-at < 2*block {
			return nil, altered("it ends at byte %d: copy it again", size)
		}
		end, err := zeros(r, at, block)
		if err != nil {
			return nil, err
		}
		if end {
			return files, finished(r, at, size)
		}
		name, s, err := entry(r, at, size)
		if err != nil {
			return nil, err
		}
		if err := inOrder(len(files), last, name); err != nil {
			return nil, err
		}
		files[name], last = s, name
		at = s.at + s.size + padding(s.size)
	}
}

// entry reads the header at a position, which must be the one that a writer makes of its name and size.
func entry(r io.ReaderAt, at, size int64) (string, span, error) {
	h, err := tar.NewReader(io.NewSectionReader(r, at, size-at)).Next()
	if err != nil {
		return "", span{}, altered("byte %d is not the header of a file: %v", at, err)
	}
	want, err := header(h.Name, h.Size)
	if err != nil {
		return "", span{}, altered("byte %d: %v", at, err)
	}
	got := make([]byte, len(want))
	if _, err := r.ReadAt(got, at); err != nil && !errors.Is(err, io.EOF) {
		return "", span{}, fmt.Errorf("read the saved release: %w", err)
	}
	if !bytes.Equal(got, want) {
		return "", span{}, altered("%q at byte %d is not a plain file with the header that save writes", h.Name, at)
	}
	s := span{at + int64(len(want)), h.Size}
	if s.size > size-s.at || padding(s.size) > size-s.at-s.size {
		return "", span{}, altered("it ends within %s: copy it again", h.Name)
	}
	blank, err := zeros(r, s.at+s.size, padding(s.size))
	if err == nil && !blank {
		err = altered("something is hidden behind %s", h.Name)
	}
	return h.Name, s, err
}

// inOrder checks the name of a file, given how many came before and the last one's name.
func inOrder(n int, last, name string) error {
	d, isBlob := digestOf(name)
	switch {
	case n == 0 && name == ocispec.ImageLayoutFile, n == 1 && name == ocispec.ImageIndexFile:
		return nil
	case n < 2:
		return altered("its file %d is %q: want %s and then %s", n+1, name, ocispec.ImageLayoutFile, ocispec.ImageIndexFile)
	case !isBlob || d.Validate() != nil:
		return altered("it has a file %q: want %s/ALGORITHM/HEX alone", name, ocispec.ImageBlobsDir)
	case n > 2 && name <= last:
		return altered("%q comes after %q: want each file once, in order of names", name, last)
	case n >= maxEntries:
		return altered("it has more than %d files", maxEntries)
	}
	return nil
}

// digestOf is the digest that a file of a layout is named after.
func digestOf(name string) (registry.Digest, bool) {
	rest, ok := strings.CutPrefix(name, ocispec.ImageBlobsDir+"/")
	algorithm, encoded, cut := strings.Cut(rest, "/")
	return digest.NewDigestFromEncoded(digest.Algorithm(algorithm), encoded), ok && cut
}

// fileOf is the name of the file that holds content; empty for a malformed digest.
func fileOf(d registry.Digest) string {
	if d.Validate() != nil {
		return ""
	}
	return ocispec.ImageBlobsDir + "/" + string(d.Algorithm()) + "/" + d.Encoded()
}

// finished checks that an archive ends with two blocks of zeros, and nothing behind them.
func finished(r io.ReaderAt, at, size int64) error {
	blank, err := zeros(r, at, min(size-at, 2*block))
	if err == nil && (!blank || size-at != 2*block) {
		err = altered("it has %d bytes at its end where 1024 zeros end an archive", size-at)
	}
	return err
}

// zeros reports whether n bytes, at most two blocks, are all zero.
func zeros(r io.ReaderAt, at, n int64) (bool, error) {
	buf := make([]byte, n)
	if got, err := r.ReadAt(buf, at); int64(got) < n && err != nil {
		return false, fmt.Errorf("read the saved release: %w", err)
	}
	return len(bytes.Trim(buf, "\x00")) == 0, nil
}

// altered is the error of an archive that save did not write.
func altered(text string, args ...any) error {
	return registry.Errorf(registry.CodeTrust, "not a file as mlpromote save writes it: "+text, args...)
}
