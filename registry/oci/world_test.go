package oci_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// The repositories of the sample release.
const (
	staging = "staging/vision/digits"
	sources = "staging/vision/digits/sources"
	prod    = "prod/vision/digits"
)

// The documents of the sample release that have a format of their own.
const (
	limitsJSON    = `{"accuracy":{"drop":{"max":0.005},"metric":"top1"},"confidence":0.95,"latency":{},"minCases":1,"precisions":{"fp32":{"outputs":{"logits":{"atol":0.00001,"rtol":0.0001}}},"int8":{"outputs":{"logits":{"cosine":{"min":0.99},"top1":{"min":0.99}}}}},"v":1}`
	interfaceJSON = `{"dims":{"batch":{"max":64,"min":1,"opt":1}},"inputs":[{"dtype":"float32","meaning":"","name":"image","shape":["batch",1,8,8]}],"outputs":[{"dtype":"float32","kind":"scores","meaning":"","name":"logits","shape":["batch",10]}],"v":1}`
)

// world is a store in memory with a release, its sources and evidence.
type world struct {
	blobs    storage.Blobs
	refs     storage.RepositoryRecords
	store    *oci.Store
	sources  registry.Digest
	release  artifact.Release
	parts    map[string]storage.PartRef // by role, and by label for engines
	evidence []registry.Digest
}

// options are the ways in which two worlds may differ.
type options struct {
	oci.Options
	reverse bool // hand in everything but engines in the opposite order
}

// newStore gives a store over the storage ports.
func newStore(blobs storage.Blobs, refs storage.RepositoryRecords, o oci.Options) *oci.Store {
	return oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		return oci.Local(blobs, refs, name), nil
	}, o)
}

// newWorld builds the sample release.
func newWorld(t testing.TB, o options) *world {
	t.Helper()
	w := &world{blobs: mem.NewBlobs(), refs: mem.New(), parts: make(map[string]storage.PartRef)}
	w.store = newStore(w.blobs, w.refs, o.Options)
	w.fill(t, o)
	return w
}

// fill puts the sample release into the store of w.
func (w *world) fill(t testing.TB, o options) {
	t.Helper()
	ctx := t.Context()
	for _, p := range sourceParts() {
		w.put(t, sources, o, p)
	}
	w.sources = w.assemble(t, sources, o, storage.Assembly{Model: "vision/digits"}, "reference", "cases", "golden", "calibration", "tuning")
	w.put(t, staging, o, storage.Part{Role: artifact.PartLimits, Files: files("limits.json", limitsJSON)})
	w.put(t, staging, o, storage.Part{Role: artifact.PartInterface, Files: files("interface.json", interfaceJSON)})
	for _, p := range w.engineParts() {
		w.put(t, staging, o, p)
	}
	d := w.assemble(t, staging, o, w.assembly(), "engine linux-amd64-v3/int8", "engine linux-amd64-v1/fp32", "limits", "interface")
	var err error
	if w.release, err = w.store.Release(ctx, staging, string(d)); err != nil {
		t.Fatalf("read the sample release: %v", err)
	}
	w.attach(t, staging, evidence.PredicateSign, w.release.Subjects())
	w.attach(t, staging, evidence.PredicateParity, w.release.Subjects()[1:2])
}

func (w *world) assembly() storage.Assembly {
	return storage.Assembly{
		Model: "vision/digits", Version: "1.0.0", Revision: 1,
		Sources: w.sources, Plan: digest.FromString("plan"), Tags: []string{"1.0.0"},
	}
}

func (w *world) put(t testing.TB, repository string, o options, p storage.Part) storage.PartRef {
	t.Helper()
	if o.reverse {
		p.Files = reversed(p.Files)
	}
	ref, err := w.store.PutPart(t.Context(), repository, p)
	if err != nil {
		t.Fatalf("put %s: %v", p.Role, err)
	}
	name := string(p.Role)
	if p.Role == artifact.PartEngine {
		name += " " + p.Engine.Label()
	}
	w.parts[name] = ref
	return ref
}

func (w *world) assemble(t testing.TB, repository string, o options, a storage.Assembly, parts ...string) registry.Digest {
	t.Helper()
	for _, name := range parts {
		a.Parts = append(a.Parts, w.parts[name])
	}
	if o.reverse {
		a.Parts = reversed(a.Parts)
		engines := slices.DeleteFunc(reversed(a.Parts), func(p storage.PartRef) bool { return p.Role != artifact.PartEngine })
		a.Parts = slices.DeleteFunc(a.Parts, func(p storage.PartRef) bool { return p.Role == artifact.PartEngine })
		a.Parts = append(a.Parts, engines...)
	}
	d, err := w.store.Assemble(t.Context(), repository, a)
	if err != nil {
		t.Fatalf("assemble in %s: %v", repository, err)
	}
	return d
}

func (w *world) attach(t testing.TB, repository, predicateType string, subjects []artifact.Subject) []registry.Digest {
	t.Helper()
	digests, err := w.store.PutEvidence(t.Context(), repository, evidence.Bundle{Data: bundle(predicateType)}, subjects)
	if err != nil {
		t.Fatalf("attach %s: %v", predicateType, err)
	}
	w.evidence = append(w.evidence, digests...)
	return digests
}

