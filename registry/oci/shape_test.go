package oci_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
)

// The manifest and config of an engine, written by hand after the OCI image
// specification and the ModelPack specification.
func TestEngineShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	manifest := stored(t, w.blobs, w.parts["engine linux-amd64-v3/int8"].Digest)
	config := fmt.Sprintf(`{"config":{"format":"onnx","precision":"int8"},"descriptor":{"name":"vision/digits"},"modelfs":{"diffIds":[%q,%q,%q],"type":"layers"}}`,
		digest.FromString("0 1 2"), digest.FromString("engine int8"), digest.FromString("\x7fELF"))
	layer := func(kind, path, text string) string {
		return fmt.Sprintf(`{"annotations":{"org.cncf.model.filepath":%q,"org.opencontainers.image.title":%q},"digest":%q,"mediaType":"application/vnd.cncf.model.%s.v1.raw","size":%d}`,
			path, path, digest.FromString(text), kind, len(text))
	}
	want := `{"annotations":{` + strings.Join([]string{
		`"dev.mlpromote.format":"1"`,
		fmt.Sprintf(`"dev.mlpromote.interface":%q`, w.parts["interface"].Digest),
		fmt.Sprintf(`"dev.mlpromote.limits":%q`, w.parts["limits"].Digest),
		`"dev.mlpromote.native-code":"true"`,
		`"dev.mlpromote.precision":"int8"`,
		fmt.Sprintf(`"dev.mlpromote.reference":%q`, w.parts["reference"].Digest),
		`"dev.mlpromote.role":"engine"`,
		fmt.Sprintf(`"dev.mlpromote.sources":%q`, w.sources),
		`"dev.mlpromote.target":"{\"cpu\":{\"arch\":\"amd64\",\"level\":\"v3\"},\"name\":\"linux-amd64-v3\",\"os\":\"linux\",\"runtimes\":{\"onnxruntime\":{\"min\":\"1.30.0\"}},\"v\":1}"`,
		fmt.Sprintf(`"dev.mlpromote.toolchain":"{\"lock\":\"%s\",\"name\":\"onnxruntime\",\"options\":\"%s\",\"version\":\"1.30.0\"}"`, digest.FromString("lock"), digest.FromString("options")),
		`"dev.mlpromote.variant":"int8"`,
	}, ",") + `},"artifactType":"application/vnd.cncf.model.manifest.v1+json",` +
		fmt.Sprintf(`"config":{"digest":%q,"mediaType":"application/vnd.cncf.model.config.v1+json","size":%d},`, digest.FromString(config), len(config)) +
		`"layers":[` + strings.Join([]string{
		layer("weight.config", "labels/digits.txt", "0 1 2"),
		layer("weight", "model.onnx", "engine int8"),
		layer("code", "ops.so", "\x7fELF"),
	}, ",") + `],"mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}`
	if diff := cmp.Diff(want, string(manifest)); diff != "" {
		t.Errorf("engine manifest (-want +got):\n%s", diff)
	}
	if got := stored(t, w.blobs, digest.FromString(config)); string(got) != config {
		t.Errorf("config %s", got)
	}
}

// ModelPack's words for precisions; what it has no word for is left out.
func TestPrecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for precision, word := range map[string]string{"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8", "int4": ""} {
		p := w.engineParts()[0]
		p.Engine.Precision = precision
		ref, err := w.store.PutPart(t.Context(), staging, p)
		if err != nil {
			t.Fatal(err)
		}
		var manifest ocispec.Manifest
		if err := json.Unmarshal(stored(t, w.blobs, ref.Digest), &manifest); err != nil {
			t.Fatal(err)
		}
		var config struct {
			Config map[string]string `json:"config"`
		}
		if err := json.Unmarshal(stored(t, w.blobs, manifest.Config.Digest), &config); err != nil {
			t.Fatal(err)
		}
		if got, ok := config.Config["precision"]; got != word || ok != (word != "") {
			t.Errorf("%s: got %q", precision, got)
		}
	}
}

// Nothing stored carries a time or a platform: with one, "oras pull --platform" takes
// the first engine that fits by half.
func TestNoTimeAndNoPlatform(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for m, err := range w.refs.AllManifests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		raw := string(stored(t, w.blobs, m.Manifest.Digest))
		for _, word := range []string{"created", "platform"} {
			if strings.Contains(raw, word) {
				t.Errorf("%s holds %q: %s", m.Manifest.Digest, word, raw)
			}
		}
		if canonical, err := registry.CanonicalJSON(json.RawMessage(raw)); err != nil || string(canonical) != raw {
			t.Errorf("%s is not canonical: %s", m.Manifest.Digest, raw)
		}
	}
}

