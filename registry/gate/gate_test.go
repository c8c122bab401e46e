package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
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
func model(content string) storage.PartFile {
	return storage.PartFile{
		File: artifact.File{Path: "model.onnx", Digest: digest.FromString(content), Size: int64(len(content))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

// engine is a part with these files.
func engine(files ...storage.PartFile) storage.Part {
	e := registrytest.MakeEngine("v3", "fp32")
	d := digest.FromString("another part")
	e.Reference, e.Sources, e.Limits, e.Interface = d, d, d, d
	return storage.Part{Role: artifact.PartEngine, Model: registrytest.Model, Format: "onnx", Engine: e, Files: files}
}

// manifest is that of a part, as its store writes it.
func manifest(t *testing.T, p storage.Part) (*mem.Blobs, registry.Digest, []byte) {
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
	none := func(context.Context, registry.Digest) (storage.Blob, int64, error) {
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
		g := gate.New(func(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
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

// stored is content in a store that counts its requests. It ends early if it has fewer bytes than it says.
type stored struct {
	*bytes.Reader
	requests int
	err      error // of each request
}

func (s *stored) Close() error { return nil }

func (s *stored) ReadAt(p []byte, off int64) (int, error) {
	s.requests++
	if s.err != nil {
		return 0, s.err
	}
	return s.Reader.ReadAt(p, off)
}

// inspected calls look with the file of a part whose content a store has, and returns what the gate says.
func inspected(t *testing.T, s *stored, size int64, look gate.Inspect) error {
	t.Helper()
	_, d, raw := manifest(t, engine(model("weights")))
	return gate.New(func(context.Context, registry.Digest) (storage.Blob, int64, error) { return s, size, nil }, look).Manifest(t.Context(), d, raw)
}

// An inspection reads the stored bytes from any place, with few requests.
func TestInspectionReadsTheStoredBytes(t *testing.T) {
	t.Parallel()
	const page = 256 << 10
	content := make([]byte, 2*page+100)
	for i := range content {
		content[i] = byte(i*7 + i>>8)
	}
	size := int64(len(content))
	for name, c := range map[string]struct {
		reads    [][2]int64 // place and number of bytes, one after the other
		requests int
	}{
		"the beginning":              {[][2]int64{{0, 10}}, 1},
		"all, a few bytes at a time": {[][2]int64{{0, page / 2}, {page / 2, page / 2}, {page, page}, {2 * page, 100}}, 3},
		"over the end of a page":     {[][2]int64{{page - 10, 20}}, 1},
		"all at once":                {[][2]int64{{0, size}}, 3},
		"the end, and then before":   {[][2]int64{{size - 10, 10}, {size - 20, 10}, {0, 10}}, 3},
		"the same twice":             {[][2]int64{{100, 50}, {100, 50}, {120, 10}}, 1},
		"over the end":               {[][2]int64{{size - 10, 20}}, 1},
		"at the end":                 {[][2]int64{{size, 1}}, 0},
		"nothing":                    {[][2]int64{{0, 0}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &stored{Reader: bytes.NewReader(content)}
			err := inspected(t, s, size, func(f gate.File) error {
				for _, read := range c.reads {
					got := make([]byte, read[1])
					n, err := f.Content.ReadAt(got, read[0])
					want := content[read[0]:min(size, read[0]+read[1])]
					if !bytes.Equal(got[:n], want) || (err == nil) != (n == len(got)) || err != nil && !errors.Is(err, io.EOF) {
						t.Errorf("%d bytes at %d: got %d and error %v, want %d", read[1], read[0], n, err, len(want))
					}
				}
				return nil
			})
			if err != nil || s.requests != c.requests {
				t.Errorf("error %v after %d requests, want none after %d", err, s.requests, c.requests)
			}
		})
	}
}

// Content that cannot be read as it was stored does not pass for a short file.
func TestInspectionOfContentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	lost := errors.New("the store does not answer")
	for name, c := range map[string]struct {
		content *stored
		want    error
	}{
		"a store that does not answer": {&stored{Reader: bytes.NewReader([]byte("weights")), err: lost}, lost},
		"content that ends early":      {&stored{Reader: bytes.NewReader([]byte("wei"))}, io.ErrUnexpectedEOF},
	} {
		if err := inspected(t, c.content, 7, inspect); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

// An inspection is told whether a part says that it is native code, and which files are beside a file.
func TestInspectionKnowsThePart(t *testing.T) {
	t.Parallel()
	library := model("machine code")
	library.Path, library.Kind = "operators/ops.so", artifact.FileCode
	for name, native := range map[string]bool{"native code": true, "a graph": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part := engine(model("weights"))
			if part.Engine.NativeCode = native; native {
				part.Files = append(part.Files, library)
			}
			blobs, d, raw := manifest(t, part)
			var seen []string
			err := gate.New(blobs.Open, func(f gate.File) error {
				seen = append(seen, f.Path)
				if f.NativeCode != native {
					t.Errorf("%s: native code is %t, want %t", f.Path, f.NativeCode, native)
				}
				size, ok := f.Beside("./operators/../operators/ops.so")
				if _, none := f.Beside("other.onnx"); ok != native || ok && size != library.Size || none {
					t.Errorf("%s: beside it ops.so is %t with %d bytes, other.onnx is %t", f.Path, ok, size, none)
				}
				return nil
			}).Manifest(t.Context(), d, raw)
			if err != nil || len(seen) != len(part.Files) {
				t.Errorf("error %v, inspected are %q, want %d files", err, seen, len(part.Files))
			}
		})
	}
}

// by is a context of a caller.
func by(ctx context.Context, name string) context.Context {
	return storage.WithPrincipal(ctx, storage.Principal{Name: name})
}

// Files with the same bytes are inspected once, in a part and in the next part with them, unless other files
// matter for the verdict.
func TestSameBytesAreInspectedOnce(t *testing.T) {
	t.Parallel()
	named := func(content string, paths ...string) (files []storage.PartFile) {
		for _, path := range paths {
			f := model(content)
			f.Path = path
			files = append(files, f)
		}
		return files
	}
	for name, c := range map[string]struct {
		beside bool
		want   string
	}{
		"alone":        {false, "a.json"},
		"with another": {true, "a.json b.json c/a.json d.json"},
	} {
		blobs, d, raw := manifest(t, engine(named("weights", "a.json", "b.json", "c/a.json")...))
		later, next, nextRaw := manifest(t, engine(named("weights", "d.json")...))
		var seen []string
		g := gate.New(func(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
			b, n, err := blobs.Open(ctx, d)
			if err != nil {
				return later.Open(ctx, d)
			}
			return b, n, err
		}, func(f gate.File) error {
			seen = append(seen, f.Path)
			if c.beside {
				f.Beside("x")
			}
			return nil
		})
		if err := errors.Join(g.Manifest(t.Context(), d, raw), g.Manifest(t.Context(), next, nextRaw)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(seen, " "); got != c.want {
			t.Errorf("%s: inspected %q, want %q", name, got, c.want)
		}
	}
}

// Bytes that passed as native code are inspected again where a part does not say that it has any.
func TestNativeCodePassesOnlyWhereItIsSaid(t *testing.T) {
	t.Parallel()
	said, silent := engine(model("machine code")), engine(model("machine code"))
	said.Engine.NativeCode = true
	blobs, d, raw := manifest(t, said)
	_, other, otherRaw := manifest(t, silent)
	g := gate.New(blobs.Open, func(f gate.File) error {
		if !f.NativeCode {
			return registry.Errorf(registry.CodeUnsafe, "%s: native code", f.Path)
		}
		return nil
	})
	if err := g.Manifest(t.Context(), d, raw); err != nil {
		t.Fatal(err)
	}
	if err := g.Manifest(t.Context(), other, otherRaw); !registry.HasCode(err, registry.CodeUnsafe) {
		t.Errorf("error %v, want CodeUnsafe", err)
	}
}

// empty is content of any size that takes no time to read.
type empty struct{ stored }

func (empty) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

// What an inspection reads of one part is limited, over all its files.
func TestBytesPerPart(t *testing.T) {
	t.Parallel()
	const size = 1<<31 + 1
	first, second := model("first"), model("second")
	second.Path = "second.onnx"
	_, d, raw := manifest(t, engine(first, second))
	err := gate.New(func(context.Context, registry.Digest) (storage.Blob, int64, error) { return &empty{}, size, nil }, func(f gate.File) error {
		p := make([]byte, 1)
		for at := int64(0); at < f.Size; at += 256 << 10 {
			if _, err := f.Content.ReadAt(p, at); err != nil {
				return err
			}
		}
		return nil
	}).Manifest(t.Context(), d, raw)
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.HasPrefix(fmt.Sprint(err), "second.onnx") {
		t.Errorf("error %v, want CodeInvalid about the second file", err)
	}
}

// A caller that goes away does not wait for its turn, nor for the rest of a file.
func TestCallersThatGoAway(t *testing.T) {
	t.Parallel()
	blobs, d, raw := manifest(t, engine(model("weights")))
	gone := registry.Errorf(registry.CodeUnavailable, "gone")
	begun, end := make(chan struct{}), make(chan struct{})
	g := gate.New(blobs.Open, func(gate.File) error {
		begun <- struct{}{}
		<-end
		return nil
	})
	done := make(chan error)
	const atOnce = 2 // callers whose parts are inspected at the same time
	for n := range atOnce {
		go func() { done <- g.Manifest(by(t.Context(), fmt.Sprint(n)), d, raw) }()
		<-begun
	}
	ctx, leave := context.WithCancelCause(t.Context())
	leave(gone)
	if err := g.Manifest(ctx, d, raw); !errors.Is(err, gone) {
		t.Errorf("waiting for its turn: error %v, want %v", err, gone)
	}
	close(end)
	for range atOnce {
		if err := <-done; err != nil {
			t.Errorf("those before it: %v", err)
		}
	}
	ctx, leave = context.WithCancelCause(t.Context())
	err := gate.New(blobs.Open, func(f gate.File) error {
		leave(gone)
		_, err := f.Content.ReadAt(make([]byte, 1), 0)
		return err
	}).Manifest(ctx, d, raw)
	if !errors.Is(err, gone) {
		t.Errorf("during an inspection: error %v, want %v", err, gone)
	}
}
