package service_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/storage"
)

// layerOf returns the bytes of the layer of the engine in a release that [arena.build] makes.
func layerOf(t testing.TB, version string) string {
	t.Helper()
	content := "engine " + registrytest.MakeEngine("v3", "int8").Label() + version
	layer, err := imageform.NewLayer([]artifact.File{{Path: "model.onnx", Digest: digest.FromString(content), Size: int64(len(content))}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(layer.Open(func(artifact.File) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// uploadLayer pushes the layer of a release alone, with a manifest that mentions nothing else.
func uploadLayer(t testing.TB, repository, version string) operation {
	o := uploadOrHear(repository, layerOf(t, version))
	o.name = "upload the layer of " + version + " to " + repository
	return o
}

// untag lets go of everything that a repository has, as clients may do where nothing is protected.
func untag(repository string) operation {
	return operation{"untag " + repository, "",
		func(t testing.TB, ctx context.Context, a *arena, _ *service.Service) answer {
			tags, err := a.db.ListTags(ctx, repository, "", 0)
			for _, tag := range tags {
				if err == nil {
					err = a.db.DeleteTag(ctx, repository, tag)
				}
			}
			return said(err, "ok")
		},
		func(*model, string) string { return "ok" }}
}

// stray stores an engine and its image form in a repository that no environment has.
func (s *start) stray(t testing.TB, version string) {
	t.Helper()
	e := registrytest.MakeEngine("v3", "int8")
	content := "engine " + e.Label() + version
	files := []storage.PartFile{{
		File: artifact.File{Path: "model.onnx", Digest: digest.FromString(content), Size: int64(len(content))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}}
	some := digest.FromString("some")
	e.Reference, e.Sources, e.Limits, e.Interface = some, some, some, some
	store := s.store()
	for _, role := range []artifact.PartKind{artifact.PartEngine, artifact.PartImage} {
		ref, err := store.PutPart(t.Context(), "staging/stray", storage.Part{Role: role, Model: "stray", Format: "onnx", Engine: e, Files: files})
		if err != nil {
			t.Fatal(err)
		}
		e.Digest = ref.Digest
	}
}

// hasOwn reports whether the layer of a release has own bytes, and whether it has a recipe.
func (a *arena) hasOwn(t testing.TB, version string) (own, recipe bool) {
	t.Helper()
	d := digest.FromString(layerOf(t, version))
	_, _, err := a.blobs.Open(t.Context(), d)
	_, missing := a.db.Recipe(t.Context(), d)
	return err == nil, missing == nil
}

func (s *start) want(t testing.TB, version string, own, recipe bool) {
	t.Helper()
	if gotOwn, gotRecipe := s.hasOwn(t, version); gotOwn != own || gotRecipe != recipe {
		t.Fatalf("the layer of %s has own bytes: %v, a recipe: %v; want %v and %v", version, gotOwn, gotRecipe, own, recipe)
	}
}

// composing are starts whose next collection does something with the layers of 1.2.0 or of a stray engine, and operations to
// interleave with it.
func composing(late bool) map[string]scene {
	begin := func(t *testing.T) *start {
		s := open(t, "", "staging", "prod")
		s.late = late
		s.want(t, "1.2.0", true, false)
		return s
	}
	return map[string]scene{
		"records recipes": {func(t *testing.T) *start {
			s := begin(t)
			s.fine = true
			return s
		}, []operation{promote("prod", ""), backup()}},
		"deletes own bytes": {func(t *testing.T) *start {
			s := begin(t)
			s.do(t, collectGarbage())
			s.tomorrow()
			s.want(t, "1.2.0", true, true)
			s.fine = true
			return s
		}, []operation{promote("prod", ""), backup()}},
		"deletes a recipe": {func(t *testing.T) *start {
			s := begin(t)
			s.stray(t, "stray")
			for range 3 { // it records recipes and marks, deletes own bytes and records, and deletes what is unheld
				s.do(t, collectGarbage())
				s.tomorrow()
			}
			s.want(t, "stray", false, true)
			s.fine = true
			return s
		}, nil},
	}
}

// Whatever a collector does to layers, what was acknowledged can be read.
func TestComposing(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for name, c := range composing(late) {
			if late {
				name += " from a storage of requests"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := c.start(t)
				version := "1.2.0"
				if c.operations == nil {
					version = "stray"
				}
				push, collected := uploadLayer(t, "prod/other", version), collectOrHear()
				for _, other := range append(c.operations, push) {
					s.pair(t, collected, other)
				}
				two := &trial{start: s, t: t, operations: []operation{collected, push, pause()}}
				three := &trial{start: s, t: t, operations: []operation{collected, collected, push}}
				if late {
					two.operations = append(two.operations, repeatDeletions())
				}
				for seed := range uint64(soak(pairRuns, 3000)) {
					s.chance(two, seed)
					s.chance(three, seed)
				}
			})
		}
	}
}

// A layer that was pushed alone into another repository can be read after its engine is gone, and is gone with it.
func TestLayerOutlivesItsEngine(t *testing.T) {
	t.Parallel()
	s := open(t, "", "staging", "prod")
	s.stray(t, "stray")
	for _, untouched := range []bool{true, false} {
		s.do(t, collectGarbage())
		s.want(t, "stray", untouched, true)
		s.do(t, uploadLayer(t, "staging/other", "stray"))
		s.tomorrow()
	}
	layer, part := digest.FromString(layerOf(t, "stray")), digest.FromString("engine "+registrytest.MakeEngine("v3", "int8").Label()+"stray")
	s.do(t, uploadLayer(t, "staging/other", "stray"))
	s.want(t, "stray", false, true) // a push of what can be composed stores nothing
	if err := s.db.SetTag(t.Context(), "staging/other", "kept", s.manifestIn(t, "staging/other")); err != nil {
		t.Fatal(err)
	}
	days := func(n int) {
		for range n {
			s.tomorrow()
			s.do(t, collectGarbage())
		}
	}
	days(5)
	for _, repository := range []string{"staging/stray"} {
		if held, err := s.db.Records(t.Context(), repository); err != nil || len(held) != 0 {
			t.Fatalf("%s holds %v, error %v, want nothing", repository, held, err)
		}
	}
	s.want(t, "stray", false, true)
	for _, d := range []registry.Digest{layer, part} {
		if err := s.readable(t.Context(), d); err != nil {
			t.Error(err)
		}
	}
	s.do(t, untag("staging/other"))
	days(5)
	s.want(t, "stray", false, false)
	if err := s.readable(t.Context(), part); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("the part of a recipe that is gone: error %v, want %s", err, registry.CodeNotFound)
	}
}

// manifestIn returns the only manifest of a repository.
func (a *arena) manifestIn(t testing.TB, repository string) registry.Digest {
	t.Helper()
	held, err := a.db.Records(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range held {
		if h.Manifest {
			return h.Digest
		}
	}
	t.Fatalf("%s has no manifest", repository)
	return ""
}
