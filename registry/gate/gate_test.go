package gate_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

const repository = "staging/" + registrytest.Model

// pickle is what inspect refuses. The real inspection is tested where the program is put together.
const pickle = "cos\nsystem\n(S'true'\ntR."

// inspect refuses pickles by their beginning.
func inspect(f gate.File) error {
	head := make([]byte, 4)
	if _, err := f.Content.ReadAt(head, 0); err != nil {
		return err
	}
	if string(head) == pickle[:4] {
		return registry.Errorf(registry.CodeUnsafe, "%s: its bytes are a Python pickle", f.Path)
	}
	return nil
}

// model is the file of an engine.
func model(content string) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: "model.onnx", Digest: digest.FromString(content), Size: int64(len(content))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

// engine is a part with these files.
func engine(files ...registry.PartFile) registry.Part {
	e := registrytest.MakeEngine("v3", "fp32")
	d := digest.FromString("another part")
	e.Reference, e.Sources, e.Limits, e.Interface = d, d, d, d
	return registry.Part{Role: registry.PartEngine, Model: registrytest.Model, Format: "onnx", Engine: e, Files: files}
}

// manifest is that of a part, as its store writes it.
func manifest(t *testing.T, p registry.Part) (*mem.Blobs, registry.Digest, []byte) {
	t.Helper()
	blobs, refs := mem.NewBlobs(), mem.New()
	store := oci.New(func(context.Context, string) (oci.Repository, error) { return oci.Local(blobs, refs, repository), nil }, oci.Options{})
	ref, err := store.PutPart(t.Context(), repository, p)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := blobs.Open(t.Context(), ref.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	raw, err := io.ReadAll(b)
	if err != nil {
		t.Fatal(err)
	}
	return blobs, ref.Digest, raw
}

// A file name that leads out of its folder is refused before any file is read; what is not a part
// is none of the gate's business.
func TestManifests(t *testing.T) {
	t.Parallel()
	blobs, d, raw := manifest(t, engine(model("weights")))
	none := func(context.Context, registry.Digest) (registry.Blob, int64, error) {
		return nil, 0, registry.Errorf(registry.CodeNotFound, "no bytes")
	}
	for name, c := range map[string]struct {
		raw  []byte
		open gate.Open
		code registry.Code // empty: it passes
	}{
		"a part":               {raw, blobs.Open, ""},
		"missing bytes":        {raw, none, registry.CodeNotFound},
		"names that leave":     {bytes.ReplaceAll(raw, []byte("model.onnx"), []byte("../../x.so")), none, registry.CodeTrust},
		"an image":             {[]byte(`{"schemaVersion":2,"config":{},"layers":[]}`), none, ""},
		"no manifest":          {[]byte(`[1]`), none, ""},
		"a part of the future": {bytes.ReplaceAll(raw, []byte(`dev.mlpromote.format":"1"`), []byte(`dev.mlpromote.format":"9"`)), none, ""},
	} {
		err := gate.New(c.open, inspect).Manifest(t.Context(), d, c.raw)
		if c.code == "" && err != nil || c.code != "" && !registry.HasCode(err, c.code) {
			t.Errorf("%s: error %v, want code %q", name, err, c.code)
		}
	}
}

// What passed is not read again; what was refused is refused again.
func TestRemembers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		opened  int // for two pushes
	}{"passed": {"weights", 1}, "refused": {pickle, 2}} {
		blobs, d, raw := manifest(t, engine(model(c.content)))
		opened := 0
		g := gate.New(func(ctx context.Context, d registry.Digest) (registry.Blob, int64, error) {
			opened++
			return blobs.Open(ctx, d)
		}, inspect)
		first, second := g.Manifest(t.Context(), d, raw), g.Manifest(t.Context(), d, raw)
		if opened != c.opened || fmt.Sprint(first) != fmt.Sprint(second) {
			t.Errorf("%s: its file was opened %d times, then %v and %v; want %d times and the same", name, opened, first, second, c.opened)
		}
	}
}

// A caller that goes away stops the inspection.
func TestStops(t *testing.T) {
	t.Parallel()
	blobs, d, raw := manifest(t, engine(model("weights")))
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), registry.Errorf(registry.CodeUnavailable, "gone"))
	defer cancel()
	if err := gate.New(blobs.Open, inspect).Manifest(ctx, d, raw); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("error %v, want CodeUnavailable", err)
	}
}

// A gate that cannot look at files lets none through.
func TestWithoutInspection(t *testing.T) {
	t.Parallel()
	blobs, d, raw := manifest(t, engine(model("weights")))
	if err := gate.New(blobs.Open, nil).Manifest(t.Context(), d, raw); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("error %v, want CodeUnavailable", err)
	}
}
