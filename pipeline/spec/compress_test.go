package spec_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// withVariants is a spec with these variants.
func withVariants(list string) string {
	return strings.Replace(small, "[fp32, int8]", "["+list+"]", 1)
}

// compressing is a spec with a variant that these steps compress.
func compressing(steps string) string {
	return withVariants("{name: small, compress: [" + steps + "]}")
}

// Values of steps at a limit are on the side of it that the message says.
func TestCompress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"2:4":                       {compressing("{method: prune, pattern: 2:4}"), ""},
		"quoted":                    {compressing("{method: prune, pattern: '2:4'}"), ""},
		"one percent":               {compressing("{method: prune, pattern: unstructured, amount: 1%}"), ""},
		"almost all":                {compressing("{method: prune, pattern: channels, amount: 0.999}"), ""},
		"no steps":                  {compressing(""), "compress is empty: want at least one step"},
		"nothing":                   {compressing("{method: prune, pattern: channels, amount: 0%}"), "amount 0%: want more than 0% and less than 100%"},
		"everything":                {compressing("{method: prune, pattern: unstructured, amount: 100%}"), "amount 100%: want more than 0% and less than 100%"},
		"more than there is":        {compressing("{method: prune, pattern: unstructured, amount: 120%}"), "amount 120%: want more than 0% and less than 100%"},
		"less than nothing":         {compressing("{method: prune, pattern: unstructured, amount: -5%}"), "amount -5%: want more than 0% and less than 100%"},
		"not a number":              {compressing("{method: prune, pattern: unstructured, amount: .nan}"), "want"},
		"a percentage of 2:4":       {compressing("{method: prune, pattern: 2:4, amount: 50%}"), "pattern 2:4 always makes half of the weights zero: remove amount"},
		"no amount":                 {compressing("{method: prune, pattern: channels}"), "amount is missing: want the share of each layer that goes"},
		"no pattern":                {compressing("{method: prune, amount: 50%}"), "pattern is missing: want unstructured, 2:4, channels"},
		"unknown pattern":           {compressing("{method: prune, pattern: 4:8}"), `unknown pattern "4:8"`},
		"misspelt pattern":          {compressing("{method: prune, pattern: chanels, amount: 50%}"), `(did you mean "channels"?)`},
		"unknown method":            {compressing("{method: distill}"), `unknown compression method "distill": want prune, low-rank`},
		"no method":                 {compressing("{pattern: 2:4}"), `key "method" is missing`},
		"energy":                    {compressing("{method: low-rank, energy: 100%}"), ""},
		"no energy left":            {compressing("{method: low-rank, energy: 0}"), "energy 0%: want more than 0% and at most 100%"},
		"too much energy":           {compressing("{method: low-rank, energy: 101%}"), "energy 101%: want more than 0% and at most 100%"},
		"rank":                      {compressing("{method: low-rank, rank: 1}"), ""},
		"rank of nothing":           {compressing("{method: low-rank, rank: 0}"), "rank 0: want at least 1"},
		"energy and rank":           {compressing("{method: low-rank, rank: 1, energy: 50%}"), "want energy or rank"},
		"neither":                   {compressing("{method: low-rank}"), "want energy or rank"},
		"amount of low-rank":        {compressing("{method: low-rank, rank: 1, amount: 50%}"), "amount means nothing to method low-rank, only to prune: remove it"},
		"rank of prune":             {compressing("{method: prune, pattern: 2:4, rank: 1}"), "rank means nothing to method prune, only to low-rank: remove it"},
		"in and out":                {compressing("{method: low-rank, rank: 1, nodes: [a], exclude: [a]}"), `node "a" is in nodes and in exclude`},
		"as many steps as there be": {compressing(strings.Repeat("{method: low-rank, rank: 1},", 16)), ""},
		"too many steps":            {compressing(strings.Repeat("{method: low-rank, rank: 1},", 17)), "17 steps: want at most 16"},
		"no calibration": {strings.Replace(compressing("{method: low-rank, rank: 1}"), "calibration: calibration\n", "", 1),
			`variant "small" needs calibration and there is none: what each step costs is measured on it, and not on the cases`},
		"a name that lies": {withVariants("{name: fp32, compress: [{method: low-rank, rank: 1}]}"), `variant "fp32" is another, smaller model`},
		"a precision that is none": {withVariants("{name: int8, compress: [{method: low-rank, rank: 1}]}"),
			`variant "int8" is another, smaller model, and not the reference model in int8`},
		"a strange name":        {withVariants("{name: A.b, model: m.onnx}"), `variant name "A.b": want lower-case letters`},
		"quantized already":     {withVariants("{name: s, compress: [{method: low-rank, rank: 1}], quantize: {method: none}}"), "compression starts from weights in full precision"},
		"a student":             {withVariants("{name: student, model: m.onnx}"), ""},
		"a missing student":     {withVariants("{name: student, model: nowhere.onnx}"), "nowhere.onnx: no such file or folder"},
		"a student outside":     {withVariants("{name: student, model: ../m.onnx}"), "../m.onnx"},
		"a folder":              {withVariants("{name: student, model: cases}"), "cases: want a file, found a folder"},
		"a quantized student":   {withVariants("{name: student, model: m.onnx, quantize: {method: none, bits: 4}}"), ""},
		"bits of the source":    {withVariants("{name: int4, quantize: {method: none, bits: 4}}"), "the name of the variant says the precision of a source that is quantized: remove bits"},
		"bits that are unknown": {withVariants("{name: student, model: m.onnx, quantize: {method: none, bits: 5}}"), "bits 5: want 4 or 8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v, want no error", err)
			case c.want != "" && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want CodeInvalid with %q", err, c.want)
			}
		})
	}
}

