package parts_test

import (
	"bytes"
	"context"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

func tensorOf[T tensor.Scalar](t *testing.T, shape []int64, values ...T) tensor.Tensor {
	t.Helper()
	of, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// sources are those with two shards of cases, of two and of one.
type sources struct {
	storage.PartStore
	set   artifact.CaseSet
	files map[registry.Digest][]byte
	parts []artifact.File
}

func (s *sources) add(t *testing.T, name string, first, count int, of map[string]tensor.Tensor) {
	t.Helper()
	var data bytes.Buffer
	if err := tensorfile.Write(&data, of, nil); err != nil {
		t.Fatal(err)
	}
	d := digest.FromBytes(data.Bytes())
	s.files[d] = data.Bytes()
	s.parts = append(s.parts, artifact.File{Path: name, Digest: d, Size: int64(data.Len())})
	s.set.Shards = append(s.set.Shards, artifact.Shard{File: name, First: first, Count: count})
}

func (s *sources) Sources(context.Context, string, registry.Digest) (storage.Sources, error) {
	return storage.Sources{Parts: map[artifact.PartKind]storage.PartRef{artifact.PartCases: {Digest: "sha256:cases"}}}, nil
}

func (s *sources) Fetch(context.Context, string, registry.Digest, string) (storage.FetchedPart, error) {
	return storage.FetchedPart{Files: s.parts, Set: &s.set}, nil
}

type blob struct{ *bytes.Reader }

func (blob) Close() error { return nil }

func (s *sources) open(_ context.Context, d registry.Digest) (storage.Blob, int64, error) {
	data, ok := s.files[d]
	if !ok {
		return nil, 0, registry.Errorf(registry.CodeNotFound, "no blob %s", d)
	}
	return blob{bytes.NewReader(data)}, int64(len(data)), nil
}

// One case is read from the shard that has it, without its label, and the labels of all shards in their order.
func TestReadCases(t *testing.T) {
	t.Parallel()
	s := &sources{files: map[registry.Digest][]byte{}, set: artifact.CaseSet{Count: 3, Labels: "label"}}
	s.add(t, "a.safetensors", 0, 2, map[string]tensor.Tensor{"x": tensorOf(t, []int64{2, 2}, float32(1), 2, 3, 4), "label": tensorOf(t, []int64{2}, int64(7), 8)})
	s.add(t, "b.safetensors", 2, 1, map[string]tensor.Tensor{"x": tensorOf(t, []int64{1, 2}, float32(5), 6), "label": tensorOf(t, []int64{1}, int64(9))})
	c := parts.Cases{Parts: s, Open: s.open}
	for n, want := range [][]float64{{1, 2}, {3, 4}, {5, 6}} {
		got, err := c.Inputs(t.Context(), "staging/m/sources", "sha256:s", n)
		if err != nil || len(got) != 1 || got[0].Name != "x" || !slices.Equal(got[0].Value.Float64s(), want) {
			t.Errorf("case %d: got %v, error %v, want x with %v", n, got, err, want)
		}
	}
	if _, err := c.Inputs(t.Context(), "staging/m/sources", "sha256:s", 3); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("case 3 of 3: error %v, want that there is none", err)
	}
	labels, err := c.Labels(t.Context(), "staging/m/sources", "sha256:s")
	if err != nil || !slices.Equal(labels, []int64{7, 8, 9}) {
		t.Errorf("got labels %v, error %v, want 7, 8, 9", labels, err)
	}
	s.set.Labels = "other"
	if _, err := c.Labels(t.Context(), "staging/m/sources", "sha256:s"); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("labels that no file has: error %v, want it refused", err)
	}
	s.files[s.parts[0].Digest] = []byte("junk")
	if _, err := c.Inputs(t.Context(), "staging/m/sources", "sha256:s", 0); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a file that is no safetensors: error %v, want it refused", err)
	}
	s.set.Shards[0].File = "../a"
	if _, err := c.Inputs(t.Context(), "staging/m/sources", "sha256:s", 0); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a shard that is no file of the part: error %v, want it refused", err)
	}
}

func TestPicture(t *testing.T) {
	t.Parallel()
	many := make([]float32, 3*100*200)
	many[0] = 1
	for name, c := range map[string]struct {
		value         tensor.Tensor
		width, height int // 0: it is no image
	}{
		"channels first":    {tensorOf(t, []int64{1, 1, 4, 5}, make([]float32, 20)...), 5, 4},
		"channels last":     {tensorOf(t, []int64{1, 4, 5, 3}, make([]uint8, 60)...), 5, 4},
		"sampled down":      {tensorOf(t, []int64{1, 3, 100, 200}, many...), 50, 25},
		"features":          {tensorOf(t, []int64{1, 20}, make([]float32, 20)...), 0, 0},
		"too few pixels":    {tensorOf(t, []int64{1, 1, 1, 20}, make([]float32, 20)...), 0, 0},
		"too many channels": {tensorOf(t, []int64{1, 7, 8, 9}, make([]float32, 504)...), 0, 0},
	} {
		file, ok := parts.Picture(c.value)
		if ok != (c.width > 0) {
			t.Errorf("%s: image %t, want %t", name, ok, c.width > 0)
		}
		if !ok {
			continue
		}
		got, err := png.Decode(bytes.NewReader(file))
		if err != nil || got.Bounds().Dx() != c.width || got.Bounds().Dy() != c.height {
			t.Errorf("%s: got %v, error %v, want %d by %d", name, got.Bounds(), err, c.width, c.height)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	text, err := tensor.PackText([]string{"an invoice"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	vocabulary := []string{"[PAD]", "blend", "##er", "the"}
	for name, c := range map[string]struct {
		value      tensor.Tensor
		vocabulary []string
		want       string
	}{
		"text":                  {text, nil, "an invoice"},
		"bytes":                 {tensorOf(t, []int64{1, 3}, uint8(1), 2, 3), nil, ""},
		"tokens":                {tensorOf(t, []int64{1, 6}, int64(3), 1, 2, 0, 0, 0), vocabulary, "the blender [PAD]"},
		"a mask":                {tensorOf(t, []int64{1, 3}, int64(1), 1, 0), vocabulary, ""},
		"of another vocabulary": {tensorOf(t, []int64{1, 1}, int64(99)), vocabulary, ""},
		"few numbers":           {tensorOf(t, []int64{1, 2}, 1.5, 2), nil, "1.5, 2"},
		"many numbers":          {tensorOf(t, []int64{1, 40}, make([]float32, 40)...), nil, ""},
		"a long text":           {tensorOf(t, []int64{1, 300}, alternating(300)...), []string{"a", "a", "word", "them"}, strings.Repeat("word them ", 40) + "..."},
	} {
		if got := parts.Words(c.value, c.vocabulary); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// alternating are 2, 3, 2, 3 and so on.
func alternating(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(2 + i%2)
	}
	return all
}
