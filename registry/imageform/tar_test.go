package imageform_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
)

// content is the files of an engine, by path.
type content map[string]string

func (c content) files() []artifact.File {
	var all []artifact.File
	for name, data := range c {
		all = append(all, artifact.File{Path: name, Digest: digest.FromString(data), Size: int64(len(data))})
	}
	return all
}

func (c content) open(f artifact.File) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(c[f.Path])), nil
}

// archive returns the bytes of the layer, which must have the size that the layer says.
func (c content) archive(t testing.TB) []byte {
	t.Helper()
	layer, err := imageform.NewLayer(c.files())
	if err != nil {
		t.Fatal(err)
	}
	r := layer.Open(c.open)
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(data)) != layer.Size() {
		t.Errorf("the layer has %d bytes, and says that it has %d", len(data), layer.Size())
	}
	return data
}

// folders lists the folders of the files, with a slash at the end.
func (c content) folders() []string {
	all := []string{"models/"}
	for name := range c {
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			all = append(all, "models/"+dir+"/")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// samples are engines of one file, of folders, and of names and sizes at the limits of a header.
func samples() map[string]content {
	long := strings.Repeat("d/", 30) + strings.Repeat("n", 33) // with models/ 100 bytes
	return map[string]content{
		"no file":          {},
		"an empty file":    {"model.onnx": ""},
		"one file":         {"model.onnx": "weights"},
		"whole blocks":     {"model.onnx": strings.Repeat("x", 1024)},
		"one byte more":    {"model.onnx": strings.Repeat("x", 513)},
		"folders":          {"saved_model.pb": "graph", "variables/variables.index": "i", "variables/variables.data-00000-of-00001": "data", "assets/a/vocab.txt": "v", "variables.txt": "t"},
		"a name of 100":    {long: "x"},
		"a name of 101":    {long + "n": "x"},
		"a name of 512":    {strings.Repeat("d/", 200) + strings.Repeat("n", 112): "x"},
		"not ASCII":        {"modèle.onnx": "x", "ordner-ä/b": "y"},
		"spaces and signs": {"a b.txt": "x", "~x": "y", "-rf": "z", "#": "1"},
	}
}

// The bytes are those of the standard library's writer for every name and size that fits into a header.
func TestLayerIsThatOfArchiveTar(t *testing.T) {
	t.Parallel()
	for name, c := range samples() {
		if strings.Contains(name, "ASCII") || strings.Contains(name, "101") || strings.Contains(name, "512") {
			continue // what a pax header is called is for each writer to choose
		}
		var want bytes.Buffer
		w := tar.NewWriter(&want)
		names := c.folders()
		for file := range c {
			names = append(names, "models/"+file)
		}
		slices.Sort(names)
		for _, n := range names {
			h := &tar.Header{Format: tar.FormatUSTAR, Name: n, Typeflag: tar.TypeDir, Mode: 0o755}
			data, isFile := c[strings.TrimPrefix(n, "models/")]
			if isFile {
				h.Typeflag, h.Mode, h.Size = tar.TypeReg, 0o644, int64(len(data))
			}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := c.archive(t); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: the layer differs from that of archive/tar", name)
		}
	}
}

// checkTar reads an archive with the standard library, and compares all that it says.
func checkTar(t testing.TB, archive []byte, c content) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	var last string
	left := len(c) + len(c.folders())
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		left--
		if h.Name <= last {
			t.Errorf("%q comes after %q", h.Name, last)
		}
		last = h.Name
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.ModTime.Unix() != 0 || h.Linkname != "" {
			t.Errorf("%q has an owner or a time: %+v", h.Name, h)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, "/") {
			if h.Typeflag != tar.TypeDir || h.Mode != 0o755 || len(data) > 0 {
				t.Errorf("folder %q: %+v", h.Name, h)
			}
			continue
		}
		want, ok := c[strings.TrimPrefix(h.Name, "models/")]
		if !ok || h.Typeflag != tar.TypeReg || h.Mode != 0o644 || string(data) != want {
			t.Errorf("file %q: %+v with %d bytes, want %d", h.Name, h, len(data), len(want))
		}
	}
	if left != 0 {
		t.Errorf("%d entries are missing", left)
	}
	if len(archive)%512 != 0 || !bytes.HasSuffix(archive, make([]byte, 1024)) {
		t.Error("the archive does not end with two blocks of zeros")
	}
}

func TestLayer(t *testing.T) {
	t.Parallel()
	for name, c := range samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkTar(t, c.archive(t), c)
		})
	}
}

