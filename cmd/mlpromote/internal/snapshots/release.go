package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/filegate"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/airgap"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// SavedRelease is a file that save wrote.
type SavedRelease struct {
	File     string          `json:"file"`
	Ref      string          `json:"ref"`
	Digest   registry.Digest `json:"digest"` // of the file
	Bytes    int64           `json:"bytes"`
	Evidence int             `json:"evidence"` // pieces
	Ignored  int             `json:"ignored"`  // pieces of evidence that do not count and were not saved
}

// SaveRelease writes the release that ref names with the evidence that counts. folder has environments.yaml
// of this machine.
func SaveRelease(ctx context.Context, in *connect.Registry, ref registry.Ref, folder, file string) (SavedRelease, error) {
	r, err := in.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return SavedRelease{}, err
	}
	req, ignored, err := request(ctx, in, ref.Environment, r, folder)
	if err != nil {
		return SavedRelease{}, err
	}
	saved := SavedRelease{
		File: file, Ref: registry.Ref{Environment: ref.Environment, Model: r.Model, Tag: r.Tag(), Digest: r.Digest}.String(),
		Evidence: len(req.Evidence), Ignored: ignored,
	}
	err = atomicfile.WriteFrom(file, 0o644, func(w io.Writer) error {
		sum, counted := digest.Canonical.Digester(), &byteCounter{}
		err := airgap.Save(ctx, in.Content.Open, req, io.MultiWriter(w, sum.Hash(), counted))
		saved.Digest, saved.Bytes = sum.Digest(), counted.n
		if registry.HasCode(err, registry.CodeNotFound) {
			err = registry.WithHint(err, "if it is evidence that its repository lost: mlpromote scrub lists it again")
		}
		return err
	})
	return saved, err
}

// request says what to save, and how many pieces of evidence do not count.
func request(ctx context.Context, in *connect.Registry, environment string, r artifact.Release, folder string) (airgap.Request, int, error) {
	req := airgap.Request{Registry: in.Envs.Registry, Environment: environment, Release: r}
	claims, _, err := in.Claims(ctx, environment, r)
	if err != nil {
		return req, 0, err
	}
	counted, ignored := evidence.Accept(r, claims)
	for _, c := range counted {
		req.Evidence = append(req.Evidence, c.Bundle)
	}
	slices.Sort(req.Evidence)
	req.Evidence = slices.Compact(req.Evidence)
	restricted, err := in.Restrictions(ctx, environment)
	if err != nil {
		return req, 0, err
	}
	if req.Files, err = trustFiles(folder); err != nil {
		return req, 0, err
	}
	if len(restricted.Bundle) > 0 {
		req.Files = append(req.Files, airgap.File{Name: airgap.RestrictionsFile, Data: restricted.Bundle})
	}
	published, err := in.TrustBundle(ctx)
	switch {
	case registry.HasCode(err, registry.CodeNotFound): // a registry without a publisher
		return req, len(ignored), nil
	case err != nil:
		return req, 0, err
	}
	req.Files = append(req.Files, airgap.File{Name: airgap.TrustBundleFile, Data: published.Bundle})
	return req, len(ignored), nil
}

// byteCounter counts what is written.
type byteCounter struct{ n int64 }

func (c *byteCounter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// trustFiles are environments.yaml of this machine and the public keys that it names, for people to compare.
func trustFiles(folder string) ([]airgap.File, error) {
	data, err := os.ReadFile(filepath.Join(folder, environments.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files := []airgap.File{{Name: environments.File, Data: data}}
	envs, err := environments.Load(folder)
	if err != nil {
		return nil, err
	}
	for i, entry := range envs.Trust {
		if entry.Key == "" {
			continue
		}
		key, err := os.ReadFile(environments.KeyPath(folder, entry.Key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, airgap.File{Name: path.Join("keys", fmt.Sprintf("%d-%s", i+1, filepath.Base(entry.Key))), Data: key})
	}
	return files, nil
}

// LoadRelease says how to check a file.
type LoadRelease struct {
	Trust        connect.Trust
	Restrictions string // a file; empty: none
	Want         airgap.Expectation
}

// Open opens a file and checks it. The caller closes it after the release was let in.
func (l LoadRelease) Open(ctx context.Context, name string) (*airgap.Checked, io.Closer, error) {
	var err error
	if l.Want.Registry, err = l.Trust.RegistryName(); err != nil {
		return nil, nil, err
	}
	if l.Restrictions != "" {
		if l.Want.Restrictions, err = os.ReadFile(l.Restrictions); err != nil {
			return nil, nil, registry.Errorf(registry.CodeInvalid, "--restrictions: %w", err)
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = registry.Errorf(registry.CodeInvalid, "%s is not a regular file", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	checker := airgap.Checker{Trust: l.trust, Now: clock.Now, Inspect: filegate.Inspect}
	checked, err := checker.Check(ctx, f, info.Size(), l.Want)
	if err != nil {
		return nil, nil, errors.Join(registry.Errorf(registry.CodeOf(err), "%s: %w", name, err), f.Close())
	}
	return checked, f, nil
}

// trust is by what a file is judged. A trust file that follows the sending side takes the bundle in the file, if that
// counts by its publishers; another one does not look at it.
func (l LoadRelease) trust(ctx context.Context, bundle []byte) (airgap.Trusted, error) {
	l.Trust.Now = clock.Now
	accepted, err := l.Trust.AcceptSaved(ctx, bundle)
	if err != nil {
		return airgap.Trusted{}, err
	}
	verify, err := accepted.Verify()
	return airgap.Trusted{Verify: verify, Known: accepted.KnownRestrictions}, err
}

// LoadedRelease is a release that was let in.
type LoadedRelease = airgap.Loaded

// TakeRelease lets what was checked into the first environment.
func TakeRelease(ctx context.Context, in *connect.Registry, checked *airgap.Checked) (LoadedRelease, error) {
	return checked.Load(ctx, airgap.Destination{Open: in.Content.Open, First: in.Envs.First().Name, Receiver: in})
}
