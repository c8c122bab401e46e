// Package pull brings an engine to a node and checks pulled folders. [Puller.Pull] resolves, downloads and
// checks in a temporary folder, which then replaces the old one in one step. [Checker.Check] needs nothing
// but the folder.
package pull

import (
	"context"
	"encoding/json"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Result is what Pull wrote, and how it chose the engine.
type Result struct {
	Dir        string         `json:"dir"`
	Record     Record         `json:"record"`
	Resolution api.Resolution `json:"resolution"`
	Files      []string       `json:"files"`
	// Operators are the native libraries in Files, which run inside the process that loads the engine.
	Operators []string `json:"operators,omitempty"`
}

// Puller brings engines to this machine.
type Puller struct {
	Checker
	Registry interface {
		Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error)
		Environments(ctx context.Context) (policy.Environments, error)
		Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error)
	}
	Parts interface {
		Fetch(ctx context.Context, repository string, part registry.Digest, dir string) (storage.FetchedPart, error)
	}
	Evidence interface {
		Evidence(ctx context.Context, repository string, subject registry.Digest) iter.Seq2[evidence.Bundle, error]
	}
	// Inspect looks at the bytes of the files of a part in a folder: other registries do not inspect pushed
	// content. Without it, nothing is pulled.
	Inspect func(dir string, part storage.FetchedPart) error
	// Step is called when a download starts; it returns a function to call when it has ended. May be nil.
	Step func(name string) (done func(err error))
}

// Pull resolves q, writes the engine next to dir, checks digests and signatures there, and then replaces dir in
// one step. If it fails, dir is unchanged. It replaces an empty folder and one that Pull made; it refuses any
// other folder, a mount point, and a pulled folder with added files, before it fetches anything
// (CodeInvalid). Environment and model of want come from q. Errors: those of Resolve and
// [Checker.Check].
func (p Puller) Pull(ctx context.Context, q api.ResolveQuery, dir string, want Expectation) (Result, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Result{}, err
	}
	if err := p.replaceable(dir); err != nil {
		return Result{}, err
	}
	resolution, err := p.Registry.Resolve(ctx, q)
	if err != nil {
		return Result{Resolution: resolution}, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Result{}, err
	}
	temp, err := tempdir.In(filepath.Dir(dir), "."+filepath.Base(dir)+".pulling-")
	if err != nil {
		return Result{}, err
	}
	defer temp.Remove()
	staged := temp.Path
	done := p.start("pull " + resolution.Ref)
	result, err := p.pullInto(ctx, q, resolution, staged, want)
	if err == nil { // files that were added during the download are kept too
		err = p.replaceable(dir)
	}
	if err == nil {
		err = swap(staged, dir)
	}
	done(err)
	result.Dir = dir
	return result, err
}

func (p Puller) start(name string) (done func(error)) {
	if p.Step == nil {
		return func(error) {}
	}
	return p.Step(name)
}

