package validators_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// rightOf returns the figures of a metric if all answers are the labels.
func rightOf(t *testing.T, m accuracy.Metric, labels []float64) *accuracy.Figures {
	t.Helper()
	counter := accuracy.NewCounter(m, false, 0)
	values, err := tensor.New(labels, int64(len(labels)))
	if err != nil {
		t.Fatal(err)
	}
	if err := counter.AddRight(values); err != nil {
		t.Fatal(err)
	}
	return counter.Figures()
}

// ones returns labels of 0 and so many of 1.
func ones(count, of int) []float64 {
	labels := make([]float64, of)
	for i := range count {
		labels[i] = 1
	}
	return labels
}

// An engine without a difference keeps the default limit on a drop with room for as much again, and too few cases have none.
func TestDefaultDrop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metric string
		cases  int
		labels []float64
		limit  float64
		needs  bool
	}{
		"many cases":              {accuracy.Top1, 5000, nil, 0.01, false},
		"360 cases":               {accuracy.Top1, 360, nil, 0.03, false},
		"as few as prove":         {accuracy.Top1, 74, nil, 0.10, false},
		"too few":                 {accuracy.Top1, 50, nil, 0, true},
		"hardly any":              {accuracy.Top1, 7, nil, 0, false},
		"numbers":                 {accuracy.RMSE, 50, nil, 0.05, false},
		"half of them":            {accuracy.AUC, 400, ones(200, 400), 0.04, false},
		"few of one class":        {accuracy.AUC, 400, ones(20, 400), 0, true},
		"labels that say nothing": {accuracy.AUC, 400, nil, 0, false},
		"a program":               {validators.MetricProgram, 400, nil, 0, false},
	} {
		m, err := accuracy.Find(c.metric)
		if err != nil {
			t.Fatal(err)
		}
		s := validators.Sample{Cases: c.cases}
		if c.labels != nil {
			s.Right = rightOf(t, m, c.labels)
		}
		limit, need := s.DefaultDrop(m, validators.DefaultConfidence)
		if limit != c.limit || (need > 0) != c.needs || need > 0 && need <= c.cases {
			t.Errorf("%s: %v, %d cases; want %v, and a number of cases: %t", name, limit, need, c.limit, c.needs)
		}
		l := validators.Limits{V: validators.LimitsVersion, Confidence: validators.DefaultConfidence, MinCases: 1, Accuracy: &validators.AccuracyLimit{
			Metric: c.metric, Drop: &validators.AtMost{Max: limit}},
			Precisions: map[string]validators.PrecisionLimits{}}
		if err := l.Provable(s); limit > 0 && err != nil {
			t.Errorf("%s: no engine keeps %v: %v", name, limit, err)
		}
	}
}

// Labels that decide nothing are named, with what to write, and with the number of cases that also gives default limits their usual values.
func TestUnusedLabels(t *testing.T) {
	t.Parallel()
	low := map[string]validators.PrecisionLimits{validators.PrecisionFP32: {}}
	for name, c := range map[string]struct {
		metric, output string
		limits         validators.Limits
		cases          int
		labels         []float64
		few, want      string
	}{
		"a limit":       {accuracy.Top1, "", validators.Limits{Accuracy: &validators.AccuracyLimit{Metric: accuracy.Top1}}, 400, nil, "", ""},
		"enough cases":  {accuracy.Top1, "", validators.Limits{}, 400, nil, "", "add accuracy: {metric: top1, drop: {max: 2%}} to limits"},
		"too few cases": {accuracy.Top1, "", validators.Limits{}, 20, nil, "", "20 cases prove too little for a limit on top1; with about 72, add accuracy: {metric: top1, drop: {max: 10%}} to limits"},
		"one number":    {accuracy.Top1, "", validators.Limits{Precisions: low}, 20, nil, "with 480 it is 99 %", "top1; with about 480, add"},
		"a rare label": {accuracy.AUC, "output: p, ", validators.Limits{}, 400, ones(20, 400), "",
			"400 cases prove too little for a limit on auc; with about 1480, add accuracy: {metric: auc, output: p, drop: {max: 10%}} to limits"},
		"a rare label and few": {accuracy.AUC, "output: p, ", validators.Limits{Precisions: low}, 20, ones(1, 20), "with 1480 it is 99 %", "auc; with about 1480, add"},
		"a program":            {validators.MetricProgram, "", validators.Limits{}, 400, nil, "", "set limits.accuracy"},
	} {
		m, err := accuracy.Find(c.metric)
		if err != nil {
			t.Fatal(err)
		}
		labelled := validators.LabelledCases{Labels: "label", Metric: m, Output: c.output, Sample: validators.Sample{Cases: c.cases}}
		if c.labels != nil {
			labelled.Sample.Right = rightOf(t, m, c.labels)
		}
		c.limits.Confidence = validators.DefaultConfidence
		if c.limits.Precisions != nil {
			of, err := validators.DefaultLimits(validators.PrecisionFP32, validators.TensorInfo{Name: "y", DType: tensor.Float32, Kind: validators.KindScores,
				Shape: []validators.Dim{{Symbol: "batch"}, {Size: 10}}}, c.cases)
			if err != nil {
				t.Fatal(err)
			}
			c.limits.Precisions = map[string]validators.PrecisionLimits{validators.PrecisionFP32: {Outputs: map[string]validators.OutputLimits{"y": of}}}
		}
		few, got := c.limits.MoreCases(c.cases, labelled)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") || !strings.Contains(few, c.few) || (few == "") != (c.few == "") {
			t.Errorf("%s: %q and %q, want %q and %q", name, few, got, c.few, c.want)
		}
	}
	none, unused := validators.Limits{Confidence: validators.DefaultConfidence}.MoreCases(400, validators.LabelledCases{})
	if none != "" || unused != "" {
		t.Errorf("without labels: %q and %q, want nothing", none, unused)
	}
}

// More cases than there are cannot be asked for.
func TestProvableMinCases(t *testing.T) {
	t.Parallel()
	l := validators.Limits{V: validators.LimitsVersion, Confidence: validators.DefaultConfidence, MinCases: 300}
	for cases, refused := range map[int]bool{299: true, 300: false} {
		err := l.Provable(validators.Sample{Cases: cases})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "min_cases is 300, and there are 299 cases") {
			t.Errorf("%d cases: %v, want a refusal: %t", cases, err, refused)
		}
	}
}
