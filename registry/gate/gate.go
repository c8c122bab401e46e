// Package gate looks at the bytes of parts that are pushed or imported, and refuses those that run
// code when they are loaded, hide what is in them, or are native code without saying so. What the
// bytes are, validators/format decides.
package gate

import (
	"context"
	"errors"
	"io"
	"path"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/validators/format"
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

// Gate inspects parts. It is safe for concurrent use. Create one with [New].
type Gate struct {
	open   Open
	slots  chan struct{}
	passed *lru.Cache[registry.Digest, struct{}]
}

// New returns a gate for content that open returns.
func New(open Open) *Gate {
	return &Gate{open: open, slots: make(chan struct{}, atOnce), passed: lru.New[registry.Digest, struct{}](passedBytes)}
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
	if _, ok := g.passed.Get(d); ok || err != nil {
		return nil //nolint:nilerr // another kind of manifest, which no release can have
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
		check := format.Gate{
			NativeCode: part.Engine.NativeCode || f.Kind == registry.FileCode,
			Beside:     func(name string) (int64, bool) { size, ok := sizes[path.Clean(name)]; return size, ok },
		}
		if err := g.file(ctx, check, f); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) file(ctx context.Context, check format.Gate, f registry.File) error {
	blob, size, err := g.open(ctx, f.Digest)
	if err != nil {
		return err
	}
	defer blob.Close()
	return check.Check(f.Path, &pages{r: stopping{ctx, blob}, size: size}, size)
}

// stopping fails when a context ends.
type stopping struct {
	ctx context.Context
	r   io.ReaderAt
}

func (s stopping) ReadAt(p []byte, off int64) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.ReadAt(p, off)
}

// pageBytes is how much is read at once.
const pageBytes = 256 << 10

// pages reads ahead, because every read of an object store is a request.
type pages struct {
	r    io.ReaderAt
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
	n, err := s.r.ReadAt(page, at)
	if n < len(page) && (err == nil || errors.Is(err, io.EOF)) {
		err = io.ErrUnexpectedEOF
	}
	if n < len(page) {
		return err
	}
	s.at, s.page = at, page
	return nil
}
