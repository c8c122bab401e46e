package validators_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

const interfaceJSON = `{"dims":{"batch":{"max":64,"min":1,"opt":8}},"inputs":[{"dtype":"float32","meaning":"grey, 0 to 1","name":"image","shape":["batch",1,8,8]}],` +
	`"outputs":[{"dtype":"float32","kind":"scores","meaning":"","name":"logits","shape":["batch",10]},{"dtype":"int64","kind":"class","meaning":"","name":"best","shape":[]}],"v":1}`

// digits is the interface of interfaceJSON.
func digits() validators.Interface {
	batch := validators.Dim{Symbol: "batch"}
	return validators.Interface{
		V: validators.InterfaceVersion,
		Inputs: []validators.TensorInfo{{Name: "image", DType: "float32", Meaning: "grey, 0 to 1",
			Shape: []validators.Dim{batch, {Size: 1}, {Size: 8}, {Size: 8}}}},
		Outputs: []validators.TensorInfo{
			{Name: "logits", DType: "float32", Shape: []validators.Dim{batch, {Size: 10}}, Kind: validators.KindScores},
			{Name: "best", DType: "int64", Kind: validators.KindClass},
		},
		Dims: map[string]validators.DimRange{"batch": {Min: 1, Opt: 8, Max: 64}},
	}
}

func TestInterfaceRoundTrip(t *testing.T) {
	t.Parallel()
	data, err := digits().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(interfaceJSON, string(data)); diff != "" {
		t.Error(diff)
	}
	got, err := validators.ParseInterface(data)
	if err != nil {
		t.Fatal(err)
	}
	want := digits()
	want.Outputs[1].Shape = []validators.Dim{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInterfaceRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, want string }{
		{`"v":1`, `"v":2`, "interface version 2: this program reads version 1"},
		{`"kind":"scores",`, ``, "want one of scores"},
		{`"v":1`, `"v":1,"w":2`, `unknown field "w"`},
		{`"v":1`, `"v":1,"v":1`, "not canonical"},
		{`"v":1}`, `"v":1} `, "not canonical"},
		{`"opt":8`, `"opt":65`, "min 1, opt 65, max 64"},
		{`"min":1`, `"min":-1`, "min -1"},
		{`{"batch":{"max":64,"min":1,"opt":8}}`, `{}`, `dimension "batch" of a shape has no range`},
		{`{"batch"`, `{"seq":{"max":1,"min":1,"opt":1},"batch"`, `no shape has a dimension "seq"`},
		{`"float32"`, `"complex64"`, `unknown dtype "complex64"`},
		{`"best"`, `"logits"`, `output "logits": defined twice`},
		{`"best"`, `""`, "output name"},
		{`"shape":[]`, `"shape":null`, "not canonical"},
		{`"shape":[]`, `"shape":[1.5]`, "cannot unmarshal number 1.5"},
		{`"shape":[]`, `"shape":[""]`, "not canonical"},
		{`"shape":[]`, `"shape":[-1]`, "dimension 0: want a size"},
		{`"shape":[]`, `"shape":[` + strings.Repeat("1,", 16) + `1]`, "17 dimensions"},
		{`"inputs"`, `"Inputs"`, "not canonical"},
	} {
		_, err := validators.ParseInterface([]byte(strings.Replace(interfaceJSON, c.old, c.new, 1)))
		checkInvalid(t, fmt.Sprintf("%s -> %s", c.old, c.new), err, c.want)
	}
	for _, whole := range []string{"", "null", "{}", "[]", strings.Repeat("[", 1<<20)} {
		_, err := validators.ParseInterface([]byte(whole))
		checkInvalid(t, whole[:min(len(whole), 10)], err, "")
	}
}

func checkInvalid(t *testing.T, what string, err error, want string) {
	t.Helper()
	if registry.CodeOf(err) != registry.CodeInvalid || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want CodeInvalid with %q", what, err, want)
	}
}

func TestWithDims(t *testing.T) {
	t.Parallel()
	i, err := digits().WithDims(nil)
	if err != nil || i.Dims["batch"] != validators.DefaultDimRange() {
		t.Errorf("no dims: %v, %v", i.Dims, err)
	}
	i, err = digits().WithDims(map[string]validators.DimRange{"batch": {Min: 2, Opt: 2, Max: 2}})
	if err != nil || i.Dims["batch"].Opt != 2 {
		t.Errorf("batch 2: %v, %v", i.Dims, err)
	}
	_, err = digits().WithDims(map[string]validators.DimRange{"seq": {Min: 2, Opt: 2, Max: 2}})
	checkInvalid(t, "seq", err, `no input or output has a dimension "seq": there are batch`)
}

func FuzzParseInterface(f *testing.F) {
	f.Add([]byte(interfaceJSON))
	f.Add([]byte(`{"dims":{},"inputs":[],"outputs":[],"v":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := validators.ParseInterface(data)
		if err != nil {
			checkInvalid(t, "parse", err, "")
			return
		}
		again, err := i.Encode()
		if err != nil || string(again) != string(data) {
			t.Errorf("%s, %v\nis not\n%s", again, err, data)
		}
	})
}

func TestTakesText(t *testing.T) {
	t.Parallel()
	text := validators.TensorInfo{Name: "sentence", DType: validators.Text}
	for name, c := range map[string]struct {
		inputs []validators.TensorInfo
		want   string
	}{
		"none": {nil, ""}, "numbers": {[]validators.TensorInfo{{Name: "x"}}, ""}, "text": {[]validators.TensorInfo{{Name: "x"}, text}, "sentence"},
	} {
		if got, ok := (validators.Interface{Inputs: c.inputs}).TakesText(); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q, %t; want %q", name, got, ok, c.want)
		}
	}
}
