package layout_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci/layout"
)

// put stores bytes in a writer, and describes them.
func put(t testing.TB, w *layout.Writer, mediaType string, data []byte) ocispec.Descriptor {
	t.Helper()
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	if err := w.Push(context.WithoutCancel(t.Context()), desc, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return desc
}

func encoded(t testing.TB, document any) []byte {
	t.Helper()
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// release fills a writer with an index of one manifest of one file, and a manifest about the index.
func release(t testing.TB) (*layout.Writer, registry.Digest) {
	t.Helper()
	w := layout.NewWriter()
	config := put(t, w, "application/vnd.oci.empty.v1+json", []byte("{}"))
	file := put(t, w, "application/octet-stream", bytes.Repeat([]byte("weights"), 100))
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{file}}
	m.SchemaVersion = 2
	part := put(t, w, ocispec.MediaTypeImageManifest, encoded(t, m))
	i := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{part}}
	i.SchemaVersion = 2
	index := put(t, w, ocispec.MediaTypeImageIndex, encoded(t, i))
	m.Subject, m.ArtifactType = &index, "application/vnd.test"
	put(t, w, ocispec.MediaTypeImageManifest, encoded(t, m))
	return w, index.Digest
}

func written(t testing.TB) []byte {
	t.Helper()
	w, d := release(t)
	var out bytes.Buffer
	if err := w.Write(t.Context(), &out, d, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(ctx context.Context, data []byte) (*layout.Layout, error) {
	return layout.Open(ctx, bytes.NewReader(data), int64(len(data)))
}

func TestOpen(t *testing.T) {
	t.Parallel()
	data := written(t)
	l, err := open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	_, want := release(t)
	if d, tag := l.Release(); d != want || tag != "1.0.0" || len(l.Manifests()) != 3 {
		t.Errorf("release %s, tag %s, %d manifests; want %s, 1.0.0, 3", d, tag, len(l.Manifests()), want)
	}
	if got := l.Referrers(want, "application/vnd.test"); len(got) != 1 {
		t.Errorf("%d referrers, want one", len(got))
	}
	names := []string{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if len(names) != 7 || names[0] != "oci-layout" || names[1] != "index.json" || !slices.IsSorted(names[2:]) {
		t.Errorf("files %q, want the layout, the index and five blobs in order", names)
	}
}

// entry is a file of an archive that somebody else writes.
type entry struct {
	tar.Header
	data string
}

// entries reads an archive, so that it can be written in another way.
func entries(t *testing.T, data []byte) []entry {
	t.Helper()
	var all []entry
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{*h, string(body)})
	}
}

func rewritten(t *testing.T, all []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range all {
		h := e.Header
		h.Size, h.Format = int64(len(e.data)), tar.FormatUnknown
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Each change of the archive, in which the content may stay the same, is refused, with what is wrong.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	data := written(t)
	with := func(edit func(all []entry) []entry) []byte { return rewritten(t, edit(entries(t, data))) }
	extra := func(body string) entry {
		return entry{tar.Header{Typeflag: tar.TypeReg, Mode: 0o444, Name: "blobs/sha256/" + digest.FromString(body).Encoded()}, body}
	}
	sorted := func(all []entry) []entry {
		slices.SortFunc(all[2:], func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
		return all
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":           {nil, "it ends at byte 0"},
		"an empty archive":  {make([]byte, 1024), "it has no oci-layout"},
		"two zero blocks":   {append(slices.Clone(data), make([]byte, 1024)...), "2048 bytes at its end"},
		"bytes behind it":   {append(slices.Clone(data), 'x'), "1025 bytes at its end"},
		"one block missing": {data[:len(data)-512], "it ends at byte"},
		"cut in a file":     {data[:len(data)-2048], "it ends"},
		"reordered":         {with(func(all []entry) []entry { all[2], all[3] = all[3], all[2]; return all }), "in order of names"},
		"index first":       {with(func(all []entry) []entry { all[0], all[1] = all[1], all[0]; return all }), "want oci-layout and then index.json"},
		"a file twice":      {with(func(all []entry) []entry { return slices.Insert(all, 3, all[2]) }), "each file once"},
		"an extra blob":     {with(func(all []entry) []entry { return sorted(append(all, extra("hidden"))) }), "no manifest names blobs/sha256/"},
		"a missing blob":    {with(func(all []entry) []entry { return slices.Delete(all, 2, 3) }), "missing"},
		"a symbolic link": {with(func(all []entry) []entry {
			all[2].Typeflag, all[2].Linkname, all[2].data = tar.TypeSymlink, "/etc/passwd", ""
			return all
		}), "not a plain file"},
		"a hard link": {with(func(all []entry) []entry {
			all[3].Typeflag, all[3].Linkname, all[3].data = tar.TypeLink, all[2].Name, ""
			return all
		}), "not a plain file"},
		"a folder": {with(func(all []entry) []entry {
			all[2].Typeflag, all[2].Name, all[2].data = tar.TypeDir, "blobs/", ""
			return all
		}), "trailing slash"},
		"a device":           {with(func(all []entry) []entry { all[2].Typeflag, all[2].data = tar.TypeChar, ""; return all }), "not a plain file"},
		"an absolute name":   {with(func(all []entry) []entry { all[2].Name = "/" + all[2].Name; return all }), "want blobs/ALGORITHM/HEX alone"},
		"a name that leaves": {with(func(all []entry) []entry { all[2].Name = "blobs/../../etc/passwd"; return all }), "want blobs/ALGORITHM/HEX alone"},
		"a name of its own": {with(func(all []entry) []entry {
			return append(all, entry{tar.Header{Typeflag: tar.TypeReg, Mode: 0o444, Name: "note"}, "x"})
		}), "want blobs/ALGORITHM/HEX alone"},
		"an owner":           {with(func(all []entry) []entry { all[2].Uname = "root"; return all }), "not a plain file"},
		"a mode":             {with(func(all []entry) []entry { all[2].Mode = 0o4755; return all }), "not a plain file"},
		"an extended header": {with(func(all []entry) []entry { all[2].PAXRecords = map[string]string{"COMMENT.x": "y"}; return all }), "not a plain file"},
		"a sparse file":      {with(func(all []entry) []entry { all[2].PAXRecords = map[string]string{"VENDOR.sparse": "1"}; return all }), "not a plain file"},
		"another layout":     {with(func(all []entry) []entry { all[0].data = `{"imageLayoutVersion":"2.0.0"}`; return all }), "oci-layout is not"},
		"no index":           {with(func(all []entry) []entry { all[1].data = `{}`; return all }), "index.json is not an index"},
		"a key in the index": {with(func(all []entry) []entry { all[1].data = strings.Replace(all[1].data, "{", `{"x":1,`, 1); return all }), "index.json is not an index"},
		"spaces in it":       {with(func(all []entry) []entry { all[1].data += "\n"; return all }), "is not the index of its content"},
		"another tag":        {with(func(all []entry) []entry { all[1].data = strings.Replace(all[1].data, "1.0.0", "../x", 1); return all }), `the tag "../x"`},
	} {
		_, err := open(t.Context(), c.data)
		if !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want CodeTrust that says %q", name, err, c.says)
		}
	}
	changed := with(func(all []entry) []entry {
		all[2].data = strings.Repeat("x", len(all[2].data))
		return all
	})
	if _, err := open(t.Context(), changed); !registry.HasCode(err, registry.CodeDigest) || !strings.Contains(err.Error(), entries(t, data)[2].Name) {
		t.Errorf("other bytes of a blob: error %v, want CodeDigest that names it", err)
	}
}

// A manifest that nothing in the release names, and that is about nothing in it, does not come along.
func TestOpenRefusesStowaways(t *testing.T) {
	t.Parallel()
	w, d := release(t)
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "application/vnd.stowaway",
		Config: put(t, w, "application/octet-stream", []byte("stowaway"))}
	m.SchemaVersion = 2
	put(t, w, ocispec.MediaTypeImageManifest, encoded(t, m))
	var out bytes.Buffer
	if err := w.Write(t.Context(), &out, d, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), out.Bytes()); !registry.HasCode(err, registry.CodeTrust) ||
		!strings.Contains(err.Error(), "neither belongs to the release") {
		t.Errorf("error %v, want CodeTrust", err)
	}
}