// The order of files, and how many bytes are read at once, change nothing.
func TestLayerIsDeterministic(t *testing.T) {
	t.Parallel()
	c := samples()["folders"]
	want := c.archive(t)
	files := c.files()
	slices.SortFunc(files, func(a, b artifact.File) int { return -cmp.Compare(a.Path, b.Path) })
	layer, err := imageform.NewLayer(files)
	if err != nil {
		t.Fatal(err)
	}
	for name, way := range map[string]func(io.Reader) io.Reader{
		"byte by byte": iotest.OneByteReader, "with the end beside data": iotest.DataErrReader, "in halves": iotest.HalfReader,
	} {
		open := func(f artifact.File) (io.ReadCloser, error) {
			return io.NopCloser(way(strings.NewReader(c[f.Path]))), nil
		}
		got, err := io.ReadAll(iotest.OneByteReader(layer.Open(open)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes, error %v", name, err)
		}
	}
	if err := iotest.TestReader(layer.Open(c.open), want); err != nil {
		t.Error(err)
	}
}

// zeros reads zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// head keeps the first bytes that are written, and counts all.
type head struct {
	bytes.Buffer
	all int64
}

func (h *head) Write(p []byte) (int, error) {
	h.all += int64(len(p))
	h.Buffer.Write(p[:min(len(p), max(0, 4096-h.Len()))])
	return len(p), nil
}

// A file of 8 GiB has its size in a pax header, and one byte less in the header itself.
func TestLayerOfLargeFiles(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1<<33 - 1, 1 << 33, 1 << 45} {
		layer, err := imageform.NewLayer([]artifact.File{{Path: "model.onnx", Size: size}})
		if err != nil {
			t.Fatal(err)
		}
		open := func(f artifact.File) (io.ReadCloser, error) {
			return io.NopCloser(io.LimitReader(zeros{}, f.Size)), nil
		}
		var got head
		if _, err := io.CopyN(&got, layer.Open(open), 4096); err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(&got)
		if h, err := r.Next(); err != nil || h.Name != "models/" {
			t.Fatalf("%+v, error %v", h, err)
		}
		h, err := r.Next()
		if err != nil || h.Size != size || h.Name != "models/model.onnx" || (len(h.PAXRecords) > 0) != (size >= 1<<33) {
			t.Errorf("%d bytes: %+v, error %v", size, h, err)
		}
		if want := 2*512 + size + (512-size%512)%512 + 1024; layer.Size() != want && layer.Size() != want+1024 {
			t.Errorf("%d bytes: the layer has %d", size, layer.Size())
		}
	}
}

// TestLayerReadsAllOfALargeFile reads a layer of more than 8 GiB to its end, which takes seconds.
func TestLayerReadsAllOfALargeFile(t *testing.T) {
	t.Parallel()
	if os.Getenv("MLPROMOTE_LARGE") == "" {
		t.Skip("MLPROMOTE_LARGE is not set")
	}
	const size = 1<<33 + 1
	layer, err := imageform.NewLayer([]artifact.File{{Path: "model.onnx", Size: size}})
	if err != nil {
		t.Fatal(err)
	}
	open := func(f artifact.File) (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(zeros{}, f.Size)), nil
	}
	if n, err := io.Copy(io.Discard, layer.Open(open)); err != nil || n != layer.Size() {
		t.Errorf("%d bytes, error %v, want %d", n, err, layer.Size())
	}
}

