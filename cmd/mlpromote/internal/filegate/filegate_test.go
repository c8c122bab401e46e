package filegate_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/filegate"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	repository = "staging/" + registrytest.Model
	pickle     = "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."
	elf        = "\x7fELF\x02\x01\x01\x00"
)

// behindGate opens the repositories of a registry behind a gate.
func behindGate(t *testing.T) (*remote.Repositories, *mem.DB) {
	t.Helper()
	blobs, db := mem.NewBlobs(), mem.New()
	handler, err := distribution.New(distribution.Config{
		Blobs: blobs, Refs: db, Deleter: db, Uploads: mem.NewUploads(blobs), Inspect: gate.New(blobs.Open, filegate.Inspect).In(db),
		Authorize: func(context.Context, distribution.Access) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	environments := registrytest.Chain()
	environments.List[0].Registry = strings.TrimPrefix(server.URL, "http://")
	return &remote.Repositories{Transfer: transfer.Options{}, Keychain: authn.NewMultiKeychain(), Environments: environments}, db
}

// pusher is a client of a registry behind a gate.
func pusher(t *testing.T) (*oci.Store, *mem.DB) {
	t.Helper()
	c, db := behindGate(t)
	return oci.New(c.Open, oci.Options{}), db
}

func file(path, content string, kind artifact.FileKind) storage.PartFile {
	return storage.PartFile{
		File: artifact.File{Path: path, Digest: digest.FromString(content), Size: int64(len(content)), Kind: kind},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

// engine is a part with these files.
func engine(native bool, files ...storage.PartFile) storage.Part {
	e := registrytest.MakeEngine("v3", "fp32")
	e.NativeCode = native
	d := digest.FromString("another part")
	e.Reference, e.Sources, e.Limits, e.Interface = d, d, d, d
	return storage.Part{Role: artifact.PartEngine, Model: registrytest.Model, Format: "onnx", Engine: e, Files: files}
}

func zipped(t *testing.T, name, content string) string {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	f, err := w.Create(name)
	if err == nil {
		_, err = io.WriteString(f, content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// What a token may push to the first environment passes the gate, or is not stored.
func TestInspectPushes(t *testing.T) {
	t.Parallel()
	model := file("model.onnx", "weights", artifact.FileEngine)
	cases := artifact.CaseSet{Count: 1, Origin: artifact.OriginRecorded, Shards: []artifact.Shard{{File: "c.safetensors", Count: 1}}}
	for name, c := range map[string]struct {
		part storage.Part
		says string // empty: it is stored
	}{
		"an engine":                        {engine(false, model, file("labels.txt", "cat\ndog\n", artifact.FileAsset)), ""},
		"a pickle as asset":                {engine(false, model, file("labels.bin", pickle, artifact.FileAsset)), "labels.bin: its bytes are a Python pickle"},
		"a pickle as engine":               {engine(false, file("model.onnx", pickle, artifact.FileEngine)), "model.onnx: its bytes are a Python pickle"},
		"a pickle labelled as native code": {engine(true, model, file("labels.bin", pickle, artifact.FileAsset)), "labels.bin: its bytes are a Python pickle"},
		"a pickle as library":              {engine(true, model, file("ops.so", pickle, artifact.FileCode)), "ops.so: its bytes are a Python pickle"},
		"a torch file":                     {engine(false, model, file("w.pt", zipped(t, "archive/data.pkl", pickle), artifact.FileEngine)), `entry "archive/data.pkl"`},
		"native code":                      {engine(false, file("model.so", elf, artifact.FileEngine)), "labelled native-code"},
		"labelled native code":             {engine(true, file("model.so", elf, artifact.FileEngine)), ""},
		"an operator library":              {engine(true, model, file("ops.so", elf, artifact.FileCode)), ""},
		"a reference that is a pickle": {storage.Part{Role: artifact.PartReference, Model: registrytest.Model, Format: "onnx",
			Engine: artifact.Engine{Variant: "reference", Precision: "fp32"}, Files: []storage.PartFile{file("model.onnx", pickle, "")}}, "a Python pickle"},
		"cases with an absurd header": {storage.Part{Role: artifact.PartCases, Set: &cases,
			Files: []storage.PartFile{file("c.safetensors", "\x00\x00\x00\x00\x00\x01\x00\x00{\"", "")}}, "header says that it has"},
		"tuning records that are a pickle": {storage.Part{Role: artifact.PartTuning, Files: []storage.PartFile{file("a/b.txt", pickle, "")}}, "a Python pickle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, db := pusher(t)
			ref, err := store.PutPart(t.Context(), repository, c.part)
			if c.says == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if _, err := db.Manifest(t.Context(), repository, ref.Digest); err != nil {
					t.Errorf("its manifest is not stored: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			for m := range db.AllManifests(t.Context()) {
				t.Errorf("%s of %s is stored", m.Manifest.Digest, m.Repository)
			}
		})
	}
}
