package validators_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators"
)

// named is an interface with names of features and of classes.
func named(t testing.TB) validators.Interface {
	t.Helper()
	batch := validators.Dim{Symbol: "batch"}
	i := validators.Interface{
		V:      validators.InterfaceVersion,
		Inputs: []validators.TensorInfo{{Name: "x", DType: "float32", Shape: []validators.Dim{batch, {Size: 2}}}},
		Outputs: []validators.TensorInfo{
			{Name: "scores", DType: "float32", Shape: []validators.Dim{batch, {Size: 3}}, Kind: validators.KindScores},
			{Name: "best", DType: "int64", Shape: []validators.Dim{batch}, Kind: validators.KindClass},
			{Name: "open", DType: "float32", Shape: []validators.Dim{batch, {Symbol: "n"}}, Kind: validators.KindScores},
			{Name: "vector", DType: "float32", Shape: []validators.Dim{batch, {Size: 3}}, Kind: validators.KindEmbedding},
		},
		Dims: map[string]validators.DimRange{"batch": validators.DefaultDimRange(), "n": validators.DefaultDimRange()},
	}
	i, err := i.WithNames(map[string][]string{"x": {"age", "income"}}, map[string][]string{"scores": {"cat", "dog", "crane"}})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

const labelsJSON = `{"inputs":{"x":["age","income"]},"outputs":{"scores":["cat","dog","crane"]},"v":1}`

func TestLabelsRoundTrip(t *testing.T) {
	t.Parallel()
	i := named(t)
	data, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := validators.ParseInterface(data)
	if err != nil || !slices.Equal(again.Outputs[0].Names, i.Outputs[0].Names) {
		t.Errorf("read again: version %d, %q, %v", again.V, again.Outputs[0].Names, err)
	}
	labels, ok := again.Labels()
	document, err := labels.Document()
	if !ok || err != nil || string(document) != labelsJSON {
		t.Errorf("labels.json is %s (%v, %v), want %s", document, ok, err, labelsJSON)
	}
	parsed, err := validators.ParseLabels([]byte(labelsJSON))
	if err != nil || !slices.Equal(parsed.Inputs["x"], []string{"age", "income"}) {
		t.Errorf("parsed %v, %v", parsed, err)
	}
	if _, ok := digits().Labels(); ok {
		t.Error("an interface without names has labels")
	}
	if err := i.CheckLabels([]byte(labelsJSON)); err != nil {
		t.Error(err)
	}
	for _, other := range [][]byte{nil, []byte(strings.Replace(labelsJSON, "dog", "cow", 1))} {
		if err := i.CheckLabels(other); err == nil {
			t.Errorf("an engine with labels.json %q passed", other)
		}
	}
	if err := digits().CheckLabels([]byte("an asset of the user")); err != nil {
		t.Error(err)
	}
}

func TestWithNamesRefuses(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"a"}, validators.MaxNames)
	for name, c := range map[string]struct {
		inputs, outputs map[string][]string
		want            string
	}{
		"too few classes":      {nil, map[string][]string{"scores": {"cat", "dog"}}, `output "scores" of shape [batch 3]: 2 labels: want one for each of its 3 classes`},
		"too many classes":     {nil, map[string][]string{"scores": {"a", "b", "c", "d"}}, "4 labels: want one for each of its 3 classes"},
		"no classes":           {nil, map[string][]string{"best": {}}, "0 names: want 1 to 65536"},
		"beyond the bound":     {nil, map[string][]string{"best": append(many, "b")}, "65537 names"},
		"an embedding":         {nil, map[string][]string{"vector": {"a", "b", "c"}}, "kind embedding has no classes"},
		"an unknown output":    {nil, map[string][]string{"other": {"a"}}, `names of output "other", which the model does not have`},
		"empty":                {nil, map[string][]string{"scores": {"cat", "", "dog"}}, `name 1 is ""`},
		"control characters":   {nil, map[string][]string{"scores": {"cat", "do\ng", "crane"}}, `name 1 is "do\ng"`},
		"too long":             {nil, map[string][]string{"scores": {"cat", "dog", strings.Repeat("x", 257)}}, "name 2"},
		"too few features":     {map[string][]string{"x": {"age"}}, nil, `input "x" of shape [batch 2]: names of 1 feature`},
		"features named alike": {map[string][]string{"x": {"age", "age"}}, nil, `two features are called "age"`},
		"more than is stored": {nil, map[string][]string{"best": slices.Repeat([]string{strings.Repeat("x", 256)}, 4000)},
			"labels.json: 1036"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := named(t).WithNames(c.inputs, c.outputs)
			checkInvalid(t, name, err, c.want)
		})
	}
	for name, classes := range map[string][]string{"best": many[:5], "open": {"a", "a"}} {
		if _, err := named(t).WithNames(nil, map[string][]string{name: classes}); err != nil {
			t.Errorf("%d classes of %s: %v", len(classes), name, err)
		}
	}
}

func TestParseLabelsRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, want string }{
		{`"v":1`, `"v":2`, "version 2: want 1"},
		{`"v":1`, `"v":1,"w":1`, `unknown field "w"`},
		{`"v":1}`, `"v":1} `, "not canonical"},
		{`["age","income"]`, `null`, "0 names"},
		{`"age"`, `7`, "cannot unmarshal number"},
		{`"age"`, `["age"]`, "nested more than 3 deep"},
		{`{"x":["age","income"]}`, `null`, "with inputs and outputs"},
		{`"x"`, `""`, "no name of an input"},
		{labelsJSON, strings.Repeat("[", 1<<20), "nested more than 3 deep"},
		{labelsJSON, strings.Repeat(" ", 1<<20) + labelsJSON, "want at most"},
	} {
		_, err := validators.ParseLabels([]byte(strings.Replace(labelsJSON, c.old, c.new, 1)))
		checkInvalid(t, c.old[:min(len(c.old), 20)]+" -> "+c.new[:min(len(c.new), 20)], err, c.want)
	}
}

func TestReadNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, wrong string }{
		{"cat\ndog\n", "cat|dog", ""},
		{"\ufeffcat\r\ndog, hot\r\n", "cat|dog, hot", ""},
		{`["cat", "dog"]`, "cat|dog", ""},
		{"  [\"cat\"]\n", "cat", ""},
		{"", "", "0 names"},
		{"cat\n\ndog", "", `name 1 is ""`},
		{`[["cat"]]`, "", "nested"},
		{`{"0": "cat"}`, "", "want a JSON list of names"},
		{`[1, 2]`, "", "want a JSON list of names"},
		{"\xff", "", "UTF-8"},
		{strings.Repeat("a", 1<<20+1), "", "want at most"},
	} {
		names, err := validators.ReadNames([]byte(c.text))
		if c.wrong != "" {
			checkInvalid(t, c.text[:min(len(c.text), 20)], err, c.wrong)
			continue
		}
		if got := strings.Join(names, "|"); err != nil || got != c.want {
			t.Errorf("names in %q are %q (%v), want %q", c.text, got, err, c.want)
		}
	}
}

func FuzzParseLabels(f *testing.F) {
	f.Add([]byte(labelsJSON))
	f.Add([]byte(`{"inputs":{},"outputs":{},"v":1}`))
	f.Add([]byte(`["a","b"]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if names, err := validators.ReadNames(data); err == nil {
			if err := validators.CheckNames(names); err != nil {
				t.Errorf("read %q: %v", names, err)
			}
		}
		l, err := validators.ParseLabels(data)
		if err != nil {
			checkInvalid(t, "parse", err, "")
			return
		}
		again, err := l.Document()
		if err != nil || string(again) != string(data) {
			t.Errorf("%s, %v\nis not\n%s", again, err, data)
		}
	})
}

// Without a limit no outputs are named that hold boxes.
func TestDetectedBy(t *testing.T) {
	t.Parallel()
	var none *validators.AccuracyLimit
	named := &validators.Detections{Boxes: "b", Scores: "s", Classes: "c"}
	if got := none.DetectedBy(); got != nil {
		t.Errorf("no limit: %+v, want nil", got)
	}
	if got := (&validators.AccuracyLimit{Metric: "map", Detections: named}).DetectedBy(); got != named {
		t.Errorf("got %+v, want %+v", got, named)
	}
}
