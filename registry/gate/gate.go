// Package gate looks at the bytes of parts that are pushed or imported, and refuses those that run
// code when they are loaded, hide what is in them, or are native code without saying so. What the
// bytes are, its port [Inspect] decides.
package gate

import (
	"context"
	"errors"
	"io"
	"path"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/oci"
)

const (
	// atOnce limits the parts that are inspected at the same time. Each takes up to some 100 MiB of
	// memory, and a processor core.
	atOnce = 2
	// passedBytes limits the memory for manifests that passed, which is enough for some ten
	// thousand.
	passedBytes = 2 << 20
)

// Open returns content by its digest.
type Open func(ctx context.Context, d registry.Digest) (registry.Blob, int64, error)

// File is a file of a part.
type File struct {
	Path       string // in the part
	Content    io.ReaderAt
	Size       int64
	NativeCode bool // the part says that it is native code
	// Beside returns the size of another file of the part, by its path.
	Beside func(path string) (size int64, ok bool)
}

// Inspect checks the bytes of a file in bounded time and memory. Errors: CodeUnsafe and CodeInvalid,
// with the file and what to do; others of reading it.
type Inspect func(f File) error

// Gate inspects parts. It is safe for concurrent use. Create one with [New].
type Gate struct {
	open    Open
	inspect Inspect
	slots   chan struct{}
	passed  *lru.Cache[registry.Digest, struct{}]
}

// New returns a gate for content that open returns. Without inspect, it lets nothing through.
func New(open Open, inspect Inspect) *Gate {
	return &Gate{open: open, inspect: inspect, slots: make(chan struct{}, atOnce), passed: lru.New[registry.Digest, struct{}](passedBytes)}
}

// Manifest inspects the files of a part, which must be stored already, by the exact bytes of its
// manifest. Manifests that are not parts of a release pass: no release can have them. A manifest
// that passed is not inspected again. Errors: CodeUnsafe and CodeInvalid, with the file and what to
// do; CodeTrust for file names that lead outside their folder; those of open.
func (g *Gate) Manifest(ctx context.Context, d registry.Digest, manifest []byte) error {
	part, err := oci.ReadPart(manifest)
	if registry.HasCode(err, registry.CodeTrust) {
		return err
	}
	if _, ok := g.passed.Get(d); ok || err != nil { // or another kind of manifest
		return nil
	}
	if g.inspect == nil {
		return registry.Errorf(registry.CodeUnavailable, "the files of parts cannot be inspected here")
	}
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := g.part(ctx, part); err != nil {
		return err
	}
	g.passed.Put(d, struct{}{}, 2*len(d))
	return nil
}

// part inspects every file of a part.
func (g *Gate) part(ctx context.Context, part registry.FetchedPart) error {
	sizes := make(map[string]int64, len(part.Files))
	for _, f := range part.Files {
		sizes[f.Path] = f.Size
	}
	for _, f := range part.Files {
		inspected := File{Path: f.Path, NativeCode: part.Engine.NativeCode || f.Kind == registry.FileCode}
		inspected.Beside = func(name string) (int64, bool) { size, ok := sizes[path.Clean(name)]; return size, ok }
		if err := g.file(ctx, inspected, f.Digest); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) file(ctx context.Context, f File, d registry.Digest) error {
	blob, size, err := g.open(ctx, d)
	if err != nil {
		return err
	}
	defer blob.Close()
	f.Size, f.Content = size, &pages{size: size, read: func(p []byte, off int64) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return blob.ReadAt(p, off)
	}}
	return g.inspect(f)
}

// pageBytes is how much is read at once.
const pageBytes = 256 << 10

// pages reads ahead, because every read of an object store is a request.
type pages struct {
	read func(p []byte, off int64) (int, error)
	size int64
	at   int64
	page []byte
}

func (s *pages) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= s.size {
			return n, io.EOF
		}
		if at < s.at || at >= s.at+int64(len(s.page)) {
			if err := s.load(at); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], s.page[at-s.at:])
	}
	return n, nil
}

// load reads the page that begins at a position.
func (s *pages) load(at int64) error {
	page := make([]byte, min(pageBytes, s.size-at))
	n, err := s.read(page, at)
	if n == len(page) {
		s.at, s.page = at, page
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
