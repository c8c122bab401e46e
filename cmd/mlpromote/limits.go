package main

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/validators"
)

// limitsText writes limits for people, presets expanded.
func limitsText(l validators.Limits) string {
	rows := [][]string{{"LIMITS OF", "OUTPUT", "", ""}}
	for _, precision := range sortedNames(l.Precisions) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range sortedNames(outputs) {
			rows = append(rows, []string{precision, name, outputText(outputs[name])})
		}
	}
	text := ui.Table(rows)
	if l.Accuracy != nil {
		text += fmt.Sprintf("accuracy: %s may drop by %s\n", l.Accuracy.Metric, percent(l.Accuracy.Drop.Max))
	}
	if t := l.Latency.P50; t != nil {
		text += fmt.Sprintf("latency: p50 at most %s\n", t.MaxNs)
	}
	if t := l.Latency.P99; t != nil {
		text += fmt.Sprintf("latency: p99 at most %s\n", t.MaxNs)
	}
	if r := l.Latency.Regression; r != nil {
		text += fmt.Sprintf("latency: p50 at most %s slower than the engine that is there\n", percent(r.Max))
	}
	return text + fmt.Sprintf("cases: at least %d\n", l.MinCases)
}

func outputText(o validators.OutputLimits) string {
	var parts []string
	add := func(format string, v *float64) {
		if v != nil {
			parts = append(parts, fmt.Sprintf(format, *v))
		}
	}
	add("rtol %g", o.RTol)
	add("atol %g", o.ATol)
	for _, limit := range []struct {
		name string
		min  *validators.AtLeast
	}{{"cosine", o.Cosine}, {"top1", o.Top1}, {"snr dB", o.SNRdB}} {
		if limit.min != nil {
			parts = append(parts, fmt.Sprintf("%s >= %g", limit.name, limit.min.Min))
		}
	}
	if o.MaxAbs != nil {
		parts = append(parts, fmt.Sprintf("max-abs <= %g", o.MaxAbs.Max))
	}
	if o.Where != "" {
		parts = append(parts, "where "+o.Where+" is not 0")
	}
	return strings.Join(parts, ", ")
}