// What cannot be read as it was described is not written as if it were.
func TestWriteComparesSizes(t *testing.T) {
	t.Parallel()
	w, d := release(t)
	short := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromString("other"), Size: 100}
	if err := w.Send(t.Context(), short, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("short")), nil }); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), io.Discard, d, "1.0.0"); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("error %v, want CodeDigest", err)
	}
	if err := w.Push(t.Context(), short, strings.NewReader("other bytes")); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("push of other bytes: error %v, want CodeDigest", err)
	}
}

// zeros is a reader of so many zeros.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), int64(*z))
	clear(p[:n])
	*z -= zeros(n)
	return int(n), nil
}

// A large blob goes through without being held in memory.
func TestWriteStreams(t *testing.T) {
	t.Parallel()
	const size = 512 << 20
	w, d := release(t)
	large := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromString("large"), Size: size}
	if err := w.Send(t.Context(), large, func() (io.ReadCloser, error) { z := zeros(size); return io.NopCloser(&z), nil }); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := w.Write(t.Context(), io.Discard, d, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size/4 {
		t.Errorf("writing %d bytes allocated %d, want far less", int64(size), took)
	}
}

// FuzzOpen expects that what is opened is exactly what a writer writes of the same content.
func FuzzOpen(f *testing.F) {
	data := written(f)
	f.Add(data)
	f.Add(data[:len(data)-1024])
	f.Add(make([]byte, 1024))
	f.Add([]byte(fmt.Sprintf("%0512d", 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := open(t.Context(), data)
		if err != nil {
			if !registry.HasCode(err, registry.CodeTrust) && !registry.HasCode(err, registry.CodeDigest) {
				t.Errorf("error %v, want CodeTrust or CodeDigest", err)
			}
			return
		}
		d, tag := l.Release()
		w := layout.NewWriter()
		for r := tar.NewReader(bytes.NewReader(data)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if encoded, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok {
				again(t, l, w, digest.NewDigestFromEncoded(digest.SHA256, encoded), body)
			}
		}
		var out bytes.Buffer
		if err := w.Write(t.Context(), &out, d, tag); err != nil || !bytes.Equal(out.Bytes(), data) {
			t.Errorf("what was opened is not what is written of it (error %v)", err)
		}
	})
}

// again stores content of a layout in a writer.
func again(t *testing.T, l *layout.Layout, w *layout.Writer, d registry.Digest, body []byte) {
	t.Helper()
	desc, err := l.Resolve(t.Context(), string(d))
	if err != nil {
		desc = ocispec.Descriptor{MediaType: "application/octet-stream", Digest: d, Size: int64(len(body))}
	}
	if err := w.Push(t.Context(), desc, bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
}
