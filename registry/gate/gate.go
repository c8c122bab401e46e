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
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// atOnce limits the parts that are inspected at the same time. Each takes up to some 100 MiB of
	// memory, and a processor core.
	atOnce = 2
	// passedBytes limits the memory for manifests that passed, and that for files: each is enough for
	// some ten thousand.
	passedBytes = 2 << 20
	// maxRead limits the bytes that are read to inspect one part. Of most formats, an inspection
	// reads a small part. It reads all of JSON, XML and boosted trees, and an ONNX model has at most 2 GiB.
	maxRead = 4 << 30
)

// File is a file of a part.
type File struct {
	Path       string // in the part
	Content    io.ReaderAt
	Size       int64
	NativeCode bool // the part says that it is native code
	// Beside returns the size of another file of the part, by its path.
	Beside func(path string) (size int64, ok bool)
}

// Inspect checks the bytes of a file in bounded memory. Its verdict depends on nothing but Content,
// NativeCode and, if it calls Beside, the files beside it. What passes without NativeCode passes with it. Errors:
// CodeUnsafe and CodeInvalid, with the file and what to do; others of reading it.
type Inspect func(f File) error

// Gate inspects parts. It is safe for concurrent use. Create one with [New].
type Gate struct {
	open    Open
	inspect Inspect
	turns   *turns
	passed  *lru.Cache[registry.Digest, struct{}] // manifests
	images  images
	files   *lru.Cache[fileKey, struct{}] // that passed by their own bytes
}

// fileKey identifies an inspection that does not depend on other files.
type fileKey struct {
	digest     registry.Digest
	nativeCode bool
}

// New returns a gate for content that open returns. Without inspect, it lets nothing through.
func New(open Open, inspect Inspect) *Gate {
	turns, passed := newTurns(atOnce), lru.New[registry.Digest, struct{}](passedBytes)
	return &Gate{
		open: open, inspect: inspect, turns: turns, passed: passed, files: lru.New[fileKey, struct{}](passedBytes),
		images: images{open, turns, passed},
	}
}

// Manifest inspects the files of a part, which must be stored already, by the exact bytes of its
// manifest. Of the image form of an engine it recomputes the bytes, and of the index of a release all image forms in it.
// Other manifests pass: no release can have them. Manifests and
// files that passed are not inspected again. A caller, the principal of ctx, waits until the parts that
// it pushed before are inspected. Errors: CodeUnsafe and CodeInvalid, with the file and what to do; CodeTrust for
// file names that lead outside their folder, and for an image that is not that of its engine; those of open.
func (g *Gate) Manifest(ctx context.Context, d registry.Digest, manifest []byte) error {
	return g.manifest(ctx, g.images.document, d, manifest)
}

// In returns [Gate.Manifest] for manifests that are pushed to a repository, by their records in refs. The engine of an image
// must be in the repository of the image: nobody learns from a push which engines other repositories have.
func (g *Gate) In(refs storage.Manifests) func(ctx context.Context, repository string, d registry.Digest, manifest []byte) error {
	return func(ctx context.Context, repository string, d registry.Digest, manifest []byte) error {
		read := func(ctx context.Context, d registry.Digest) ([]byte, error) {
			if _, err := refs.Manifest(ctx, repository, d); err != nil {
				return nil, err
			}
			return g.images.document(ctx, d)
		}
		return g.manifest(ctx, read, d, manifest)
	}
}

// manifest inspects a manifest. read returns others of its repository.
func (g *Gate) manifest(ctx context.Context, read readManifest, d registry.Digest, manifest []byte) error {
	if images, ok := oci.ReadImages(manifest); ok {
		return g.images.all(ctx, read, images)
	}
	part, err := oci.ReadPart(manifest)
	if registry.HasCode(err, registry.CodeTrust) {
		return err
	}
	if _, ok := g.passed.Get(d); ok || err != nil { // or another kind of manifest
		return nil
	}
	if part.Role == artifact.PartImage {
		_, err := g.images.one(ctx, read, d, part.ImageOf)
		return err
	}
	if g.inspect == nil {
		return registry.Errorf(registry.CodeUnavailable, "the files of parts cannot be inspected here")
	}
	caller, _ := storage.PrincipalOf(ctx)
	done, err := g.turns.take(ctx, caller.Name)
	if err != nil {
		return err
	}
	defer done()
	if err := g.part(ctx, part); err != nil {
		return err
	}
	g.passed.Put(d, struct{}{}, 2*len(d))
	return nil
}

// part inspects every file of a part, and files with the same bytes once.
func (g *Gate) part(ctx context.Context, part storage.FetchedPart) error {
	sizes := make(map[string]int64, len(part.Files))
	for _, f := range part.Files {
		sizes[f.Path] = f.Size
	}
	left := int64(maxRead)
	for _, f := range part.Files {
		native := part.Engine.NativeCode || f.Kind == artifact.FileCode
		if g.hasPassed(f.Digest, native) {
			continue
		}
		alone := true // its bytes decide, not the files beside it
		inspected := File{Path: f.Path, NativeCode: native}
		inspected.Beside = func(name string) (int64, bool) {
			alone = false
			size, ok := sizes[path.Clean(name)]
			return size, ok
		}
		if err := g.file(ctx, inspected, f.Digest, &left); err != nil {
			return err
		}
		if alone {
			g.files.Put(fileKey{f.Digest, native}, struct{}{}, 2*len(f.Digest))
		}
	}
	return nil
}

// hasPassed reports whether the bytes of a file passed before.
func (g *Gate) hasPassed(d registry.Digest, native bool) bool {
	if _, ok := g.files.Get(fileKey{d, false}); ok || !native {
		return ok
	}
	_, ok := g.files.Get(fileKey{d, true})
	return ok
}

// file inspects a file, and takes the bytes that it reads from left.
func (g *Gate) file(ctx context.Context, f File, d registry.Digest, left *int64) error {
	blob, size, err := g.open(ctx, d)
	if err != nil {
		return err
	}
	defer blob.Close()
	f.Size, f.Content = size, &pages{size: size, read: func(p []byte, off int64) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if *left -= int64(len(p)); *left < 0 {
			return 0, registry.Errorf(registry.CodeInvalid,
				"%s: the inspection of the files of a part reads at most %d GiB, and these need more: use a format that keeps weights as bytes, "+
					"such as safetensors, or make smaller parts", f.Path, maxRead>>30)
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
	// buffer holds the page, one after another.
	buffer []byte
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
	if s.buffer == nil {
		s.buffer = make([]byte, min(pageBytes, s.size))
	}
	s.page = nil
	page := s.buffer[:min(pageBytes, s.size-at)]
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
