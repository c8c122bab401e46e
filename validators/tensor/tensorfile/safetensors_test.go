package tensorfile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

// safetensors builds a file of any header text and data.
func safetensors(header string, data ...byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

func open(data []byte, limits tensorfile.Limits) (*tensorfile.File, error) {
	return tensorfile.NewFile(bytes.NewReader(data), int64(len(data)), limits)
}

func TestSafetensorsGolden(t *testing.T) {
	t.Parallel()
	f := tensortest.Must(tensorfile.Open("testdata/dtypes.safetensors", tensorfile.Limits{}))
	defer f.Close()
	if got, want := len(f.Names()), len(tensortest.DTypes)+2; got != want {
		t.Errorf("%d tensors, want %d", got, want)
	}
	if got, want := f.Metadata(), map[string]string{"made_by": "safetensors", `quote"é`: "<&>"}; !maps.Equal(got, want) {
		t.Errorf("metadata %q, want %q", got, want)
	}
	for _, d := range tensortest.DTypes {
		x := tensortest.Must(f.Tensor(string(d)))
		want := []float64{0, 1, 2, 3, 4, 5}
		if d == tensor.Bool {
			want = []float64{0, 1, 0, 1, 0, 1}
		}
		if x.DType != d || !slices.Equal(x.Shape, []int64{2, 3}) || !slices.Equal(x.Float64s(), want) {
			t.Errorf("%s: %s %v %v", d, x.DType, x.Shape, x.Float64s())
		}
	}
	if x := tensortest.Must(f.Tensor("scalar")); len(x.Shape) != 0 || x.Float64(0) != 7 {
		t.Errorf("scalar: %v", x)
	}
	if x := tensortest.Must(f.Tensor("empty")); !slices.Equal(x.Shape, []int64{0, 3}) || x.Len() != 0 {
		t.Errorf("empty: %v", x)
	}
	_, err := f.Tensor("absent")
	tensortest.WantKind(t, err, tensor.ErrMismatch)
}

func TestSafetensorsRefuses(t *testing.T) {
	t.Parallel()
	entry := func(body string) string { return `{"x":{` + body + `}}` }
	const good = `"dtype":"U8","shape":[2],"data_offsets":[0,2]`
	if _, err := open(safetensors(entry(good)+"   ", 1, 2), tensorfile.Limits{}); err != nil {
		t.Fatalf("the good file: %v", err)
	}
	malformed := map[string][]byte{
		"nothing":               nil,
		"seven bytes":           make([]byte, 7),
		"no header":             make([]byte, 8),
		"header of 2^64-1":      bytes.Repeat([]byte{0xff}, 64),
		"header beyond file":    {200, 0, 0, 0, 0, 0, 0, 0, '{', '}'},
		"space before brace":    safetensors(" {}"),
		"array":                 safetensors("[]"),
		"open object":           safetensors(`{"x":`),
		"newline padding":       safetensors(entry(good)+"\n", 1, 2),
		"two objects":           safetensors("{}{}"),
		"not UTF-8":             safetensors("{\"\xff\":{" + good + "}}"),
		"byte appended":         safetensors(entry(good), 1, 2, 3),
		"byte missing":          safetensors(entry(good), 1),
		"hole":                  safetensors(entry(`"dtype":"U8","shape":[2],"data_offsets":[1,3]`), 0, 1, 2),
		"overlap":               safetensors(`{"x":{`+good+`},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 0, 1, 2),
		"same place":            safetensors(`{"x":{`+good+`},"y":{`+good+`}}`, 0, 1),
		"backwards":             safetensors(entry(`"dtype":"U8","shape":[2],"data_offsets":[2,0]`), 1, 2),
		"size not of shape":     safetensors(entry(`"dtype":"U16","shape":[2],"data_offsets":[0,2]`), 1, 2),
		"shape overflows":       safetensors(entry(`"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]`)),
		"negative dimension":    safetensors(entry(`"dtype":"U8","shape":[-2],"data_offsets":[0,2]`), 1, 2),
		"fractional dimension":  safetensors(entry(`"dtype":"U8","shape":[2.0],"data_offsets":[0,2]`), 1, 2),
		"dimension of 2^63":     safetensors(entry(`"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,2]`), 1, 2),
		"dimension as string":   safetensors(entry(`"dtype":"U8","shape":["2"],"data_offsets":[0,2]`), 1, 2),
		"shape null":            safetensors(entry(`"dtype":"U8","shape":null,"data_offsets":[0,2]`), 1, 2),
		"one offset":            safetensors(entry(`"dtype":"U8","shape":[2],"data_offsets":[0]`), 1, 2),
		"no dtype":              safetensors(entry(`"shape":[2],"data_offsets":[0,2]`), 1, 2),
		"no shape":              safetensors(entry(`"dtype":"U8","data_offsets":[0,2]`), 1, 2),
		"dtype null":            safetensors(entry(`"dtype":null,"shape":[2],"data_offsets":[0,2]`), 1, 2),
		"key in other case":     safetensors(entry(`"DType":"U8","shape":[2],"data_offsets":[0,2]`), 1, 2),
		"unknown key":           safetensors(entry(good+`,"x":1`), 1, 2),
		"key twice":             safetensors(entry(good+`,"shape":[2]`), 1, 2),
		"name twice":            safetensors(`{"x":{`+good+`},"x":{`+good+`}}`, 1, 2),
		"name twice, escaped":   safetensors(`{"x":{`+good+`},"\u0078":{`+good+`}}`, 1, 2),
		"metadata twice":        safetensors(`{"__metadata__":{},"__metadata__":{}}`),
		"metadata key twice":    safetensors(`{"__metadata__":{"a":"1","a":"2"}}`),
		"metadata not a string": safetensors(`{"__metadata__":{"a":1}}`),
		"metadata nested":       safetensors(`{"__metadata__":{"a":{"b":"c"}}}`),
		"entry is a number":     safetensors(`{"x":1}`),
		"deep nesting":          safetensors(`{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`),
	}
	for name, data := range malformed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open(data, tensorfile.Limits{})
			tensortest.WantKind(t, err, tensor.ErrMalformed)
		})
	}
	_, err := open(safetensors(entry(`"dtype":"C64","shape":[1],"data_offsets":[0,8]`), make([]byte, 8)...), tensorfile.Limits{})
	tensortest.WantKind(t, err, tensor.ErrUnsupported)
}