var update = flag.Bool("update", false, "write testdata/format-1 anew; a format that was released does not change")

// sample is testdata/format-1/sample.json: what stands where in the stored sample.
type sample struct {
	Release   registry.Digest   `json:"release"`
	Sources   registry.Digest   `json:"sources"`
	Evidence  []registry.Digest `json:"evidence"`
	Manifests []sampleManifest  `json:"manifests"` // in the order of pushing
}

type sampleManifest struct {
	Repository string          `json:"repository"`
	MediaType  string          `json:"mediaType"`
	Digest     registry.Digest `json:"digest"`
}

const sampleDir = "testdata/format-1"

// writeSample stores the sample release as files by digest.
func writeSample(t *testing.T) {
	w := newWorld(t, options{})
	s := sample{Release: w.release.Digest, Sources: w.sources, Evidence: w.evidence}
	for m, err := range w.refs.AllManifests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		s.Manifests = append(s.Manifests, sampleManifest{m.Repository, m.Manifest.MediaType, m.Manifest.Digest})
	}
	for d, err := range w.blobs.Digests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		writeSampleFile(t, d.Encoded(), stored(t, w.blobs, d))
	}
	index, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	writeSampleFile(t, "sample.json", append(index, '\n'))
}

func writeSampleFile(t *testing.T, name string, data []byte) {
	if err := os.WriteFile(filepath.Join(sampleDir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// readSample loads the stored sample as what a registry would hold.
func readSample(t *testing.T) (*world, sample) {
	t.Helper()
	w := &world{blobs: mem.NewBlobs(), refs: mem.New()}
	w.store = newStore(w.blobs, w.refs, oci.Options{})
	raw, err := os.ReadFile(filepath.Join(sampleDir, "sample.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s sample
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	manifests := make(map[string]bool)
	for _, m := range s.Manifests {
		manifests[m.Digest.Encoded()] = true
		if d := w.pushRaw(t, m.Repository, m.MediaType, sampleFile(t, m.Digest.Encoded())); d != m.Digest {
			t.Errorf("the file of %s holds %s", m.Digest, d)
		}
	}
	entries, err := os.ReadDir(sampleDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "sample.json" || manifests[entry.Name()] {
			continue
		}
		for _, repository := range []string{staging, sources} {
			if d := w.pushRaw(t, repository, "application/octet-stream", sampleFile(t, entry.Name())); d.Encoded() != entry.Name() {
				t.Errorf("the file %s holds %s", entry.Name(), d)
			}
		}
	}
	return w, s
}

func sampleFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sampleDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The stored sample of format 1 is read, and what is made of the same parts has the same digests.
// Whoever changes a shape before release 0.1.0 makes the sample anew.
func TestFormat1(t *testing.T) {
	t.Parallel()
	if *update {
		writeSample(t)
	}
	w, s := readSample(t)
	ctx := t.Context()
	r, err := w.store.Release(ctx, staging, string(s.Release))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "vision/digits" || r.Version != "1.0.0" || r.Revision != 1 || r.Sources != s.Sources ||
		len(r.Engines) != 2 || r.Engines[1].Label() != "linux-amd64-v3/int8" || !r.Engines[1].NativeCode {
		t.Errorf("the sample reads as %+v", r)
	}
	if err := w.store.Rehash(ctx, staging, r); err != nil {
		t.Error(err)
	}
	from, err := w.store.Sources(ctx, sources, s.Sources)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := w.store.Fetch(ctx, sources, from.Parts[artifact.PartCases].Digest, t.TempDir())
	if err != nil || cases.Set.Count != 5 || cases.Set.Labels != "label" || len(cases.Set.Shards) != 2 {
		t.Errorf("cases %+v, %v", cases, err)
	}
	golden, err := w.store.Fetch(ctx, sources, from.Parts[artifact.PartGolden].Digest, t.TempDir())
	if err != nil || golden.Set.Kind != "onnxruntime/disable_all" || golden.Set.Node.CPU.Level != "v3" {
		t.Errorf("golden %+v, %v", golden, err)
	}
	if err := w.store.Copy(ctx, staging, prod, r, s.Evidence); err != nil {
		t.Error(err)
	}
	made := newWorld(t, options{})
	if made.release.Digest != s.Release || made.sources != s.Sources || !cmp.Equal(made.evidence, s.Evidence) {
		t.Error("the same parts now have other digests than those of the sample: a change of a shape makes it anew, with -update")
	}
}
