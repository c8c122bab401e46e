package oci_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// errFault is what a storage that fails says: an error of no kind that the store knows.
var errFault = errors.New("the storage does not answer")

// failingStorage is the blobs and records of a world, of which one call fails.
type failingStorage struct {
	storage.Blobs
	storage.RepositoryRecords
	calls atomic.Int64
	fails int64 // number of the call, from 1; 0: none
}

func (s *failingStorage) fault() error {
	if s.calls.Add(1) == s.fails {
		return errFault
	}
	return nil
}

func (s *failingStorage) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	return errors.Join(s.fault(), s.Blobs.Put(ctx, d, size, r))
}

func (s *failingStorage) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	if err := s.fault(); err != nil {
		return nil, 0, err
	}
	return s.Blobs.Open(ctx, d)
}

func (s *failingStorage) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	return errors.Join(s.fault(), s.RepositoryRecords.AddBlob(ctx, repository, d, size))
}

func (s *failingStorage) Blob(ctx context.Context, repository string, d registry.Digest) (int64, error) {
	if err := s.fault(); err != nil {
		return 0, err
	}
	return s.RepositoryRecords.Blob(ctx, repository, d)
}

func (s *failingStorage) PutManifest(ctx context.Context, repository string, m storage.Manifest, tags ...string) error {
	return errors.Join(s.fault(), s.RepositoryRecords.PutManifest(ctx, repository, m, tags...))
}

func (s *failingStorage) Manifest(ctx context.Context, repository string, d registry.Digest) (storage.Manifest, error) {
	if err := s.fault(); err != nil {
		return storage.Manifest{}, err
	}
	return s.RepositoryRecords.Manifest(ctx, repository, d)
}

func (s *failingStorage) Referrers(
	ctx context.Context, repository string, d registry.Digest, artifactType string, after registry.Digest,
) ([]storage.Manifest, error) {
	if err := s.fault(); err != nil {
		return nil, err
	}
	return s.RepositoryRecords.Referrers(ctx, repository, d, artifactType, after)
}

func (s *failingStorage) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	if err := s.fault(); err != nil {
		return "", err
	}
	return s.RepositoryRecords.Tag(ctx, repository, tag)
}

func (s *failingStorage) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	return errors.Join(s.fault(), s.RepositoryRecords.SetTag(ctx, repository, tag, d))
}

// changes are all ways to add to a release, and the ways to read that operations lacks.
func changes(t *testing.T, w *world) map[string]func(*oci.Store, context.Context) error {
	engine := w.release.Engines[0].Digest
	return map[string]func(*oci.Store, context.Context) error{
		"engine": func(s *oci.Store, ctx context.Context) error {
			_, err := s.Engine(ctx, staging, engine)
			return err
		},
		"tag": func(s *oci.Store, ctx context.Context) error {
			_, err := s.Tag(ctx, staging, "1.0.0")
			return err
		},
		"bundle": func(s *oci.Store, ctx context.Context) error {
			_, err := s.Bundle(ctx, staging, w.evidence[0])
			return err
		},
		"referrers": func(s *oci.Store, ctx context.Context) error {
			for _, err := range s.Referrers(ctx, staging, w.release.Digest) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"lend": func(s *oci.Store, ctx context.Context) error {
			_, err := s.Lend(ctx, staging, engine, t.TempDir())
			return err
		},
		"set a tag": func(s *oci.Store, ctx context.Context) error {
			return s.SetTag(ctx, staging, "current", w.release.Digest)
		},
		"list again": func(s *oci.Store, ctx context.Context) error { return s.Relist(ctx, staging, w.evidence[0]) },
		"put evidence": func(s *oci.Store, ctx context.Context) error {
			_, err := s.PutEvidence(ctx, staging, evidence.Bundle{Data: bundle("a")}, w.release.Subjects())
			return err
		},
		"stage evidence": func(s *oci.Store, ctx context.Context) error {
			_, err := s.StageEvidence(ctx, staging, evidence.Bundle{Data: bundle("a")}, w.release.Subjects())
			return err
		},
		"put a part": func(s *oci.Store, ctx context.Context) error {
			_, err := s.PutPart(ctx, staging, w.engineParts()[1])
			return err
		},
		"assemble": func(s *oci.Store, ctx context.Context) error {
			a := w.assembly()
			for _, name := range []string{"engine linux-amd64-v3/int8", "engine linux-amd64-v1/fp32", "limits", "interface"} {
				a.Parts = append(a.Parts, w.parts[name])
			}
			_, err := s.Assemble(ctx, staging, a)
			return err
		},
	}
}

// Whatever call to its storage fails, an operation fails with that error: nothing is taken for missing, whole or done
// because the storage did not answer.
func TestOperationsFailWithTheirStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	all := changes(t, w)
	maps.Copy(all, operations(w))
	for name, operation := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(fails int64) (*failingStorage, error) {
				s := &failingStorage{Blobs: w.blobs, RepositoryRecords: w.refs, fails: fails}
				elsewhere, names := mem.NewBlobs(), mem.New()
				return s, operation(oci.New(func(_ context.Context, name string) (oci.Repository, error) {
					if name == prod { // so that a copy moves bytes
						return oci.Local(&failingStorage{Blobs: elsewhere, RepositoryRecords: names}, names, name), nil
					}
					return oci.Local(s, s, name), nil
				}, oci.Options{}), t.Context())
			}
			for call := int64(1); ; call++ {
				s, err := run(call)
				if s.calls.Load() < call { // it needs no more
					if err != nil || call == 1 {
						t.Errorf("without a failure: error %v after %d calls", err, s.calls.Load())
					}
					return
				}
				if !errors.Is(err, errFault) || registry.HasCode(err, registry.CodeNotFound) {
					t.Errorf("call %d failed: error %v, want that of the storage", call, err)
				}
			}
		})
	}
}

