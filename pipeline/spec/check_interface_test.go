package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/validators"
)

// Names that the model does not have are told with their place.
func TestCheckInterface(t *testing.T) {
	t.Parallel()
	batch, seq := validators.Dim{Symbol: "batch"}, validators.Dim{Symbol: "seq"}
	model := validators.Interface{
		Inputs: []validators.TensorInfo{{Name: "mask", DType: "int64", Shape: []validators.Dim{batch, seq}}},
		Outputs: []validators.TensorInfo{
			{Name: "logits", DType: "float32", Shape: []validators.Dim{batch, {Size: 4}}},
			{Name: "tokens", DType: "float32", Shape: []validators.Dim{batch, seq, {Size: 8}}},
		},
	}
	fixed := validators.Interface{
		Inputs:  []validators.TensorInfo{{Name: "x", DType: "float32", Shape: []validators.Dim{{Size: 4}}}},
		Outputs: []validators.TensorInfo{{Name: "y", DType: "float32", Shape: []validators.Dim{{Size: 4}}}},
	}
	for name, c := range map[string]struct {
		text  string
		model validators.Interface
		want  string // empty for no mistake
	}{
		"nothing said":     {small, model, ""},
		"all known":        {small + "shapes: {batch: 8, seq: [1, 8, 16]}\nlimits: {outputs: {logits: {atol: 0.1}}}\n", model, ""},
		"dimension":        {small + "shapes:\n  batch: 8\n  sek: [1, 8, 16]\n", model, `10:3 unknown dimension "sek" (did you mean "seq"?): want batch, seq`},
		"input as a shape": {small + "shapes: {mask: 8}\n", model, `8:10 "mask" is an input, of shape [batch seq]: want the name of a dimension: batch, seq`},
		"fixed shapes":     {small + "shapes: {batch: 8}\n", fixed, `8:10 unknown dimension "batch": every dimension of the model has a fixed size, so leave shapes out`},
		"limits": {
			small + "limits: {outputs: {logit: {atol: 0.1}}, precisions: {int8: {outputs: {token: {atol: 0.1}}}}}\n", model,
			"8:20 unknown output \"logit\" (did you mean \"logits\"?): want logits, tokens\n" +
				"8:71 unknown output \"token\" (did you mean \"tokens\"?): want logits, tokens",
		},
		"compare": {
			change("cases/", "{path: cases/, compare: {loss: {where: mast}}}"), model,
			"4:33 unknown output \"loss\": want logits, tokens\n" +
				"4:47 unknown input \"mast\" (did you mean \"mask\"?): want mask",
		},
		"generated values": {
			change("cases: cases/", "cases: {generate: 1, inputs: {mast: {values: [1]}, mask: {values: [1]}}}"), model,
			`4:31 unknown input "mast" (did you mean "mask"?): want mask`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, c.text)
			if err != nil {
				t.Fatal(err)
			}
			err = s.CheckInterface(c.model)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if diff := cmp.Diff(c.want, problems(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
