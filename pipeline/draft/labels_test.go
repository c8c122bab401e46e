package draft

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A metric is proposed for an output that the labels fit, and else none: build would refuse it.
func TestMetricFor(t *testing.T) {
	t.Parallel()
	output := func(name string, kind validators.Kind, sizes ...int64) (spec.DraftedKind, validators.TensorInfo) {
		info := validators.TensorInfo{Name: name, DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}}}
		for _, size := range sizes {
			d := validators.Dim{Size: size}
			if size == 0 {
				d.Symbol = "seq"
			}
			info.Shape = append(info.Shape, d)
		}
		return spec.DraftedKind{Output: name, Guess: validators.Guess{Kind: kind}}, info
	}
	type outputs func() ([]spec.DraftedKind, []validators.TensorInfo)
	of := func(kind validators.Kind, sizes ...int64) outputs {
		return func() ([]spec.DraftedKind, []validators.TensorInfo) {
			k, info := output("y", kind, sizes...)
			return []spec.DraftedKind{k}, []validators.TensorInfo{info}
		}
	}
	two := func() ([]spec.DraftedKind, []validators.TensorInfo) {
		a, rows := output("scores", validators.KindScores, 100, 3)
		b, one := output("class", validators.KindScores, 3)
		return []spec.DraftedKind{a, b}, []validators.TensorInfo{rows, one}
	}
	both := func() ([]spec.DraftedKind, []validators.TensorInfo) {
		a, class := output("label", validators.KindClass)
		b, scores := output("probabilities", validators.KindProbability, 2)
		return []spec.DraftedKind{a, b}, []validators.TensorInfo{class, scores}
	}
	rare := func(label, count int) cases.LabelFacts {
		return cases.LabelFacts{Each: 1, Largest: 1, Binary: true, Rare: cases.Rare{Label: label, Count: count, Cases: 1000}}
	}
	for name, c := range map[string]struct {
		of             outputs
		labels         cases.LabelFacts
		metric, output string
	}{
		"a class for each case":          {of(validators.KindScores, 10), cases.LabelFacts{Each: 1, Largest: 9}, "top1", ""},
		"more identities than numbers":   {of(validators.KindScores, 10), cases.LabelFacts{Each: 1, Largest: 10}, "", ""},
		"one label for a row of classes": {of(validators.KindTokens, 1, 50), cases.LabelFacts{Each: 1, Largest: 9}, "top1", ""},
		"one label for open rows":        {of(validators.KindTokens, 0, 50), cases.LabelFacts{Each: 1, Largest: 9}, "", ""},
		"a label for each of open rows":  {of(validators.KindTokens, 0, 50), cases.LabelFacts{Each: 16, Largest: 9}, "top1", ""},
		"boxes as labels of scores":      {of(validators.KindScores, 100, 3), cases.LabelFacts{Each: 20, Largest: 2}, "", ""},
		"the second output":              {two, cases.LabelFacts{Each: 1, Largest: 2}, "top1", "output: class, "},
		"a rare positive":                {both, rare(1, 30), "auc", "output: probabilities, "},
		"a rare positive without scores": {of(validators.KindClass), rare(1, 30), "f1_binary", ""},
		"a rare negative without scores": {of(validators.KindClass), rare(0, 30), "top1", ""},
		"real numbers":                   {of(validators.KindScores, 10), cases.LabelFacts{Real: true, Each: 10}, "", ""},
		"open classes":                   {of(validators.KindScores, 0), cases.LabelFacts{Each: 1, Largest: 9}, "top1", ""},
	} {
		kinds, infos := c.of()
		if metric, output := metricFor(kinds, infos, c.labels); metric != c.metric || output != c.output {
			t.Errorf("%s: %q, %q; want %q, %q", name, metric, output, c.metric, c.output)
		}
	}
}
