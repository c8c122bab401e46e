package oci

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// bufferSize is how much is read at once: large enough that hashing takes more time than system
// calls.
const bufferSize = 1 << 20

// Fetch reads a part by digest and, unless dir is empty, writes its files into dir. It hashes
// each file while writing, and removes it if it does not match its digest; files written before
// remain. It never writes outside dir, neither by path nor by link, and never overwrites a
// file. Errors: CodeNotFound; CodeInvalid if it is not a part, or a file exists already;
// CodeTrust for file names; CodeDigest.
func (s *Store) Fetch(ctx context.Context, name string, d registry.Digest, dir string) (storage.FetchedPart, error) {
	return s.fetch(ctx, name, d, dir, false)
}

// Lend is Fetch for who only reads: large blobs of a directory are linked into dir.
func (s *Store) Lend(ctx context.Context, name string, d registry.Digest, dir string) (storage.FetchedPart, error) {
	return s.fetch(ctx, name, d, dir, true)
}

func (s *Store) fetch(ctx context.Context, name string, d registry.Digest, dir string, lend bool) (storage.FetchedPart, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return storage.FetchedPart{}, err
	}
	desc, err := repo.resolve(ctx, "part", string(d))
	if err != nil {
		return storage.FetchedPart{}, err
	}
	if desc.MediaType != ocispec.MediaTypeImageManifest {
		return storage.FetchedPart{}, registry.Errorf(registry.CodeInvalid,
			"%s: %s is not a part: it is a %q, not an image manifest", name, d, desc.MediaType)
	}
	p, err := repo.part(ctx, desc)
	if err != nil {
		return storage.FetchedPart{}, err
	}
	set, err := repo.set(ctx, p)
	if err != nil {
		return storage.FetchedPart{}, err
	}
	if dir != "" {
		if err := writeFiles(ctx, repo, p, dir, lend); err != nil {
			return storage.FetchedPart{}, err
		}
	}
	return storage.FetchedPart{Role: p.role, Manifest: p.raw, Files: p.files, Engine: p.engine, ImageOf: p.imageOf, Set: set}, nil
}

// set reads the config of a part, and returns its case set if it has one.
func (r repository) set(ctx context.Context, p part) (*artifact.CaseSet, error) {
	what := "config of " + p.label()
	config, err := r.read(ctx, what, p.manifest.Config)
	if err != nil || !p.shape.set() {
		return nil, err
	}
	set, err := readSet(config, p.files)
	if err != nil {
		return nil, r.about(what, p.manifest.Config.Digest, err)
	}
	return set, nil
}

// writeFiles writes the files of a part into dir.
func writeFiles(ctx context.Context, repo repository, p part, dir string, lend bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "open the folder for %s: %w", p.label(), err)
	}
	defer root.Close()
	buffer := make([]byte, bufferSize)
	for i, layer := range p.manifest.Layers {
		if lend && layer.Size >= storage.LinkFrom {
			linked, err := linkFile(ctx, repo, object{p.layer(i), layer}, filepath.Join(dir, filepath.FromSlash(p.files[i].Path)))
			if err != nil {
				return err
			}
			if linked {
				continue
			}
		}
		if err := writeFile(ctx, repo, object{p.layer(i), layer}, root, p.files[i].Path, buffer); err != nil {
			return err
		}
	}
	return nil
}

// linkFile creates a hard link to a blob that is a file, and checks its bytes. It reports
// whether that was possible.
func linkFile(ctx context.Context, repo repository, c object, to string) (bool, error) {
	rc, err := repo.Repository.Fetch(ctx, c.desc)
	if err != nil {
		return false, repo.failed("read", c.what, string(c.desc.Digest), err)
	}
	f, ok := rc.(*os.File)
	linked := ok && os.MkdirAll(filepath.Dir(to), 0o755) == nil && os.Link(f.Name(), to) == nil
	if err := rc.Close(); err != nil || !linked {
		return false, err
	}
	checked, err := repo.stream(ctx, c.what, c.desc)
	if err == nil {
		_, err = io.Copy(io.Discard, checked)
		err = errors.Join(err, checked.Close())
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(to))
	}
	return true, nil
}

func writeFile(ctx context.Context, repo repository, c object, root *os.Root, name string, buffer []byte) error {
	if parent := path.Dir(name); parent != "." {
		if err := root.MkdirAll(filepath.FromSlash(parent), 0o755); err != nil {
			return registry.Errorf(registry.CodeInternal, "make the folder of %s: %w", c.what, err)
		}
	}
	rc, err := repo.stream(ctx, c.what, c.desc)
	if err != nil {
		return err
	}
	defer rc.Close()
	local := filepath.FromSlash(name)
	out, err := root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return registry.Errorf(registry.CodeInvalid, "write %s into %s: the file already exists: want an empty folder", c.what, root.Name())
	}
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "write %s: %w", c.what, err)
	}
	_, err = io.CopyBuffer(onlyWriter{out}, rc, buffer)
	if closing := out.Close(); err == nil && closing != nil {
		err = registry.Errorf(registry.CodeInternal, "write %s: %w", c.what, closing)
	}
	if err != nil {
		return errors.Join(err, root.Remove(local))
	}
	return nil
}

// onlyWriter hides every other method, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }
