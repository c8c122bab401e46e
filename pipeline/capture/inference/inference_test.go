package inference_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/capture/inference"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

var limits = inference.Limits{Bytes: 1 << 16}

// packed is a body that a writer packs.
func packed(t testing.TB, to func(io.Writer) io.WriteCloser, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := to(&b)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, body []byte) []byte {
	t.Helper()
	return packed(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, body)
}

func deflated(t testing.TB, body []byte) []byte {
	t.Helper()
	return packed(t, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, body)
}

// withBinary is a body of JSON and binary data, with the header that says so.
func withBinary(text string, data []byte) (http.Header, []byte) {
	return http.Header{inference.HeaderLength: {strconv.Itoa(len(text))}}, append([]byte(text), data...)
}

func one(datatype, shape, data string) string {
	return `{"id": "7", "inputs": [{"name": "x", "datatype": "` + datatype +
		`", "shape": ` + shape + `, "data": ` + data + `}], "outputs": [{"name": "y"}]}`
}

func TestReadNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		dtype tensor.DType
		shape []int64
		want  []float64
	}{
		"flat floats":              {one("FP32", "[2,2]", "[1, -2.5,3e2 ,\n0]"), tensor.Float32, []int64{2, 2}, []float64{1, -2.5, 300, 0}},
		"nested floats":            {one("FP64", "[2,1,2]", "[[[1,2]],[[3,4.25]]]"), tensor.Float64, []int64{2, 1, 2}, []float64{1, 2, 3, 4.25}},
		"rounded once":             {one("FP32", "[1]", "[0.1]"), tensor.Float32, []int64{1}, []float64{float64(float32(0.1))}},
		"whole numbers":            {one("INT64", "[3]", "[-1, 0, 9007199254740993]"), tensor.Int64, []int64{3}, []float64{-1, 0, 9007199254740992}},
		"whole, written as floats": {one("INT32", "[2]", "[1.0, -2e0]"), tensor.Int32, []int64{2}, []float64{1, -2}},
		"bytes":                    {one("UINT8", "[2]", "[0, 255]"), tensor.Uint8, []int64{2}, []float64{0, 255}},
		"truths":                   {one("BOOL", "[4]", "[true, false, 1, 0]"), tensor.Bool, []int64{4}, []float64{1, 0, 1, 0}},
		"a scalar":                 {one("INT8", "[]", "[-7]"), tensor.Int8, []int64{}, []float64{-7}},
		"no elements":              {one("FP32", "[0,8]", "[]"), tensor.Float32, []int64{0, 8}, []float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := inference.Read(http.Header{}, []byte(c.text), inference.Inputs, limits)
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v, error %v, want one tensor", got, err)
			}
			if x := got[0]; x.Name != "x" || x.DType != c.dtype || !slices.Equal(x.Shape, c.shape) ||
				!slices.Equal(x.Float64s(), c.want) || x.Validate() != nil {
				t.Errorf("got %s %s %v %v, want x %s %v %v", x.Name, x.DType, x.Shape, x.Float64s(), c.dtype, c.shape, c.want)
			}
		})
	}
	got, err := inference.Read(http.Header{}, []byte(one("INT64", "[1]", "[9007199254740993]")), inference.Inputs, limits)
	if err != nil || int64(binary.LittleEndian.Uint64(got[0].Data)) != 9007199254740993 {
		t.Errorf("got %v, error %v, want the integer 9007199254740993 exactly", got, err)
	}
}

