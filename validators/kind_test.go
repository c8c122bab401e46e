package validators_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func TestGuessKind(t *testing.T) {
	t.Parallel()
	batch := validators.Dim{Symbol: "batch"}
	row := func(n int64) []validators.Dim { return []validators.Dim{batch, {Size: n}} }
	for _, c := range []struct {
		name     string
		dtype    tensor.DType
		shape    []validators.Dim
		operator string
		want     validators.Kind
	}{
		{"logits", tensor.Float32, row(10), "Gemm", validators.KindScores},
		{"logits", tensor.Float32, []validators.Dim{batch, {Symbol: "seq"}, {Size: 100}}, "", validators.KindTokens},
		{"output", tensor.Float32, row(10), "", validators.KindScores},
		{"output", tensor.Float32, row(10), "Softmax", validators.KindProbability},
		{"output", tensor.Float32, []validators.Dim{batch, {Symbol: "n"}}, "", validators.KindOther},
		{"logits", tensor.Float32, []validators.Dim{batch, {Symbol: "n"}}, "", validators.KindScores},
		{"probabilities", tensor.Float32, row(3), "", validators.KindProbability},
		{"probability", tensor.Float32, row(1), "Sigmoid", validators.KindProbability},
		{"risk", tensor.Float32, row(1), "Sigmoid", validators.KindProbability},
		{"risk", tensor.Float32, row(1), "Softmax", validators.KindValue},
		{"score", tensor.Float32, []validators.Dim{batch}, "", validators.KindValue},
		{"prob", tensor.Float64, []validators.Dim{batch}, "Sigmoid", validators.KindProbability},
		{"logits", tensor.Float32, []validators.Dim{{Size: 5}, batch}, "", validators.KindScores},
		{"tags", tensor.Float32, row(6), "Sigmoid", validators.KindOther},
		{"masked_lm_logits", tensor.Float32, []validators.Dim{batch, {Symbol: "seq"}, {Size: 100}}, "", validators.KindTokens},
		{"y", tensor.Float32, row(1), "", validators.KindValue},
		{"y", tensor.Float32, nil, "", validators.KindValue},
		{"label", tensor.Int64, []validators.Dim{batch}, "", validators.KindClass},
		{"best", tensor.Int32, []validators.Dim{batch}, "ArgMax", validators.KindClass},
		{"flags", tensor.Bool, row(4), "", validators.KindLabel},
		{"pooler_output", tensor.Float32, row(384), "", validators.KindEmbedding},
		{"embedding", tensor.Float32, row(128), "LpNormalization", validators.KindEmbedding},
		{"masks", tensor.Float32, []validators.Dim{batch, {Size: 1}, {Size: 64}, {Size: 64}}, "", validators.KindMask},
		{"upsampled", tensor.Float32, []validators.Dim{batch, {Size: 2}, {Size: 64}, {Size: 64}}, "", validators.KindOther}, // a cache of keys, too
		{"boxes", tensor.Float32, []validators.Dim{batch, {Size: 100}, {Size: 4}}, "", validators.KindBoxes},
		{"hidden_state", tensor.Float32, []validators.Dim{batch, {Size: 64}}, "", validators.KindState},
		{"y", tensor.Float32, []validators.Dim{batch, {Symbol: "seq"}, {Size: 8}}, "", validators.KindOther},
	} {
		output := validators.TensorInfo{Name: c.name, DType: c.dtype, Shape: c.shape}
		kind, why := validators.GuessKind(output, c.operator)
		if kind != c.want || why == "" {
			t.Errorf("%s %s %v of %q: %s because %q, want %s and why", c.name, c.dtype, c.shape, c.operator, kind, why, c.want)
		}
		if err := kind.Check(output); err != nil {
			t.Errorf("%s %s %v: guessed %s, which it cannot be: %v", c.name, c.dtype, c.shape, kind, err)
		}
	}
}

