package oci_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// pushRaw stores a document past all of this package's checks on meaning.
func (w *world) pushRaw(t testing.TB, repository, mediaType string, raw []byte) registry.Digest {
	t.Helper()
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	if err := oci.Local(w.blobs, w.refs, repository).Push(t.Context(), desc, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	return desc.Digest
}

// changed stores a copy of an index or manifest with changes.
func changed[T any](t testing.TB, w *world, repository, mediaType string, d registry.Digest, change func(*T)) registry.Digest {
	t.Helper()
	var document T
	if err := json.Unmarshal(stored(t, w.blobs, d), &document); err != nil {
		t.Fatal(err)
	}
	change(&document)
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return w.pushRaw(t, repository, mediaType, raw)
}

func changedIndex(t testing.TB, w *world, change func(*ocispec.Index)) registry.Digest {
	return changed(t, w, staging, ocispec.MediaTypeImageIndex, w.release.Digest, change)
}

// An index that is no release, or contradicts the manifests in it, is refused.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	set := func(key, value string) func(*ocispec.Index) {
		return func(i *ocispec.Index) { i.Annotations["dev.mlpromote."+key] = value }
	}
	setEntry := func(entry int, key, value string) func(*ocispec.Index) {
		return func(i *ocispec.Index) { i.Manifests[entry].Annotations["dev.mlpromote."+key] = value }
	}
	other := string(digest.FromString("other"))
	w := newWorld(t, options{})
	fp32, small := w.release.Engines[0].Digest, w.release.Engines[1].Digest
	tests := []struct {
		name   string
		change func(*ocispec.Index)
		code   registry.Code
		text   string
	}{
		{"target", setEntry(0, "target", `{"v":1}`), registry.CodeTrust, "engine linux-amd64-v1/fp32"},
		{"spaces in target", func(i *ocispec.Index) {
			a := i.Manifests[0].Annotations
			a["dev.mlpromote.target"] = strings.Replace(a["dev.mlpromote.target"], ",", ", ", 1)
		}, registry.CodeTrust, "dev.mlpromote.target"},
		{"variant", setEntry(1, "variant", "fp32"), registry.CodeTrust, "dev.mlpromote.variant"},
		{"added key", setEntry(0, "native-code", "true"), registry.CodeTrust, "dev.mlpromote.native-code"},
		{"added empty key", setEntry(0, "new", ""), registry.CodeTrust, "dev.mlpromote.new"},
		{"dropped key", func(i *ocispec.Index) { delete(i.Manifests[1].Annotations, "dev.mlpromote.native-code") }, registry.CodeTrust, "native-code"},
		{"artifact type of entry", func(i *ocispec.Index) { i.Manifests[0].ArtifactType = "application/x" }, registry.CodeTrust, "artifact type"},
		{"sources", set("sources", other), registry.CodeTrust, "was made for another release"},
		{"model", set("model", "vision/sources"), registry.CodeInvalid, "reserved"},
		{"version", set("version", "1.0"), registry.CodeInvalid, "semantic version"},
		{"revision", set("revision", "01"), registry.CodeInvalid, "revision"},
		{"revision zero", set("revision", "0"), registry.CodeInvalid, "revision"},
		{"plan", set("plan", "sha256:short"), registry.CodeInvalid, "plan"},
		{"no order", func(i *ocispec.Index) { delete(i.Annotations, "dev.mlpromote.order") }, registry.CodeInvalid, "no annotation dev.mlpromote.order"},
		{"an order that is no list", set("order", `{"first":"x"}`), registry.CodeInvalid, "want a list of the digests"},
		{"an empty order", set("order", "[]"), registry.CodeInvalid, "does not name the engine linux-amd64-v1/fp32"},
		{"an order of nothing", set("order", "null"), registry.CodeInvalid, "does not name the engine"},
		{"an order of one engine", set("order", fmt.Sprintf("[%q]", fp32)), registry.CodeInvalid, "does not name the engine linux-amd64-v3/int8"},
		{"an engine twice in the order", set("order", fmt.Sprintf("[%q,%q,%q]", fp32, small, fp32)), registry.CodeInvalid, "named twice"},
		{"another engine in the order", set("order", fmt.Sprintf("[%q,%q,%q]", fp32, small, other)), registry.CodeInvalid, "is no engine of it"},
		{"a long order", set("order", "["+strings.Repeat(fmt.Sprintf("%q,", other), 20000)+fmt.Sprintf("%q]", other)), registry.CodeInvalid, "is no engine of it"},
		{"later format", set("format", "2"), registry.CodeInvalid, "newer version"},
		{"no format", func(i *ocispec.Index) { delete(i.Annotations, "dev.mlpromote.format") }, registry.CodeInvalid, "not made by mlpromote"},
		{"later type", func(i *ocispec.Index) { i.ArtifactType = "application/vnd.mlpromote.release.v2+json" }, registry.CodeInvalid, "newer version"},
		{"other type", func(i *ocispec.Index) { i.ArtifactType = "application/x" }, registry.CodeInvalid, "artifact type"},
		{"no limits", func(i *ocispec.Index) { i.Manifests = i.Manifests[:3] }, registry.CodeInvalid, "limits or interface is missing"},
		{"no engines", func(i *ocispec.Index) { i.Manifests = i.Manifests[2:] }, registry.CodeInvalid, "no engine"},
		{"entry twice", func(i *ocispec.Index) { i.Manifests = append(i.Manifests, i.Manifests[0]) }, registry.CodeInvalid, "twice"},
		{"unknown role", setEntry(0, "role", "golden"), registry.CodeInvalid, "not allowed here"},
		{"nested index", func(i *ocispec.Index) { i.Manifests[0].MediaType = ocispec.MediaTypeImageIndex }, registry.CodeInvalid, "not an image manifest"},
		{"missing entry", func(i *ocispec.Index) { i.Manifests[0].Digest = digest.FromString("gone") }, registry.CodeNotFound, "is not there"},
		{"huge entry", func(i *ocispec.Index) { i.Manifests[0].Size = 5 << 20 }, registry.CodeInvalid, "at most"},
		{"negative entry", func(i *ocispec.Index) { i.Manifests[0].Size = -1 }, registry.CodeInvalid, "out of range"},
		{"bad digest", func(i *ocispec.Index) { i.Manifests[0].Digest = "sha256:x" }, registry.CodeInvalid, "digest"},
		{"unknown algorithm", func(i *ocispec.Index) { i.Manifests[0].Digest = "md5:d41d8cd98f00b204e9800998ecf8427e" }, registry.CodeInvalid, "digest"},
		{"many annotations", func(i *ocispec.Index) {
			for n := range 200 {
				i.Annotations[fmt.Sprint("a", n)] = ""
			}
		}, registry.CodeInvalid, "annotations"},
		{"many entries", func(i *ocispec.Index) {
			for range 2000 {
				i.Manifests = append(i.Manifests, i.Manifests[0])
			}
		}, registry.CodeInvalid, "entries"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := changedIndex(t, w, test.change)
			_, err := w.store.Release(t.Context(), staging, string(d))
			wantCode(t, err, test.code, staging, test.text)
		})
	}
}

