package accuracy_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The columns of the cases give every figure again, to the last bit, of all cases and of slices.
func TestColumnsRestore(t *testing.T) {
	t.Parallel()
	for _, name := range accuracy.Metrics() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 60
			r := rand.New(rand.NewPCG(2, 3))
			m := metric(t, name)
			reference, engine := sets(r, m, n)
			counter := counted(t, m, reference, engine, 3)
			again, err := accuracy.Restore(m, 7, n, counter.Columns())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := again.Result(), counter.Result(); got != want || got.Cases != n {
				t.Errorf("figures %+v, want %+v of %d cases", got, want, n)
			}
			if got, want := again.Figures(), counter.Figures(); (got == nil) != m.Rate ||
				got != nil && (!reflect.DeepEqual(got.Engine, want.Engine) || got.Drop(0.95) != want.Drop(0.95)) {
				t.Errorf("figures %+v, want %+v", got, want)
			}
			if !reflect.DeepEqual(again.Columns(), counter.Columns()) {
				t.Error("the columns are others than before")
			}
			of := make([]int64, n)
			for i := range of {
				of[i] = int64(i % 2)
			}
			got, err := again.Slices(of)
			want, errWant := counter.Slices(of)
			if err != nil || errWant != nil || len(got) != 2 || got[1].Accuracy != want[1].Accuracy {
				t.Errorf("slices %+v, want %+v; errors %v, %v", got, want, err, errWant)
			}
		})
	}
}

// Columns that cannot be those of so many cases are refused.
func TestColumnsRefused(t *testing.T) {
	t.Parallel()
	of := func(values any) tensor.Tensor {
		var c tensor.Tensor
		var err error
		switch v := values.(type) {
		case []float64:
			c, err = tensor.New(v, int64(len(v)))
		case []int64:
			c, err = tensor.New(v, int64(len(v)))
		case []int32:
			c, err = tensor.New(v, int64(len(v)))
		case []bool:
			c, err = tensor.New(v, int64(len(v)))
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	rates := func(lost, right float64, answers int64) accuracy.Columns {
		return accuracy.Columns{"lost": of([]float64{lost}), "won": of([]float64{0}), "right": of([]float64{right}), "answers": of([]int64{answers})}
	}
	side := func(columns accuracy.Columns) accuracy.Columns {
		both := make(accuracy.Columns)
		both.Add("reference.", columns)
		both.Add("engine.", columns)
		return both
	}
	events := func(entries int64, class int32, hit, label bool) accuracy.Columns {
		return side(accuracy.Columns{"entries": of([]int64{entries}), "several": of([]bool{false}),
			"class": of([]int32{class}), "hit": of([]bool{hit}), "label": of([]bool{label})})
	}
	shared := func(class int32, hits, labelled, answered int64) accuracy.Columns {
		return side(accuracy.Columns{"entries": of([]int64{1}), "class": of([]int32{class}),
			"hits": of([]int64{hits}), "labelled": of([]int64{labelled}), "answered": of([]int64{answered})})
	}
	marks := func(labels, scores int, score float64) accuracy.Columns {
		return side(accuracy.Columns{"labels": of([]int64{int64(labels)}), "score": of(slices.Repeat([]float64{score}, scores)), "label": of(make([]bool, scores))})
	}
	nan := 0.0
	nan /= nan
	boxes := func(detections int64, hits int32, score float64, label int32) accuracy.Columns {
		return side(accuracy.Columns{"detections": of([]int64{detections}),
			"class": of([]int32{2}), "score": of([]float64{score}), "hits": of([]int32{hits}),
			"labels": of([]int64{1}), "labelClass": of([]int32{label}), "spoilt": of([]bool{false})})
	}
	for name, c := range map[string]struct {
		metric  string
		cases   int
		columns accuracy.Columns
		ok      bool
	}{
		"a rate":                    {"top1", 1, rates(0, 1, 1), true},
		"no cases":                  {"top1", 0, rates(0, 1, 1), false},
		"fewer than cases":          {"top1", 2, rates(0, 1, 1), false},
		"more than all":             {"top1", 1, rates(0.5, 1, 1), false},
		"a negative share":          {"top1", 1, rates(-1, 1, 1), false},
		"a share that is none":      {"top1", 1, rates(nan, 1, 1), false},
		"no answers":                {"top1", 1, rates(0, 1, 0), false},
		"no columns":                {"top1", 1, nil, false},
		"another dtype":             {"mae", 1, side(accuracy.Columns{"error": of([]int64{1})}), false},
		"errors":                    {"mae", 1, side(accuracy.Columns{"error": of([]float64{1})}), true},
		"one side":                  {"mae", 1, accuracy.Columns{"engine.error": of([]float64{1})}, false},
		"an event":                  {"f1_macro", 1, events(1, 1, true, true), true},
		"more events than entries":  {"f1_macro", 1, events(0, 1, true, true), false},
		"fewer events":              {"f1_macro", 1, events(1<<40, 1, true, true), false},
		"a negative count":          {"f1_macro", 1, events(-1, 1, true, true), false},
		"a hit of another class":    {"f1_macro", 1, events(1, 1, true, false), false},
		"a class that f1 ignores":   {"f1_binary", 1, events(1, 2, true, true), false},
		"places of a class":         {"miou", 1, shared(3, 2, 5, 4), true},
		"more hits than labels":     {"miou", 1, shared(3, 4, 3, 5), false},
		"more answers than places":  {"miou", 1, shared(3, 2, 5, 6), false},
		"places without a label":    {"miou", 1, shared(3, 0, 0, 0), false},
		"a class below 0":           {"miou", 1, shared(-1, 2, 5, 4), false},
		"more places than any has":  {"miou", 1, shared(3, 2, 1<<60, 4), false},
		"several labels":            {"auc_macro", 1, marks(2, 2, 0.5), true},
		"fewer labels than scores":  {"auc_macro", 1, marks(1, 2, 0.5), false},
		"no labels of a case":       {"auc_macro", 1, marks(0, 0, 0.5), false},
		"a label's score is NaN":    {"auc_macro", 1, marks(2, 2, nan), false},
		"a box":                     {"map", 1, boxes(1, 1<<10-1, 0.5, 2), true},
		"a box of another class":    {"map", 1, boxes(1, 1, 0.5, 3), false},
		"a box without a score":     {"map", 1, boxes(1, 1, nan, 2), false},
		"more boxes than there are": {"map", 1, boxes(2, 1, 0.5, 2), false},
		"more overlaps":             {"map50", 1, boxes(1, 2, 0.5, 2), false},
		"a score that is NaN":       {"auc", 1, side(accuracy.Columns{"score": of([]float64{nan}), "label": of([]bool{true})}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := accuracy.Restore(metric(t, c.metric), 1, c.cases, c.columns)
			if (err == nil) != c.ok || err != nil && registry.CodeOf(err) != registry.CodeInvalid {
				t.Errorf("error %v, want one of code invalid: %t", err, !c.ok)
			}
		})
	}
}