// The precision of a compressed variant is that of its numbers, and says that it is compressed.
func TestPrecisionOfCompressed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{name: s, model: m.onnx}":                                                        "fp32-compressed",
		"{name: s, compress: [{method: low-rank, rank: 2}]}":                              "fp32-compressed",
		"{name: s, compress: [{method: low-rank, rank: 2}], quantize: {method: static}}":  "int8-compressed",
		"{name: s, compress: [{method: low-rank, rank: 2}], quantize: {method: weights}}": "int4-compressed",
		"{name: s, model: m.onnx, quantize: {method: fp16}}":                              "fp16-compressed",
		"{name: s, model: m.onnx, quantize: {method: none}}":                              "int8-compressed",
		"{name: s, model: m.onnx, quantize: {method: none, bits: 4}}":                     "int4-compressed",
	} {
		s, err := load(t, withVariants(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := s.Variants[0].Precision; got != want {
			t.Errorf("%s: precision %s, want %s", text, got, want)
		}
	}
}

// Two variants that are compressed in other ways are two, and lists to exclude keep how they are compressed.
func TestCandidatesOfCompressed(t *testing.T) {
	t.Parallel()
	s, err := load(t, withVariants("{name: a, compress: [{method: low-rank, rank: 2}], quantize: {method: dynamic}}")+
		"tune: {variants: [{name: b, compress: [{method: low-rank, rank: 3}], quantize: {method: dynamic}}, {name: c, model: m.onnx}], exclude: [[head]]}\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range s.Candidates() {
		got = append(got, v.Flow())
	}
	want := []string{
		"{name: a, compress: [{method: low-rank, rank: 2}], quantize: {method: dynamic}}",
		"{name: a-x1, compress: [{method: low-rank, rank: 2}], quantize: {method: dynamic, exclude: [head]}}",
		"{name: b, compress: [{method: low-rank, rank: 3}], quantize: {method: dynamic}}",
		"{name: b-x1, compress: [{method: low-rank, rank: 3}], quantize: {method: dynamic, exclude: [head]}}",
		"{name: c, model: m.onnx}",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A step is named by its method and pattern.
func TestStepNames(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]spec.Compress{
		"prune 2:4": {Method: spec.MethodPrune, Pattern: spec.PatternTwoOfFour}, "low-rank": {Method: spec.MethodLowRank},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
