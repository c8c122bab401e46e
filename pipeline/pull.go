package pipeline

import (
	"context"
	"encoding/json"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
)

// PulledDir is the folder inside a pulled folder that says what was pulled and why it
// may be trusted.
const PulledDir = ".mlpromote"

// Files inside PulledDir.
const (
	pulledRecord   = "pull.json"
	pulledManifest = "manifest.json"
	pulledBundles  = "bundles"
)

// PullRecord says what a folder was pulled from.
type PullRecord struct {
	V         int             `json:"v"`
	Reference string          `json:"reference"` // ENV/MODEL@DIGEST of the engine
	Resource  string          `json:"resource"`  // what trust and summaries call its repository
	Release   registry.Digest `json:"release"`
	Version   string          `json:"version"`
	Label     string          `json:"label"`
}

// PullResult is what Pull brought, and from which candidates it was chosen.
type PullResult struct {
	Dir        string              `json:"dir"`
	Record     PullRecord          `json:"record"`
	Resolution registry.Resolution `json:"resolution"`
	Files      []string            `json:"files"`
	Operators  []string            `json:"operators,omitempty"` // of Files, libraries: native code that runs where the engine runs
}

// Pull resolves, writes the engine beside dir, checks digests and signatures there, and
// only then puts it in place of dir, in one step. A folder that Pull made before is
// replaced, unless somebody added files; that, any other folder and a mount point are refused
// before anything is fetched (CodeInvalid). Of what is expected, environment and model are
// those of the query. When it fails, dir is as it was.
func (p *Pipeline) Pull(ctx context.Context, q registry.ResolveQuery, dir string, want Expectation) (PullResult, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return PullResult{}, err
	}
	if err := p.replaceable(dir); err != nil {
		return PullResult{}, err
	}
	resolution, err := p.Registry.Resolve(ctx, q)
	if err != nil {
		return PullResult{Resolution: resolution}, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return PullResult{}, err
	}
	staged, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".pull-*")
	if err != nil {
		return PullResult{}, err
	}
	defer os.RemoveAll(staged)
	done := p.step("pull " + resolution.Reference)
	result, err := p.pullInto(ctx, q, resolution, staged, want)
	if err == nil { // what was added during the download shall not be lost either
		err = p.replaceable(dir)
	}
	if err == nil {
		err = install(staged, dir)
	}
	done("", err)
	result.Dir = dir
	return result, err
}

func (p *Pipeline) pullInto(ctx context.Context, q registry.ResolveQuery, resolution registry.Resolution, dir string, want Expectation) (PullResult, error) {
	environments, err := p.Registry.Environments(ctx)
	if err != nil {
		return PullResult{}, err
	}
	repository := registry.Repository(q.Environment, q.Model)
	engine := resolution.Engine
	part, err := p.Parts.Fetch(ctx, repository, engine.Digest, dir)
	if err != nil {
		return PullResult{}, err
	}
	record := PullRecord{
		V: 1, Reference: resolution.Reference, Resource: environments.ResourceURI(q.Environment, q.Model),
		Release: resolution.Release, Version: resolution.Version, Label: engine.Label(),
	}
	if err := writePulled(dir, record, part); err != nil {
		return PullResult{}, err
	}
	evidence := bundleWriter{p: p, dir: dir, resource: record.Resource, left: maxUntrustedBundles, written: make(map[registry.Digest]bool)}
	for _, subject := range []registry.Digest{engine.Digest, resolution.Release} {
		if err := evidence.write(ctx, p.Evidence.Evidence(ctx, repository, subject)); err != nil {
			return PullResult{}, err
		}
	}
	want.Environment, want.Model = q.Environment, q.Model
	if _, err := p.TrustDir(ctx, dir, want); err != nil {
		return PullResult{}, err
	}
	result := PullResult{Record: record, Resolution: resolution}
	for _, f := range part.Files {
		result.Files = append(result.Files, f.Path)
		if f.Kind == registry.FileCode {
			result.Operators = append(result.Operators, f.Path)
		}
	}
	return result, syncTree(dir)
}

func writePulled(dir string, record PullRecord, part registry.FetchedPart) error {
	inner := filepath.Join(dir, PulledDir)
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

// maxUntrustedBundles bounds the bytes of bundles that are kept though nobody who is trusted
// here signed them: another machine, to which the folder goes, may trust others.
const maxUntrustedBundles = 16 << 20

// bundleWriter keeps the evidence about an engine and its release beside the engine, each
// document once.
type bundleWriter struct {
	p        *Pipeline
	dir      string
	resource string
	left     int // bytes for what nobody signed who is trusted here
	written  map[registry.Digest]bool
}

func (w *bundleWriter) write(ctx context.Context, bundles iter.Seq2[registry.Bundle, error]) error {
	for b, err := range bundles {
		if err != nil {
			return err
		}
		if w.written[b.Document] && b.Document != "" {
			continue
		}
		_, err := w.p.CheckBundle(ctx, b.Data, w.resource)
		if err != nil && !registry.HasCode(err, registry.CodeTrust) {
			return err
		}
		if err != nil {
			if w.left -= len(b.Data); w.left < 0 {
				continue
			}
		}
		w.written[b.Document] = true
		if err := os.WriteFile(filepath.Join(w.dir, PulledDir, pulledBundles, b.Digest.Encoded()+bundleSuffix), b.Data, 0o644); err != nil {
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
		f, err := os.Open(path) //nolint:gosec // the folder was made a moment ago under a name that nobody knows
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}

func readRecord(dir string) (PullRecord, error) {
	data, err := os.ReadFile(filepath.Join(dir, PulledDir, pulledRecord))
	if err != nil {
		return PullRecord{}, registry.Errorf(registry.CodeInvalid, "%s was not made by pull: %w", dir, err)
	}
	return parseRecord(dir, data)
}

func parseRecord(dir string, data []byte) (PullRecord, error) {
	var record PullRecord
	if err := registry.DecodeSigned(data, &record); err != nil || record.V != 1 {
		return PullRecord{}, registry.Errorf(registry.CodeInvalid, "%s: %s is not a record of pull version 1", dir, pulledRecord)
	}
	return record, nil
}