func TestNewLayerRefuses(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]artifact.File{
		"outside the folder":         {{Path: "../model.onnx"}},
		"absolute":                   {{Path: "/model.onnx"}},
		"empty":                      {{Path: ""}},
		"the folder itself":          {{Path: "."}},
		"a zero byte":                {{Path: "a\x00b"}},
		"not UTF-8":                  {{Path: "a\xff"}},
		"twice":                      {{Path: "a"}, {Path: "a"}},
		"a file and a folder":        {{Path: "a"}, {Path: "a/b"}},
		"a negative size":            {{Path: "a", Size: -1}},
		"a size beyond all":          {{Path: "a", Size: 1<<50 + 1}},
		"a deletion of other layers": {{Path: "a/.wh.model.onnx"}},
		"a deletion of a folder":     {{Path: ".wh..wh..opq"}},
		"a folder that is one":       {{Path: ".wh.a/b"}},
	} {
		if _, err := imageform.NewLayer(files); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// failing fails after some bytes, and counts what is closed.
type failing struct {
	io.Reader
	closed *int
}

func (f failing) Close() error { *f.closed++; return nil }

func TestLayerReportsErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		open func(closed *int) (io.ReadCloser, error)
		want func(error) bool
	}{
		"cannot be opened": {func(closed *int) (io.ReadCloser, error) { *closed++; return nil, broken }, func(err error) bool { return errors.Is(err, broken) }},
		"breaks off": {func(closed *int) (io.ReadCloser, error) {
			return failing{io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), closed}, nil
		}, func(err error) bool { return errors.Is(err, broken) }},
		"is shorter": {func(closed *int) (io.ReadCloser, error) { return failing{strings.NewReader("abc"), closed}, nil }, func(err error) bool { return registry.HasCode(err, registry.CodeDigest) }},
		"is longer":  {func(closed *int) (io.ReadCloser, error) { return failing{strings.NewReader("abcde"), closed}, nil }, func(err error) bool { return registry.HasCode(err, registry.CodeDigest) }},
	} {
		layer, err := imageform.NewLayer([]artifact.File{{Path: "model.onnx", Size: 4}})
		if err != nil {
			t.Fatal(err)
		}
		closed := 0
		r := layer.Open(func(artifact.File) (io.ReadCloser, error) { return c.open(&closed) })
		_, err = io.ReadAll(r)
		if !c.want(err) {
			t.Errorf("%s: error %v", name, err)
		}
		if _, again := r.Read(make([]byte, 1)); !errors.Is(again, err) {
			t.Errorf("%s: a second read returns %v", name, again)
		}
		if err := r.Close(); err != nil || closed != 1 {
			t.Errorf("%s: the file was closed %d times, error %v", name, closed, err)
		}
	}
}

// listing prints all that Python's tarfile reads in an archive.
const listing = `
import hashlib, json, sys, tarfile
out = []
with tarfile.open(sys.argv[1]) as t:
    for m in t:
        data = t.extractfile(m).read() if m.isfile() else b""
        out.append([m.name, m.mode, m.uid, m.gid, m.uname, m.gname, int(m.mtime), m.size, m.isdir(), m.isfile(), hashlib.sha256(data).hexdigest()])
print(json.dumps(out))
`

// Python's tarfile reads the same names, modes and bytes.
func TestLayerInPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	for name, c := range samples() {
		path := filepath.Join(t.TempDir(), "layer.tar")
		if err := os.WriteFile(path, c.archive(t), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), python, "-I", "-c", listing, path).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got [][]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, dir := range c.folders() {
			want = append(want, fmt.Sprint([]any{strings.TrimSuffix(dir, "/"), 0o755, 0, 0, "", "", 0, 0, true, false, digest.FromString("").Encoded()}))
		}
		for file, data := range c {
			want = append(want, fmt.Sprint([]any{"models/" + file, 0o644, 0, 0, "", "", 0, len(data), false, true, digest.FromString(data).Encoded()}))
		}
		var read []string
		for _, row := range got {
			read = append(read, fmt.Sprint(row))
		}
		slices.Sort(want)
		slices.Sort(read)
		if !slices.Equal(read, want) {
			t.Errorf("%s: Python reads\n%s\nwant\n%s", name, strings.Join(read, "\n"), strings.Join(want, "\n"))
		}
	}
}

// FuzzLayer makes layers of any two names and sizes: each is refused, or read back as it was.
func FuzzLayer(f *testing.F) {
	for _, c := range samples() {
		names := append(slices.Sorted(func(yield func(string) bool) {
			for n := range c {
				if !yield(n) {
					return
				}
			}
		}), "a", "b")
		f.Add(names[0], names[1], c[names[0]])
	}
	f.Fuzz(func(t *testing.T, first, second, data string) {
		c := content{first: data, second: "second"}
		if _, err := imageform.NewLayer(c.files()); err != nil {
			return
		}
		checkTar(t, c.archive(t), c)
	})
}

// The pieces of a layer are its bytes, and literal ones have a limit.
func TestPieces(t *testing.T) {
	t.Parallel()
	for name, c := range samples() {
		layer, err := imageform.NewLayer(c.files())
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := layer.Pieces(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		literal := 0
		for i, p := range pieces {
			if len(p.Literal) == 0 {
				got = append(got, c[p.File.Path]...)
				continue
			}
			if got = append(got, p.Literal...); i > 0 && len(pieces[i-1].Literal) > 0 {
				t.Errorf("%s: piece %d follows another literal one", name, i)
			}
			literal += len(p.Literal)
		}
		if !bytes.Equal(got, c.archive(t)) {
			t.Errorf("%s: the pieces have other bytes than the layer", name)
		}
		if _, err := layer.Pieces(literal); err != nil {
			t.Errorf("%s: %d literal bytes: %v", name, literal, err)
		}
		if _, err := layer.Pieces(literal - 1); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: more literal bytes than allowed: error %v, want %s", name, err, registry.CodeInvalid)
		}
	}
}
