package oci_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

const loadAnnotation = "dev.mlpromote.load-profile"

// profiled stores an engine with a load profile.
func profiled(t *testing.T) (*world, artifact.LoadProfile, storage.PartRef) {
	t.Helper()
	w := newWorld(t, options{})
	profile, err := artifact.NewLoadProfile("onnxruntime",
		map[string]string{"graph_optimization_level": "basic"}, map[string]string{"OMP_NUM_THREADS": "1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	p := w.engineParts()[0]
	p.Engine.Load = &profile
	ref, err := w.store.PutPart(t.Context(), staging, p)
	if err != nil {
		t.Fatal(err)
	}
	return w, profile, ref
}

// A load profile is stored twice, as a file and as an annotation, and read back as it was.
func TestLoadProfileIsStored(t *testing.T) {
	t.Parallel()
	w, profile, ref := profiled(t)
	dir := t.TempDir()
	part, err := w.store.Fetch(t.Context(), staging, ref.Digest, dir)
	if err != nil {
		t.Fatal(err)
	}
	document, err := profile.Document()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, artifact.LoadProfileFile))
	if err != nil || string(file) != string(document) {
		t.Errorf("the file is %s (%v), want %s", file, err, document)
	}
	if got := part.Engine.Load; got == nil || got.String() != profile.String() || !got.Required {
		t.Errorf("the engine has the profile %v, want %v", got, profile)
	}
	w.parts["engine "+part.Engine.Label()] = ref
	d := w.assemble(t, staging, options{}, w.assembly(), "engine linux-amd64-v3/int8", "engine linux-amd64-v1/fp32", "limits", "interface")
	release, err := w.store.Release(t.Context(), staging, string(d))
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := release.Engine(ref.Digest); !ok || e.Load == nil || e.Load.String() != profile.String() {
		t.Errorf("the release has the engine %+v, want it with its profile", e)
	}
}

// An engine whose annotation and file disagree is refused: who reads one of them would load it
// in another way than who reads the other.
func TestLoadProfileDisagrees(t *testing.T) {
	t.Parallel()
	w, profile, ref := profiled(t)
	profile.Options = map[string]string{"graph_optimization_level": "all"}
	another, err := profile.Document()
	if err != nil {
		t.Fatal(err)
	}
	file := func(m *ocispec.Manifest) *ocispec.Descriptor {
		i := slices.IndexFunc(m.Layers, func(l ocispec.Descriptor) bool {
			return l.Annotations[ocispec.AnnotationTitle] == artifact.LoadProfileFile
		})
		return &m.Layers[i]
	}
	for name, c := range map[string]struct {
		change func(m *ocispec.Manifest)
		code   registry.Code
		want   string
	}{
		"nothing":            {func(*ocispec.Manifest) {}, "", ""},
		"another annotation": {func(m *ocispec.Manifest) { m.Annotations[loadAnnotation] = string(another) }, registry.CodeTrust, "another load profile"},
		"another file":       {func(m *ocispec.Manifest) { file(m).Digest = digest.FromBytes(another) }, registry.CodeTrust, "another load profile"},
		"no annotation":      {func(m *ocispec.Manifest) { delete(m.Annotations, loadAnnotation) }, registry.CodeTrust, "and no annotation"},
		"no file": {func(m *ocispec.Manifest) {
			m.Layers = slices.DeleteFunc(m.Layers, func(l ocispec.Descriptor) bool { return l.Digest == file(m).Digest })
		}, registry.CodeTrust, "and no file"},
		"an annotation of junk": {func(m *ocispec.Manifest) { m.Annotations[loadAnnotation] = `{"v":1` }, registry.CodeInvalid, loadAnnotation},
		"a hostile annotation": {func(m *ocispec.Manifest) {
			m.Annotations[loadAnnotation] = `{"env":{"LD_PRELOAD":"x.so"},"options":{},"runtime":"onnxruntime","v":1}`
		}, registry.CodeInvalid, "LD_PRELOAD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m ocispec.Manifest
			if err := json.Unmarshal(stored(t, w.blobs, ref.Digest), &m); err != nil {
				t.Fatal(err)
			}
			c.change(&m)
			raw, err := registry.CanonicalJSON(m)
			if err != nil {
				t.Fatal(err)
			}
			_, err = oci.ReadPart(raw)
			switch {
			case c.code == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.code != "" && (!registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %s with %q", err, c.code, c.want)
			}
		})
	}
}