// What a release does not have is not found, whatever else there is.
func TestEnginesThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for name, d := range map[string]registry.Digest{"the release": w.release.Digest, "its limits": w.parts["limits"].Digest,
		"a piece of evidence": w.evidence[0], "nothing": digest.FromString("nothing")} {
		if e, err := w.store.Engine(t.Context(), staging, d); !registry.HasCode(err, registry.CodeNotFound) || e.Digest != "" {
			t.Errorf("%s: got %+v and error %v, want CodeNotFound", name, e, err)
		}
	}
	if err := w.store.Relist(t.Context(), staging, w.release.Engines[0].Digest); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("an engine is listed as evidence: error %v, want CodeInvalid", err)
	}
}

// Who has seen enough of a list reads no more of it.
func TestReferrersEndEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	seen := 0
	for r, err := range w.store.Referrers(t.Context(), staging, w.release.Engines[0].Digest) {
		if seen++; err != nil || !r.IsEvidence() {
			t.Errorf("got %+v, error %v, want evidence", r, err)
		}
		break
	}
	if seen != 1 {
		t.Errorf("%d referrers, want the first alone", seen)
	}
}

// A repository that does not open fails every operation on it, and a destination that does not open fails a copy.
func TestRepositoriesThatDoNotOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	closed := oci.New(func(context.Context, string) (oci.Repository, error) { return nil, errFault }, oci.Options{})
	all := changes(t, w)
	maps.Copy(all, operations(w))
	for name, operation := range all {
		if err := operation(closed, t.Context()); !errors.Is(err, errFault) {
			t.Errorf("%s: error %v, want that of opening", name, err)
		}
	}
	half := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		if name == prod {
			return nil, errFault
		}
		return oci.Local(w.blobs, w.refs, name), nil
	}, oci.Options{})
	if err := half.Copy(t.Context(), staging, prod, w.release, nil); !errors.Is(err, errFault) {
		t.Errorf("copy: error %v, want that of opening the destination", err)
	}
}

// A file that cannot be opened when a part is stored is named.
func TestPutPartCannotOpenAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	p := w.engineParts()[0]
	p.Files = files("model.onnx", "another engine")
	p.Files[0].Open = func() (io.ReadCloser, error) { return nil, errFault }
	_, err := w.store.PutPart(t.Context(), staging, p)
	if wantCode(t, err, registry.CodeInternal, staging, "model.onnx"); !errors.Is(err, errFault) {
		t.Errorf("error %v, want that of opening the file", err)
	}
}

// sending is a repository that stores content by Send, as those over networks that break do.
type sending struct {
	oci.Repository
	err error
}

func (s sending) Send(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	if s.err != nil {
		return s.err
	}
	from, err := open()
	if err != nil {
		return err
	}
	return errors.Join(s.Push(ctx, desc, from), from.Close())
}

// What another client stored meanwhile need not be sent, and what was not sent otherwise is an error.
func TestRepositoriesThatSend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ err, want error }{
		"it is sent": {nil, nil}, "it came meanwhile": {errdef.ErrAlreadyExists, nil}, "the network breaks": {errFault, errFault},
	} {
		w := newWorld(t, options{})
		store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
			return sending{oci.Local(w.blobs, w.refs, name), c.err}, nil
		}, oci.Options{})
		p := w.engineParts()[0]
		p.Files = files("model.onnx", "another engine")
		if _, err := store.PutPart(t.Context(), staging, p); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

// Reindexing ends with its context, and does not pass for done.
func TestReindexIsCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := oci.Reindex(ctx, w.blobs, w.refs); !errors.Is(err, context.Canceled) {
		t.Errorf("%d records are correct, error %v, want that it was canceled", n, err)
	}
}
