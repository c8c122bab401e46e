package remotecache

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

func (s *Steps) load(ctx context.Context, key registry.Digest, outDir string) (toolchain.Outcome, error) {
	manifest, err := s.manifest(ctx, key)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	outcome, err := s.evaluate(ctx, key, manifest)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	for i := range outcome.Files {
		f := &outcome.Files[i]
		f.Path = filepath.Join(outDir, filepath.FromSlash(f.Name))
		if err := s.fetch(ctx, *f); err != nil {
			return toolchain.Outcome{}, errors.Join(err, discard(outcome.Files[:i]))
		}
	}
	return outcome, os.MkdirAll(outDir, 0o777)
}

func (s *Steps) manifest(ctx context.Context, key registry.Digest) (ocispec.Manifest, error) {
	desc, err := s.Repository.Resolve(ctx, tag(key))
	if err != nil {
		return ocispec.Manifest{}, err
	}
	text, err := s.read(ctx, desc, maxManifest)
	if err != nil {
		return ocispec.Manifest{}, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil ||
		m.ArtifactType != typeStep || len(m.Layers) < 1 || len(m.Layers) > maxFiles {
		return ocispec.Manifest{}, distrust("they are not entries of a build cache")
	}
	return m, nil
}

// evaluate reads an entry and decides whether it counts. Errors: CodeTrust.
func (s *Steps) evaluate(ctx context.Context, key registry.Digest, m ocispec.Manifest) (toolchain.Outcome, error) {
	bundle, err := s.read(ctx, m.Layers[0], maxBundle)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	claim, err := s.Verify(ctx, bundle, s.Resource)
	claim.RecordedAt = time.Now()
	// The time when a step was signed is not recorded, so entries of a retired key are ignored
	// like those of a revoked one.
	if registry.HasCode(err, registry.CodeTrust) || err == nil && !claim.SignedNowAs(evidence.RoleBuilder) {
		return toolchain.Outcome{}, distrust("no trusted builder for " + s.Resource + " signed them")
	}
	if err != nil {
		return toolchain.Outcome{}, err
	}
	if claim.Statement.PredicateType != PredicateStep || !claim.Statement.About(m.Config.Digest) {
		return toolchain.Outcome{}, distrust("the signed statement is about something else")
	}
	record, err := s.read(ctx, m.Config, maxRecord)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	outcome, err := toolchain.UnmarshalStep(record)
	if err != nil || outcome.Key != key {
		return toolchain.Outcome{}, distrust("they are for other steps than their tags say")
	}
	outcome.Origin = toolchain.Origin{Cache: s.Name, Signer: claim.Signer}
	return outcome, nil
}

func distrust(why string) error { return registry.Errorf(registry.CodeTrust, "%s", why) }

// read fetches a document. Errors: CodeTrust for one that is too large; CodeDigest if its bytes
// do not match its digest.
func (s *Steps) read(ctx context.Context, desc ocispec.Descriptor, most int64) ([]byte, error) {
	if desc.Size < 0 || desc.Size > most {
		return nil, distrust("they are too large")
	}
	text, err := content.FetchAll(ctx, s.Repository, desc)
	if errors.Is(err, content.ErrMismatchedDigest) ||
		errors.Is(err, content.ErrTrailingData) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, registry.Errorf(registry.CodeDigest, "their bytes are not those of their digests")
	}
	return text, err
}

// fetch fetches a file. Errors: CodeDigest if its bytes do not match its digest.
func (s *Steps) fetch(ctx context.Context, f toolchain.OutputFile) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o777); err != nil {
		return err
	}
	in, err := s.Repository.Fetch(ctx, ocispec.Descriptor{MediaType: typeFile, Digest: f.Digest, Size: f.Size})
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	digester := digest.SHA256.Digester()
	n, err := io.Copy(io.MultiWriter(out, digester.Hash()), io.LimitReader(in, f.Size+1))
	err = errors.Join(err, out.Close())
	if err == nil && (n != f.Size || digester.Digest() != f.Digest) {
		err = registry.Errorf(registry.CodeDigest, "their bytes are not those of their digests")
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Path))
	}
	return nil
}

func discard(files []toolchain.OutputFile) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, os.Remove(f.Path))
	}
	return errors.Join(errs...)
}

// Load fetches the files of a step, as [toolchain.Steps] describes. An ignored entry gives
// CodeNotFound, like a missing one.
func (s *Steps) Load(ctx context.Context, key registry.Digest, outDir string) (toolchain.Outcome, error) {
	missing := registry.Errorf(registry.CodeNotFound, "step %s is not in %s", key, s.Name)
	if s.troubled() {
		return toolchain.Outcome{}, missing
	}
	outcome, err := s.load(ctx, key, outDir)
	switch {
	case err == nil:
		return outcome, nil
	case ctx.Err() != nil:
		return toolchain.Outcome{}, ctx.Err()
	case errors.Is(err, errdef.ErrNotFound):
	case registry.HasCode(err, registry.CodeTrust), registry.HasCode(err, registry.CodeDigest):
		s.ignore(err)
	default:
		s.note(err)
	}
	return toolchain.Outcome{}, missing
}