// Requests that have the same two tensors, however they are written.
func TestReadEncodings(t *testing.T) {
	t.Parallel()
	half := []byte{0x00, 0x3c, 0x00, 0xc0} // 1 and -2 as FP16
	ints := binary.LittleEndian.AppendUint32(nil, 5)
	text := `{"inputs":[{"name":"a","datatype":"FP16","shape":[1,2],"parameters":{"binary_data_size":4,"other":[{}]}},` +
		`{"name":"b","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}`
	mixed := strings.Replace(text, `"parameters":{"binary_data_size":4}}]`, `"data":[5]}]`, 1)
	header, body := withBinary(text, slices.Concat(half, ints))
	mixedHeader, mixedBody := withBinary(mixed, half)
	encoded := func(header http.Header, name string) http.Header {
		header = header.Clone()
		header.Set("Content-Encoding", name)
		return header
	}
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
	}{
		"binary":                  {header, body},
		"binary and JSON":         {mixedHeader, mixedBody},
		"gzip":                    {encoded(header, "gzip"), gzipped(t, body)},
		"deflate":                 {encoded(header, "Deflate"), deflated(t, body)},
		"identity":                {encoded(header, "identity"), body},
		"gzip of binary and JSON": {encoded(mixedHeader, "gzip"), gzipped(t, mixedBody)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := inference.Read(c.header, c.body, inference.Inputs, limits)
			if err != nil || len(got) != 2 {
				t.Fatalf("got %v, error %v, want two tensors", got, err)
			}
			if a := got[0]; a.DType != tensor.Float16 || !slices.Equal(a.Float64s(), []float64{1, -2}) {
				t.Errorf("a is %s %v, want float16 [1 -2]", a.DType, a.Float64s())
			}
			if b := got[1]; b.DType != tensor.Int32 || !slices.Equal(b.Float64s(), []float64{5}) {
				t.Errorf("b is %s %v, want int32 [5]", b.DType, b.Float64s())
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	many := `{"inputs":[` + strings.Repeat("{},", 300) + `{}]}`
	deep := one("FP32", "[1]", strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	header, body := withBinary(`{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}`, make([]byte, 8))
	_, short := withBinary(`{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}`, make([]byte, 7))
	_, long := withBinary(`{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}`, make([]byte, 9))
	wrong, wrongBody := withBinary(`{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":-8}}]}`, make([]byte, 8))
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
		want   string
	}{
		"nothing":                   {nil, nil, "JSON"},
		"no JSON":                   {nil, []byte("hello"), "JSON"},
		"another document":          {nil, []byte(`[]`), "want {"},
		"no inputs":                 {nil, []byte(`{"outputs":[]}`), "no inputs"},
		"inputs that are no list":   {nil, []byte(`{"inputs":{}}`), "want ["},
		"inputs twice":              {nil, []byte(`{"inputs":[],"inputs":[]}`), "inputs occurs twice"},
		"more behind":               {nil, []byte(one("FP32", "[1]", "[1]") + "{}"), "bytes follow"},
		"too many":                  {nil, []byte(many), "more than 256"},
		"no name":                   {nil, []byte(`{"inputs":[{"datatype":"FP32","shape":[1],"data":[1]}]}`), "is called"},
		"a name twice":              {nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]},{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]}`), "occurs twice"},
		"texts":                     {nil, []byte(one("BYTES", "[1]", `["a"]`)), "BYTES"},
		"an unknown type":           {nil, []byte(one("FP8", "[1]", "[1]")), "none of the protocol"},
		"halves as JSON":            {nil, []byte(one("FP16", "[1]", "[1]")), "want binary data"},
		"no shape":                  {nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","data":[1]}]}`), "want a list of sizes"},
		"a null shape":              {nil, []byte(one("FP32", "null", "[1]")), "want a list of sizes"},
		"a fraction in a shape":     {nil, []byte(one("FP32", "[1.5]", "[1]")), "want a list of sizes"},
		"a negative size":           {nil, []byte(one("FP32", "[-1]", "[1]")), "negative size"},
		"a negative size beside 0":  {nil, []byte(one("FP32", "[0,-1]", "[]")), "negative size"},
		"a huge shape":              {nil, []byte(one("FP32", "[4294967296,4294967296,4294967296]", "[1]")), "want at most"},
		"a large shape":             {nil, []byte(one("FP32", "[1000000000]", "[1]")), "want at most"},
		"many dimensions":           {nil, []byte(one("FP32", "[1"+strings.Repeat(",1", 16)+"]", "[1]")), "want at most 16"},
		"a long shape":              {nil, []byte(one("FP32", "[1"+strings.Repeat(",1", 600)+"]", "[1]")), "the shape has"},
		"too few elements":          {nil, []byte(one("FP32", "[3]", "[1,2]")), "data has 2 elements"},
		"far too few elements":      {nil, []byte(one("FP32", "[3000]", "[1,2]")), "fewer than the 3000"},
		"too many elements":         {nil, []byte(one("FP32", "[1]", "[1,2]")), "more than the 1"},
		"deep":                      {nil, []byte(deep), "nested deeper"},
		"null":                      {nil, []byte(one("FP32", "[1]", "[null]")), "is no FP32"},
		"a text among numbers":      {nil, []byte(one("FP32", "[1]", `["Inf"]`)), "is no FP32"},
		"an object":                 {nil, []byte(one("FP32", "[1]", `[{"a":1}]`)), "is no FP32"},
		"a fraction as an integer":  {nil, []byte(one("INT32", "[1]", "[1.5]")), "is no INT32"},
		"beyond a byte":             {nil, []byte(one("UINT8", "[1]", "[256]")), "is no UINT8"},
		"below zero, unsigned":      {nil, []byte(one("UINT64", "[1]", "[-1]")), "is no UINT64"},
		"beyond a float":            {nil, []byte(one("FP32", "[1]", "[1e39]")), "is no FP32"},
		"binary, too short":         {header, short, "with 7 bytes left"},
		"binary, too long":          {header, long, "belong to no tensor"},
		"binary of a negative size": {wrong, wrongBody, "binary_data_size is -8"},
		"binary without the header": {nil, body, "bytes follow"},
		"a header beyond the body":  {http.Header{inference.HeaderLength: {"9999"}}, body, "want a number from 0"},
		"a header below 0":          {http.Header{inference.HeaderLength: {"-1"}}, body, "want a number from 0"},
		"a header that is a word":   {http.Header{inference.HeaderLength: {"many"}}, body, "want a number from 0"},
		"raw bytes":                 {http.Header{inference.HeaderLength: {"0"}}, body, "without its JSON header"},
		"zstd":                      {http.Header{"Content-Encoding": {"zstd"}}, body, "want gzip or deflate"},
		"packed twice":              {http.Header{"Content-Encoding": {"gzip, gzip"}}, body, "encoded 2 times"},
		"not gzip":                  {http.Header{"Content-Encoding": {"gzip"}}, body, "does not unpack"},
		"broken gzip":               {http.Header{"Content-Encoding": {"gzip"}}, gzipped(t, body)[:20], "does not unpack"},
		"a bomb":                    {http.Header{"Content-Encoding": {"gzip"}}, gzipped(t, make([]byte, 1<<20)), "more than 65536 bytes"},
		"too large":                 {nil, make([]byte, 1<<17), "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := inference.Read(c.header, c.body, inference.Inputs, limits)
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, error %v, want one that has %q", got, err, c.want)
			}
		})
	}
}