// What a newer version, or somebody else, may have added is no reason to refuse.
func TestReleaseIgnores(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	d := changedIndex(t, w, func(i *ocispec.Index) {
		i.Annotations["dev.mlpromote.unknown"] = "x"
		i.Annotations["com.example"] = "y"
		i.Manifests[0].Annotations["com.example"] = "z"
		i.Manifests[0], i.Manifests[3] = i.Manifests[3], i.Manifests[0]
	})
	got, err := w.store.Release(t.Context(), staging, string(d))
	if err != nil || got.Engines[0].Digest != w.release.Engines[0].Digest {
		t.Errorf("got %v, %v", got, err)
	}
}

// Documents that two readers could read differently are refused.
func TestAmbiguousDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	raw := string(stored(t, w.blobs, w.release.Digest))
	for _, test := range []struct{ name, from, to string }{
		{"key twice", `"schemaVersion":2`, `"schemaVersion":2,"schemaVersion":2`},
		{"key in another case", `"schemaVersion":2`, `"schemaVersion":2,"MANIFESTS":[]`},
		{"key with a Kelvin sign", `"schemaVersion":2`, `"schemaVersion":2,"k":1,"` + "\u212a" + `":2`},
		{"annotation twice", `"dev.mlpromote.version":"1.0.0"`, `"dev.mlpromote.version":"1.0.0","dev.mlpromote.version":"2.0.0"`},
		{"deep", `"schemaVersion":2`, `"schemaVersion":2,"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100)},
		{"no UTF-8", `"dev.mlpromote.version":"1.0.0"`, "\"dev.mlpromote.version\":\"1.0.0\",\"x\":\"\xff\""},
	} {
		bent := strings.Replace(raw, test.from, test.to, 1)
		if bent == raw {
			t.Fatalf("%s: nothing to replace", test.name)
		}
		d := w.pushRaw(t, staging, ocispec.MediaTypeImageIndex, []byte(bent))
		_, err := w.store.Release(t.Context(), staging, string(d))
		wantCode(t, err, registry.CodeInvalid)
	}
}

// A part that would write outside its folder, or hide something, is refused.
func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	title := func(layer int, name string) func(*ocispec.Manifest) {
		return func(m *ocispec.Manifest) {
			m.Layers[layer].Annotations = map[string]string{"org.opencontainers.image.title": name, "org.cncf.model.filepath": name}
		}
	}
	tests := []struct {
		name   string
		change func(*ocispec.Manifest)
		code   registry.Code
	}{
		{"parent", title(0, "../model.onnx"), registry.CodeTrust},
		{"parent inside", title(0, "a/../../model.onnx"), registry.CodeTrust},
		{"absolute", title(0, "/etc/passwd"), registry.CodeTrust},
		{"backslash", title(0, `..\model.onnx`), registry.CodeTrust},
		{"drive", title(0, "C:model.onnx"), registry.CodeTrust},
		{"empty", title(0, ""), registry.CodeTrust},
		{"dot", title(0, "."), registry.CodeTrust},
		{"NUL", title(0, "a\x00b"), registry.CodeTrust},
		{"long", title(0, strings.Repeat("a", 600)), registry.CodeTrust},
		{"twice", title(0, "model.onnx"), registry.CodeTrust},
		{"file and folder", title(0, "model.onnx/labels"), registry.CodeTrust},
		{"two names", func(m *ocispec.Manifest) { m.Layers[0].Annotations["org.cncf.model.filepath"] = "other" }, registry.CodeTrust},
		{"no filepath", func(m *ocispec.Manifest) { delete(m.Layers[0].Annotations, "org.cncf.model.filepath") }, registry.CodeTrust},
		{"unnamed native code", func(m *ocispec.Manifest) { delete(m.Annotations, "dev.mlpromote.native-code") }, registry.CodeTrust},
		{"providers as a word", func(m *ocispec.Manifest) { m.Annotations["dev.mlpromote.providers"] = `"CPU"` }, registry.CodeInvalid},
		{"no providers", func(m *ocispec.Manifest) { m.Annotations["dev.mlpromote.providers"] = `[]` }, registry.CodeInvalid},
		{"providers with other keys", func(m *ocispec.Manifest) {
			m.Annotations["dev.mlpromote.providers"] = `[{"name":"CUDAExecutionProvider","options":{"device_id":"0"},"device":"1"}]`
		}, registry.CodeInvalid},
		{"providers with numbers", func(m *ocispec.Manifest) {
			m.Annotations["dev.mlpromote.providers"] = `[{"name":"CUDAExecutionProvider","options":{"device_id":0}}]`
		}, registry.CodeInvalid},
		{"a provider that loads code", func(m *ocispec.Manifest) {
			m.Annotations["dev.mlpromote.providers"] = `[{"name":"TensorrtExecutionProvider","options":{"trt_extra_plugin_lib_paths":"a.so"}}]`
		}, registry.CodeInvalid},
		{"native code maybe", func(m *ocispec.Manifest) { m.Annotations["dev.mlpromote.native-code"] = "1" }, registry.CodeInvalid},
		{"unknown layer", func(m *ocispec.Manifest) { m.Layers[0].MediaType = "application/x" }, registry.CodeInvalid},
		{"no layers", func(m *ocispec.Manifest) { m.Layers = nil }, registry.CodeInvalid},
		{"huge layer", func(m *ocispec.Manifest) { m.Layers[0].Size = 1 << 60 }, registry.CodeInvalid},
		{"other config", func(m *ocispec.Manifest) { m.Config.MediaType = "application/x" }, registry.CodeInvalid},
		{"other embedded data", func(m *ocispec.Manifest) { m.Config.Data = []byte("{}") }, registry.CodeDigest},
		{"subject", func(m *ocispec.Manifest) { m.Subject = &m.Config }, registry.CodeInvalid},
		{"no target", func(m *ocispec.Manifest) { delete(m.Annotations, "dev.mlpromote.target") }, registry.CodeInvalid},
		{"target with a key twice", func(m *ocispec.Manifest) {
			m.Annotations["dev.mlpromote.target"] = `{"v":1,"v":1,"name":"x","os":"linux","cpu":{"arch":"amd64"}}`
		}, registry.CodeInvalid},
		{"toolchain", func(m *ocispec.Manifest) { m.Annotations["dev.mlpromote.toolchain"] = `{"name":"x"}` }, registry.CodeInvalid},
		{"limits", func(m *ocispec.Manifest) { m.Annotations["dev.mlpromote.limits"] = "x" }, registry.CodeInvalid},
		{"role", func(m *ocispec.Manifest) { m.Annotations["dev.mlpromote.role"] = "x" }, registry.CodeInvalid},
		{"format", func(m *ocispec.Manifest) { m.Annotations["dev.mlpromote.format"] = "2" }, registry.CodeInvalid},
	}
	w := newWorld(t, options{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := changed(t, w, staging, ocispec.MediaTypeImageManifest, w.release.Engines[1].Digest, test.change)
			_, err := w.store.Fetch(t.Context(), staging, d, t.TempDir())
			wantCode(t, err, test.code, staging, string(d))
		})
	}
}

// Parts that do not belong together are not assembled.
func TestAssembleRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	stray := w.engineParts()[0]
	stray.Engine.Limits = digest.FromString("other limits")
	ref, err := w.store.PutPart(t.Context(), staging, stray)
	if err != nil {
		t.Fatal(err)
	}
	twin := w.engineParts()[0]
	twin.Files = files("model.onnx", "engine fp32 once more")
	twinRef, err := w.store.PutPart(t.Context(), staging, twin)
	if err != nil {
		t.Fatal(err)
	}
	limits, iface, engine := w.parts["limits"], w.parts["interface"], w.parts["engine linux-amd64-v1/fp32"]
	tests := []struct {
		name  string
		parts []storage.PartRef
		code  registry.Code
		text  string
	}{
		{"other limits", []storage.PartRef{ref, limits, iface}, registry.CodeTrust, "another release"},
		{"twins", []storage.PartRef{engine, twinRef, limits, iface}, registry.CodeInvalid, "they cannot be distinguished"},
		{"no interface", []storage.PartRef{engine, limits}, registry.CodeInvalid, "limits or interface is missing"},
		{"no engine", []storage.PartRef{limits, iface}, registry.CodeInvalid, "no engine"},
		{"same twice", []storage.PartRef{engine, engine, limits, iface}, registry.CodeInvalid, "twice"},
		{"wrong role", []storage.PartRef{{Role: artifact.PartLimits, Digest: iface.Digest, Size: iface.Size}}, registry.CodeInvalid, "role"},
		{"absent", []storage.PartRef{{Role: artifact.PartEngine, Digest: digest.FromString("no"), Size: 2}}, registry.CodeNotFound, "not there"},
	}
	for _, test := range tests {
		a := w.assembly()
		a.Parts = test.parts
		_, err := w.store.Assemble(t.Context(), staging, a)
		wantCode(t, err, test.code, test.text)
	}
	a := w.assembly()
	a.Parts, a.Tags = []storage.PartRef{engine, limits, iface}, []string{"no/tag"}
	_, err = w.store.Assemble(t.Context(), staging, a)
	wantCode(t, err, registry.CodeInvalid, "no/tag")
}

// Sets that do not describe their files are not stored.
func TestPutPartRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	shards := func(change func(*artifact.CaseSet)) storage.Part {
		p := sourceParts()[1]
		set := *p.Set
		set.Shards = append([]artifact.Shard(nil), set.Shards...)
		change(&set)
		p.Set = &set
		return p
	}
	engine := func(change func(*storage.Part)) storage.Part {
		p := w.engineParts()[0]
		change(&p)
		return p
	}
	tests := map[string]storage.Part{
		"no set":         {Role: artifact.PartCases, Files: files("a", "b")},
		"count":          shards(func(s *artifact.CaseSet) { s.Count = 6 }),
		"gap":            shards(func(s *artifact.CaseSet) { s.Shards[1].First = 4 }),
		"negative":       shards(func(s *artifact.CaseSet) { s.Shards[1].Count = -2 }),
		"overflow":       shards(func(s *artifact.CaseSet) { s.Shards[1].Count = int(^uint(0) >> 1) }),
		"shard twice":    shards(func(s *artifact.CaseSet) { s.Shards[1].File = s.Shards[0].File }),
		"missing shard":  shards(func(s *artifact.CaseSet) { s.Shards, s.Count = s.Shards[:1], 3 }),
		"origin":         shards(func(s *artifact.CaseSet) { s.Origin = "found" }),
		"no files":       {Role: artifact.PartTuning},
		"two limits":     {Role: artifact.PartLimits, Files: files("limits.json", "{}", "more.json", "{}")},
		"no role":        {Files: files("a", "b")},
		"no target":      engine(func(p *storage.Part) { p.Engine.Target = artifact.Target{} }),
		"later target":   engine(func(p *storage.Part) { p.Engine.Target.V = 2 }),
		"no toolchain":   engine(func(p *storage.Part) { p.Engine.Toolchain = artifact.Toolchain{} }),
		"no model":       engine(func(p *storage.Part) { p.Model = "" }),
		"unknown kind":   engine(func(p *storage.Part) { p.Files[0].Kind = "poster" }),
		"no digest":      engine(func(p *storage.Part) { p.Files[0].Digest = "" }),
		"negative bytes": engine(func(p *storage.Part) { p.Files[0].Size = -1 }),
	}
	for name, p := range tests {
		if _, err := w.store.PutPart(t.Context(), staging, p); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: got %v, want invalid", name, err)
		}
	}
	_, err := w.store.PutPart(t.Context(), staging, engine(func(p *storage.Part) { p.Files[0].Path = "../model.onnx" }))
	wantCode(t, err, registry.CodeTrust, "../model.onnx")
}