// sourceParts are the parts of the sample sources.
func sourceParts() []storage.Part {
	cases := artifact.CaseSet{Count: 5, Origin: artifact.OriginRecorded, Labels: "label", Shards: []artifact.Shard{
		{File: "cases-00000.safetensors", First: 0, Count: 3},
		{File: "cases-00001.safetensors", First: 3, Count: 2},
	}}
	golden := artifact.CaseSet{Count: 5, Kind: "onnxruntime/disable_all", Runtime: "1.30.0",
		Node: &artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v3"}}, Shards: []artifact.Shard{
			{File: "golden-00000.safetensors", First: 0, Count: 5},
		}}
	calibration := artifact.CaseSet{Count: 2, Origin: artifact.OriginRecorded,
		Shards: []artifact.Shard{{File: "calibration-00000.safetensors", Count: 2}}}
	return []storage.Part{
		{Role: artifact.PartReference, Model: "vision/digits", Format: "onnx", Engine: artifact.Engine{Precision: "fp32"}, Files: files("model.onnx", "reference", "model.onnx.data", "weights")},
		{Role: artifact.PartCases, Set: &cases, Files: files("cases-00000.safetensors", "cases 0-2", "cases-00001.safetensors", "cases 3-4")},
		{Role: artifact.PartGolden, Set: &golden, Files: files("golden-00000.safetensors", "golden 0-4")},
		{Role: artifact.PartCalibration, Set: &calibration, Files: files("calibration-00000.safetensors", "calibration")},
		{Role: artifact.PartTuning, Files: files("tensorrt/timing.cache", "timing", "notes.json", "{}")},
	}
}

// engineParts are the engines of the sample release; sources, limits and interface are there.
func (w *world) engineParts() []storage.Part {
	common := artifact.Engine{
		Toolchain: artifact.Toolchain{Name: "onnxruntime", Version: "1.30.0", Lock: digest.FromString("lock"), Options: digest.FromString("options")},
		Reference: w.parts["reference"].Digest,
		Sources:   w.sources,
		Limits:    w.parts["limits"].Digest,
		Interface: w.parts["interface"].Digest,
	}
	plain, quantized := common, common
	plain.Target, plain.Variant, plain.Precision = target("linux-amd64-v1", "v1"), "fp32", "fp32"
	quantized.Target, quantized.Variant, quantized.Precision, quantized.NativeCode = target("linux-amd64-v3", "v3"), "int8", "int8", true
	extra := files("labels/digits.txt", "0 1 2", "ops.so", "\x7fELF")
	extra[0].Kind, extra[1].Kind = artifact.FileAsset, artifact.FileCode
	quantized.Operators = []artifact.Operators{{Path: "ops.so", Digest: extra[1].Digest}}
	return []storage.Part{
		{Role: artifact.PartEngine, Model: "vision/digits", Format: "onnx", Engine: plain, Files: files("model.onnx", "engine fp32")},
		{Role: artifact.PartEngine, Model: "vision/digits", Format: "onnx", Engine: quantized, Files: append(files("model.onnx", "engine int8"), extra...)},
	}
}

func target(name, level string) artifact.Target {
	return artifact.Target{
		V: artifact.TargetVersion, Name: name, OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: level},
		Runtimes: map[string]artifact.Constraint{"onnxruntime": {Min: "1.30.0"}},
	}
}

// files makes part files of path, text, path, text, ...
func files(pathAndText ...string) []storage.PartFile {
	var out []storage.PartFile
	for i := 0; i < len(pathAndText); i += 2 {
		text := pathAndText[i+1]
		out = append(out, storage.PartFile{
			File: artifact.File{Path: pathAndText[i], Digest: digest.FromString(text), Size: int64(len(text))},
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(text))), nil },
		})
	}
	return out
}

// bundle is a sigstore bundle as far as this package looks into one.
func bundle(predicateType string) []byte {
	statement := fmt.Sprintf(`{"_type":%q,"subject":[],"predicateType":%q,"predicate":{}}`, evidence.StatementType, predicateType)
	return fmt.Appendf(nil, `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"sample"}},"dsseEnvelope":{"payload":%q,"payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"}]}}`,
		base64.StdEncoding.EncodeToString([]byte(statement)))
}

func reversed[T any](in []T) []T {
	var out []T
	for _, v := range in {
		out = append([]T{v}, out...)
	}
	return out
}

// stored reads the bytes of a digest.
func stored(t testing.TB, blobs storage.Blobs, d registry.Digest) []byte {
	t.Helper()
	blob, _, err := blobs.Open(t.Context(), d)
	if err != nil {
		t.Fatalf("open %s: %v", d, err)
	}
	defer blob.Close()
	data, err := io.ReadAll(blob)
	if err != nil {
		t.Fatalf("read %s: %v", d, err)
	}
	return data
}

// pretty indents JSON for comparison and messages.
func pretty(t testing.TB, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", " "); err != nil {
		t.Fatalf("not JSON: %v", err)
	}
	return out.String()
}

// wantCode fails unless err has the code and its message has every text.
func wantCode(t testing.TB, err error, code registry.Code, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want %s", code)
	}
	if got := registry.CodeOf(err); got != code {
		t.Fatalf("got code %s, want %s: %v", got, code, err)
	}
	for _, text := range texts {
		if !bytes.Contains([]byte(err.Error()), []byte(text)) {
			t.Errorf("message %q says nothing of %q", err, text)
		}
	}
}