func TestSafetensorsLimits(t *testing.T) {
	t.Parallel()
	data := write(t, map[string]tensor.Tensor{
		"a": tensortest.Must(tensor.New(make([]float32, 6), 3, 2)),
		"b": tensortest.Must(tensor.New(make([]float32, 6), 3, 2)),
	}, nil)
	for name, limits := range map[string]tensorfile.Limits{
		"header":  {MaxHeaderBytes: 20},
		"tensors": {MaxTensors: 1},
		"rank":    {MaxRank: 1},
		"nothing": {MaxTensors: -1},
	} {
		if _, err := open(data, limits); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			tensortest.WantKind(t, err, tensor.ErrLimit)
		}
	}
	f := tensortest.Must(open(data, tensorfile.Limits{MaxTensorBytes: 16}))
	_, err := f.Tensor("a")
	tensortest.WantKind(t, err, tensor.ErrLimit)
	if _, err := f.Rows("a", 0, 2); err != nil {
		t.Errorf("two rows of 8 bytes: %v", err)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = tensorfile.ReadFile(path, tensorfile.Limits{MaxTotalBytes: 47})
	tensortest.WantKind(t, err, tensor.ErrLimit)
	if all, err := tensorfile.ReadFile(path, tensorfile.Limits{MaxTotalBytes: 48}); err != nil || len(all) != 2 {
		t.Errorf("ReadFile = %d tensors, %v", len(all), err)
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	_, err := tensorfile.Open(t.TempDir(), tensorfile.Limits{})
	tensortest.WantKind(t, err, tensor.ErrMalformed)
	_, err = tensorfile.Open("testdata/absent", tensorfile.Limits{})
	tensortest.WantKind(t, err, os.ErrNotExist)
	_, err = tensorfile.Open("testdata/c.npy", tensorfile.Limits{})
	tensortest.WantKind(t, err, tensor.ErrMalformed)
}

func TestSafetensorsCutShort(t *testing.T) {
	t.Parallel()
	whole := tensortest.Must(os.ReadFile("testdata/dtypes.safetensors"))
	for n := range whole {
		if _, err := open(whole[:n], tensorfile.Limits{}); err == nil {
			t.Fatalf("accepted with %d bytes of %d", n, len(whole))
		}
	}
	f := tensortest.Must(tensorfile.NewFile(bytes.NewReader(whole), int64(len(whole)), tensorfile.Limits{}))
	if f.Close() != nil {
		t.Error("Close of a File without a file of its own")
	}
	short := tensortest.Must(tensorfile.NewFile(io.NewSectionReader(bytes.NewReader(whole), 0, int64(len(whole)-1)), int64(len(whole)), tensorfile.Limits{}))
	var err error
	for _, name := range short.Names() {
		if _, e := short.Tensor(name); e != nil {
			err = e
		}
	}
	tensortest.WantKind(t, err, tensor.ErrMalformed)
}

// countingReader counts the bytes that were asked for.
type countingReader struct {
	io.ReaderAt
	n int
}

func (c *countingReader) ReadAt(p []byte, offset int64) (int, error) {
	c.n += len(p)
	return c.ReaderAt.ReadAt(p, offset)
}

func TestRowsReadNothingElse(t *testing.T) {
	t.Parallel()
	rows := tensortest.Must(tensor.New([]int64{0, 1, 2, 3, 4, 5, 6, 7}, 4, 2))
	data := write(t, map[string]tensor.Tensor{"x": rows, "other": rows}, nil)
	r := &countingReader{ReaderAt: bytes.NewReader(data)}
	f := tensortest.Must(tensorfile.NewFile(r, int64(len(data)), tensorfile.Limits{}))
	r.n = 0
	if got := tensortest.Must(f.Rows("x", 1, 3)); !tensortest.Equal(got, tensortest.Must(rows.Rows(1, 3))) || r.n != 32 {
		t.Errorf("rows %v, %d bytes read, want 32", got, r.n)
	}
	for _, c := range [][2]int64{{-1, 1}, {3, 5}, {2, 1}} {
		_, err := f.Rows("x", c[0], c[1])
		tensortest.WantKind(t, err, tensor.ErrMismatch)
	}
}

func write(t interface{ Fatal(...any) }, tensors map[string]tensor.Tensor, metadata map[string]string) []byte {
	var buf bytes.Buffer
	if err := tensorfile.Write(&buf, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestSafetensorsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tensors := map[string]tensor.Tensor{}
		for _, name := range rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "names") {
			tensors[name] = tensortest.Draw(t, name)
		}
		metadata := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		data := write(t, tensors, metadata)
		if !bytes.Equal(data, write(t, tensors, metadata)) {
			t.Fatal("two writes differ")
		}
		if n := binary.LittleEndian.Uint64(data); n%8 != 0 {
			t.Fatalf("header of %d bytes", n)
		}
		f, err := open(data, tensorfile.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.Names(), slices.Sorted(maps.Keys(tensors))) || !maps.Equal(f.Metadata(), metadata) {
			t.Fatalf("names %q, metadata %q", f.Names(), f.Metadata())
		}
		for name, want := range tensors {
			if got := tensortest.Must(f.Tensor(name)); !tensortest.Equal(got, want) {
				t.Fatalf("%q: got %v, want %v", name, got, want)
			}
		}
	})
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	x := tensortest.Must(tensor.New([]float32{1}, 1))
	bad := []struct {
		tensors  map[string]tensor.Tensor
		metadata map[string]string
		kind     error
	}{
		{map[string]tensor.Tensor{"__metadata__": x}, nil, tensor.ErrMalformed},
		{map[string]tensor.Tensor{"\xff": x}, nil, tensor.ErrMalformed},
		{map[string]tensor.Tensor{"x": {}}, nil, tensor.ErrUnsupported},
		{nil, map[string]string{"a": "\xff"}, tensor.ErrMalformed},
	}
	for _, c := range bad {
		tensortest.WantKind(t, tensorfile.Write(io.Discard, c.tensors, c.metadata), c.kind)
	}
}

