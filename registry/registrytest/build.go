package registrytest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Build is a release to be made. The zero fields are those of the sample release:
// version 1.0.0 of vision/digits with the engines of [Engines].
type Build struct {
	Model    string
	Version  string
	Revision int
	Engines  []artifact.Engine // targets, variants, precisions and toolchains; a spec lists the last one first
	Salt     string            // another salt makes other bytes
	// WithoutImages makes a release as versions before image forms did.
	WithoutImages bool
}

// Model is the model of the sample release.
const Model = "vision/digits"

// Engines are the engines of the sample release: fp32 for every amd64 machine, fp32
// and int8 for level v3. Its spec lists int8 first.
func Engines() []artifact.Engine {
	return []artifact.Engine{MakeEngine("v1", "fp32"), MakeEngine("v3", "fp32"), MakeEngine("v3", "int8")}
}

// MakeEngine is an engine for an x86-64 level, of a precision that also names its variant.
func MakeEngine(level, precision string) artifact.Engine {
	return artifact.Engine{
		Target: artifact.Target{
			V: artifact.TargetVersion, Name: "linux-amd64-" + level, OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: level},
			Runtimes: map[string]artifact.Constraint{"onnxruntime": {Min: "1.30"}},
		},
		Toolchain: artifact.Toolchain{Name: "onnxruntime", Version: "1.30.0"},
		Variant:   precision, Precision: precision,
	}
}

// Node is a machine of an x86-64 level that has ONNX Runtime 1.30.0.
func Node(level string) artifact.Node {
	return artifact.Node{
		V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: level, Vendor: "vendor", Model: "model " + level, Features: []string{"avx2", "fma"}},
		Runtimes: map[string]string{"onnxruntime": "1.30.0"}, Source: "machine",
	}
}

// withDefaults fills in the zero fields.
func (b Build) withDefaults() Build {
	if b.Model == "" {
		b.Model = Model
	}
	if b.Version == "" {
		b.Version = "1.0.0"
	}
	if b.Revision == 0 {
		b.Revision = 1
	}
	if b.Engines == nil {
		b.Engines = Engines()
	}
	return b
}

// Store writes a release and its sources to parts, as a build does, and returns its digest.
// It is not published.
func (b Build) Store(t testing.TB, parts storage.PartStore) registry.Digest {
	t.Helper()
	d, err := b.TryStore(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TryStore is Store for parts that may fail.
func (b Build) TryStore(ctx context.Context, parts storage.PartStore) (registry.Digest, error) {
	b = b.withDefaults()
	s := store{parts: parts, repository: registry.SourcesRepository("staging", b.Model)}
	reference := s.put(ctx, storage.Part{Role: artifact.PartReference, Model: b.Model, Format: "onnx",
		Engine: artifact.Engine{Precision: "fp32"}, Files: file("model.onnx", "reference "+b.Salt)})
	cases := s.put(ctx, storage.Part{Role: artifact.PartCases, Files: file("cases.safetensors", "cases"), Set: &artifact.CaseSet{
		Count: 5, Origin: artifact.OriginRecorded, Shards: []artifact.Shard{{File: "cases.safetensors", Count: 5}},
	}})
	sources := s.assemble(ctx, storage.Assembly{Model: b.Model, Parts: []storage.PartRef{reference, cases}})

	s.repository = registry.Repository("staging", b.Model)
	limits := s.put(ctx, storage.Part{Role: artifact.PartLimits, Files: file("limits.json", `{"v":1}`)})
	offered := s.put(ctx, storage.Part{Role: artifact.PartInterface, Files: file("interface.json", `{"v":1}`)})
	refs := []storage.PartRef{limits, offered}
	listed := slices.Clone(b.Engines)
	slices.Reverse(listed)
	for _, e := range artifact.OrderEngines(listed, func(e artifact.Engine) artifact.Engine { return e }) {
		e.Reference, e.Sources, e.Limits, e.Interface = reference.Digest, sources, limits.Digest, offered.Digest
		files := file("model.onnx", "engine "+e.Label()+b.Salt)
		engine := s.put(ctx, storage.Part{Role: artifact.PartEngine, Model: b.Model, Format: "onnx", Engine: e, Files: files})
		refs = append(refs, engine)
		if !b.WithoutImages {
			e.Digest = engine.Digest
			refs = append(refs, s.put(ctx, storage.Part{Role: artifact.PartImage, Engine: e, Files: files}))
		}
	}
	r := artifact.Release{Version: b.Version, Revision: b.Revision}
	release := s.assemble(ctx, storage.Assembly{
		Model: b.Model, Version: b.Version, Revision: b.Revision, Sources: sources, Plan: digest.FromString("plan"), Parts: refs, Tags: []string{r.Tag()},
	})
	return release, s.err
}

// store writes parts of one repository, until one fails.
type store struct {
	parts      storage.PartStore
	repository string
	err        error
}

func (s *store) put(ctx context.Context, p storage.Part) storage.PartRef {
	if s.err != nil {
		return storage.PartRef{}
	}
	ref, err := s.parts.PutPart(ctx, s.repository, p)
	if err != nil {
		s.err = fmt.Errorf("put %s into %s: %w", p.Role, s.repository, err)
	}
	return ref
}

func (s *store) assemble(ctx context.Context, a storage.Assembly) registry.Digest {
	if s.err != nil {
		return ""
	}
	d, err := s.parts.Assemble(ctx, s.repository, a)
	if err != nil {
		s.err = fmt.Errorf("assemble in %s: %w", s.repository, err)
	}
	return d
}

// file is one file with a text.
func file(path, text string) []storage.PartFile {
	return []storage.PartFile{{
		File: artifact.File{Path: path, Digest: digest.FromString(text), Size: int64(len(text))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(text))), nil },
	}}
}