func (p Puller) pullInto(ctx context.Context, q api.ResolveQuery, resolution api.Resolution, dir string, want Expectation) (Result, error) {
	environments, err := p.Registry.Environments(ctx)
	if err != nil {
		return Result{}, err
	}
	repository := registry.Repository(q.Environment, q.Model)
	engine := resolution.Engine
	part, err := p.Parts.Fetch(ctx, repository, engine.Digest, dir)
	if err != nil {
		return Result{}, err
	}
	if p.Inspect == nil {
		return Result{}, registry.Errorf(registry.CodeUnavailable, "the files of engines cannot be inspected here")
	}
	if err := p.Inspect(dir, part); err != nil {
		return Result{}, registry.Errorf(registry.CodeOf(err), "%s: %w", resolution.Ref, err)
	}
	record := Record{
		V: 1, Ref: resolution.Ref, Resource: environments.ResourceURI(q.Environment, q.Model),
		Release: resolution.Release, Version: resolution.Version, Label: engine.Label(),
	}
	if err := writePulled(dir, record, part); err != nil {
		return Result{}, err
	}
	evidence := bundleWriter{verify: p.Verify, dir: dir, resource: record.Resource, left: maxUntrustedBundles, written: make(map[registry.Digest]bool)}
	for _, subject := range []registry.Digest{engine.Digest, resolution.Release} {
		if err := evidence.write(ctx, p.Evidence.Evidence(ctx, repository, subject)); err != nil {
			return Result{}, err
		}
	}
	if err := evidence.write(ctx, unlisted(resolution)); err != nil {
		return Result{}, err
	}
	if err := p.writeRestrictions(ctx, q.Environment, dir); err != nil {
		return Result{}, err
	}
	want.Environment, want.Model, want.Node = q.Environment, q.Model, q.Machine()
	if _, err := p.Check(ctx, dir, want); err != nil {
		return Result{}, err
	}
	// What is said of the engine is what its manifest says, which Check compared with the signatures.
	resolution.Engine = &part.Engine
	result := Result{Record: record, Resolution: resolution}
	for _, f := range part.Files {
		result.Files = append(result.Files, f.Path)
		if f.Kind == artifact.FileCode {
			result.Operators = append(result.Operators, f.Path)
		}
	}
	return result, syncTree(dir)
}

// unlisted yields the evidence that only the registry's catalog has.
func unlisted(resolution api.Resolution) iter.Seq2[evidence.Bundle, error] {
	return func(yield func(evidence.Bundle, error) bool) {
		for _, a := range resolution.Unlisted {
			if !yield(evidence.Bundle{Digest: a.Bundle, Document: a.Document, Data: a.Data}, a.Check()) {
				return
			}
		}
	}
}

// writeRestrictions writes the restriction list in force beside the evidence. Services of earlier
// versions have none.
func (p Puller) writeRestrictions(ctx context.Context, environment, dir string) error {
	signed, err := p.Registry.Restrictions(ctx, environment)
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil
	}
	if err != nil || len(signed.Bundle) == 0 {
		return err
	}
	name := digest.FromBytes(signed.Bundle).Encoded() + bundleSuffix
	return os.WriteFile(filepath.Join(dir, Dir, pulledBundles, name), signed.Bundle, 0o644)
}

func writePulled(dir string, record Record, part storage.FetchedPart) error {
	inner := filepath.Join(dir, Dir)
	if err := os.MkdirAll(filepath.Join(inner, pulledBundles), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(inner, pulledRecord), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(inner, pulledManifest), part.Manifest, 0o644)
}

// maxUntrustedBundles bounds the bytes of bundles whose signers this machine does not trust. They are kept
// because the folder may go to a machine that trusts them.
const maxUntrustedBundles = 16 << 20

// bundleWriter writes the evidence about an engine and its release beside the engine, each
// document once.
type bundleWriter struct {
	verify   storage.VerifyEvidence
	dir      string
	resource string
	left     int // bytes left for bundles of signers who are not trusted here
	written  map[registry.Digest]bool
}

func (w *bundleWriter) write(ctx context.Context, bundles iter.Seq2[evidence.Bundle, error]) error {
	for b, err := range bundles {
		if err != nil {
			return err
		}
		if w.written[b.Document] && b.Document != "" {
			continue
		}
		_, err := w.verify(ctx, b.Data, w.resource)
		if err != nil && !registry.HasCode(err, registry.CodeTrust) {
			return err
		}
		if err != nil {
			if w.left -= len(b.Data); w.left < 0 {
				continue
			}
		}
		w.written[b.Document] = true
		if err := os.WriteFile(filepath.Join(w.dir, Dir, pulledBundles, b.Digest.Encoded()+bundleSuffix), b.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// syncTree makes a folder durable before it is put in place.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(path) //nolint:gosec // the folder was made a moment ago under a random name
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