// FuzzRead: whatever the body is, tensors are valid, within the limits, and what the JSON says.
func FuzzRead(f *testing.F) {
	f.Add("", "", []byte(one("FP32", "[2,2]", "[[1,2],[3,4]]")))
	f.Add("", "", []byte(one("INT64", "[0]", "[]")))
	header, body := withBinary(`{"inputs":[{"name":"x","datatype":"BF16","shape":[2],"parameters":{"binary_data_size":4}}]}`, make([]byte, 4))
	f.Add(header.Get(inference.HeaderLength), "", body)
	f.Add(header.Get(inference.HeaderLength), "gzip", gzipped(f, body))
	f.Add("", "deflate", deflated(f, []byte(one("BOOL", "[1]", "[true]"))))
	f.Fuzz(func(t *testing.T, length, encoding string, body []byte) {
		h := http.Header{"Content-Encoding": {encoding}}
		if length != "" {
			h.Set(inference.HeaderLength, length)
		}
		got, err := inference.Read(h, body, inference.Inputs, limits)
		if err != nil {
			if !registry.HasCode(err, registry.CodeInvalid) {
				t.Fatalf("error %v: want CodeInvalid", err)
			}
			return
		}
		total := int64(0)
		for _, x := range got {
			if err := x.Validate(); err != nil || x.Name == "" {
				t.Fatalf("%q: %v", x.Name, err)
			}
			total += int64(len(x.Data))
		}
		if len(got) == 0 || total > limits.Bytes {
			t.Fatalf("%d tensors of %d bytes", len(got), total)
		}
	})
}

// Numbers that Go writes as JSON are read as they were.
func FuzzElements(f *testing.F) {
	f.Add(0.1, int64(-5))
	f.Add(math.MaxFloat64, int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, v float64, n int64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return // JSON has no such numbers
		}
		float, err := json.Marshal([]float64{v})
		if err != nil {
			t.Fatal(err)
		}
		got, err := inference.Read(nil, []byte(one("FP64", "[1]", string(float))), inference.Inputs, limits)
		if err != nil || math.Float64bits(got[0].Float64(0)) != math.Float64bits(v) {
			t.Fatalf("%s: got %v, error %v", float, got, err)
		}
		got, err = inference.Read(nil, []byte(one("INT64", "[1]", "["+strconv.FormatInt(n, 10)+"]")), inference.Inputs, limits)
		if err != nil || int64(binary.LittleEndian.Uint64(got[0].Data)) != n {
			t.Fatalf("%d: got %v, error %v", n, got, err)
		}
	})
}