func TestShardWriterWritesTheSame(t *testing.T) {
	t.Parallel()
	logits := tensortest.Must(tensor.New([]float32{0, 1, 2, 3, 4, 5}, 3, 2))
	label := tensortest.Must(tensor.New([]int64{7, 8, 9}, 3))
	tensors := map[string]tensor.Tensor{"logits": logits, "label": label}
	metadata := map[string]string{"first": "0"}
	file := tensortest.Must(os.Create(filepath.Join(t.TempDir(), "shard")))
	defer file.Close()
	w := tensortest.Must(tensorfile.NewShardWriter(file, map[string]tensor.Info{"logits": logits.Info(), "label": label.Info()}, metadata))
	for i := range int64(3) {
		for _, name := range []string{"logits", "label"} {
			tensortest.WantKind(t, w.Close(), tensor.ErrMismatch)
			if err := w.Append(name, tensortest.Must(tensors[name].Rows(i, i+1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := tensortest.Must(os.ReadFile(file.Name())); !bytes.Equal(got, write(t, tensors, metadata)) {
		t.Errorf("shard is %q", got)
	}
	for name, rows := range map[string]tensor.Tensor{"logits": logits, "label": label, "absent": label} {
		tensortest.WantKind(t, w.Append(name, tensortest.Must(rows.Rows(0, 1))), tensor.ErrMismatch)
	}
}

func TestShardWriterRefusesOtherRows(t *testing.T) {
	t.Parallel()
	file := tensortest.Must(os.Create(filepath.Join(t.TempDir(), "shard")))
	defer file.Close()
	w := tensortest.Must(tensorfile.NewShardWriter(file, map[string]tensor.Info{"x": {DType: tensor.Int8, Shape: []int64{2, 3}}}, nil))
	for i, rows := range []tensor.Tensor{
		tensortest.Must(tensor.New(make([]int8, 2), 1, 2)), tensortest.Must(tensor.New(make([]uint8, 3), 1, 3)),
		tensortest.Must(tensor.New(make([]int8, 9), 3, 3)), tensortest.Must(tensor.New([]int8{1})), tensortest.Must(tensor.New(make([]int8, 3), 1, 3, 1)),
	} {
		if err := w.Append("x", rows); err == nil {
			t.Errorf("rows %d: %v accepted", i, rows.Shape)
		}
	}
	_, err := tensorfile.NewShardWriter(file, map[string]tensor.Info{"x": {DType: tensor.Int8}}, nil)
	tensortest.WantKind(t, err, tensor.ErrMismatch)
}

func ExampleFile_Rows() {
	f, err := tensorfile.Open("testdata/dtypes.safetensors", tensorfile.Limits{})
	if err != nil {
		panic(err)
	}
	defer f.Close()
	row, err := f.Rows("bfloat16", 1, 2)
	fmt.Println(row.Shape, row.Float64s(), err)
	// Output: [1 3] [3 4 5] <nil>
}

// TestWriteAligns: every tensor starts at a multiple of its element size.
func TestWriteAligns(t *testing.T) {
	t.Parallel()
	data := write(t, map[string]tensor.Tensor{
		"a": tensortest.Must(tensor.New([]uint8{1})), "b": {DType: tensor.Float64, Data: make([]byte, 8)}, "c": tensortest.Must(tensor.New([]int16{3})),
	}, map[string]string{"k": "v"})
	const want = `{"__metadata__":{"k":"v"},"b":{"dtype":"F64","shape":[],"data_offsets":[0,8]},` +
		`"c":{"dtype":"I16","shape":[],"data_offsets":[8,10]},"a":{"dtype":"U8","shape":[],"data_offsets":[10,11]}}`
	if got := strings.TrimRight(string(data[8:len(data)-11]), " "); got != want {
		t.Errorf("header %s\nwant   %s", got, want)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	f := tensortest.Must(tensorfile.Open("testdata/dtypes.safetensors", tensorfile.Limits{}))
	defer f.Close()
	info, ok := f.Info("float16")
	if n, err := info.Bytes(); !ok || info.DType != tensor.Float16 || !slices.Equal(info.Shape, []int64{2, 3}) || n != 12 || err != nil {
		t.Errorf("float16: %v, %v, %d bytes, %v", info, ok, n, err)
	}
	info.Shape[0] = 100 // a copy
	if _, ok := f.Info("absent"); ok || tensortest.Must(f.Tensor("float16")).Shape[0] != 2 {
		t.Error("Info of an absent tensor, or one that shares its shape with the file")
	}
}