func TestKindRefuses(t *testing.T) {
	t.Parallel()
	value := validators.TensorInfo{Name: "y", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 1}}}
	checkInvalid(t, "unknown", validators.Kind("score").Check(value), `output "y": kind "score": want one of scores, probability`)
	checkInvalid(t, "one score", validators.KindScores.Check(value), "its last dimension is 1: want kind value")
	one := validators.TensorInfo{Name: "y", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}}}
	checkInvalid(t, "a score for each case", validators.KindScores.Check(one), "and the output has one for each case: want kind value")
	checkInvalid(t, "class", validators.KindClass.Check(value), "kind class is of integers or booleans, and the output is float32")
	checkInvalid(t, "scalar", validators.KindTokens.Check(validators.TensorInfo{Name: "y", DType: tensor.Float32}), "the output is a scalar")
	for edit, want := range map[string]func(*validators.Interface){
		`an input has no kind`:                  func(i *validators.Interface) { i.Inputs[0].Kind = validators.KindValue },
		`output "logits": kind "": want one of`: func(i *validators.Interface) { i.Outputs[0].Kind = "" },
	} {
		i := digits()
		want(&i)
		checkInvalid(t, edit, i.Validate(), edit)
	}
	given := digits()
	given.Outputs[0].Kind, given.Outputs[1].Kind = "", ""
	whole, err := given.WithKinds(map[string]validators.Kind{"logits": validators.KindEmbedding})
	if err != nil || whole.Validate() != nil || whole.Outputs[0].Kind != validators.KindEmbedding || whole.Outputs[1].Kind != validators.KindClass {
		t.Errorf("%+v, error %v, want an embedding and a guessed class", whole.Outputs, err)
	}
	if given.Outputs[0].Kind != "" {
		t.Error("the outputs of the first interface changed")
	}
}

// An operator decides where a kind can be made by it, and else the name does.
func TestGuessKinds(t *testing.T) {
	t.Parallel()
	row := func(name string, shape ...int64) validators.TensorInfo {
		info := validators.TensorInfo{Name: name, DType: tensor.Float32}
		for _, size := range shape {
			info.Shape = append(info.Shape, validators.Dim{Size: size})
		}
		return info
	}
	outputs := []validators.TensorInfo{
		row("logits", 1, 10), row("out", 1, 10), row("one", 1, 1), row("none"), row("cell_next", 1, 32), row("cancellation", 1, 2)}
	got := validators.Interface{Outputs: outputs}.GuessKinds(map[string]string{"out": "Softmax", "one": "Softmax", "none": "Softmax"})
	want := map[string]validators.Guess{
		"logits":       {validators.KindScores, "its name has logit"},
		"out":          {validators.KindProbability, "it is the result of Softmax"},
		"one":          {validators.KindValue, "it has one number for each case"},
		"none":         {validators.KindValue, "it has one number for each case"},
		"cell_next":    {validators.KindState, "its name has cell_"},
		"cancellation": {validators.KindScores, "it has a row of numbers for each case"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The classes of pixels are not along the width of an image with its channels in front; in other shapes, they are last.
func TestGuessKindsOfPixels(t *testing.T) {
	t.Parallel()
	dims := func(sizes ...int64) []validators.Dim {
		shape := []validators.Dim{{Symbol: "batch"}}
		for i, size := range sizes {
			d := validators.Dim{Size: size}
			if size == 0 {
				d.Symbol = string(rune('g' + i))
			}
			shape = append(shape, d)
		}
		return shape
	}
	for name, c := range map[string]struct {
		input, output []validators.Dim
		name          string
		want          validators.Kind
	}{
		"planes":               {dims(3, 32, 32), dims(4, 32, 32), "mask_logits", validators.KindMask},
		"smaller planes":       {dims(3, 512, 256), dims(19, 128, 64), "logits", validators.KindMask},
		"open planes":          {dims(3, 0, 0), dims(19, 0, 0), "class_scores", validators.KindMask},
		"probabilities":        {dims(1, 64, 64), dims(2, 64, 64), "prob", validators.KindMask},
		"classes last":         {dims(32, 32, 3), dims(32, 32, 4), "logits", validators.KindTokens},
		"as many as channels":  {dims(32, 32, 3), dims(32, 32, 3), "logits", validators.KindTokens},
		"open, classes last":   {dims(0, 0, 3), dims(0, 0, 21), "logits", validators.KindTokens},
		"turned, classes last": {dims(3, 32, 32), dims(32, 32, 21), "logits", validators.KindTokens},
		"turned, open":         {dims(3, 0, 0), dims(0, 0, 21), "logits", validators.KindTokens},
		"tokens":               {dims(0), dims(2, 0, 100), "logits", validators.KindTokens},
	} {
		i := validators.Interface{V: validators.InterfaceVersion,
			Inputs:  []validators.TensorInfo{{Name: "image", DType: tensor.Float32, Shape: c.input}},
			Outputs: []validators.TensorInfo{{Name: c.name, DType: tensor.Float32, Shape: c.output}}}
		got := i.GuessKinds(nil)[c.name]
		whole, err := i.WithKinds(nil)
		if got.Kind != c.want || got.Why == "" || err != nil || whole.Outputs[0].Kind != c.want {
			t.Errorf("%s: %s because %q, and %s with all kinds, error %v; want %s", name, got.Kind, got.Why, whole.Outputs[0].Kind, err, c.want)
		}
	}
}
