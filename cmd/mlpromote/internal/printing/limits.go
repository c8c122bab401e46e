package printing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// Limits writes limits for people, presets expanded.
func Limits(l validators.Limits) string {
	rows := [][]string{{"LIMITS OF", "OUTPUT", "", ""}}
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			rows = append(rows, []string{precision, name, outputText(outputs[name])})
		}
	}
	text := ui.Table(rows)
	text += accuracyText(l.Accuracy)
	if t := l.Latency.P50; t != nil {
		text += fmt.Sprintf("latency: p50 at most %s\n", t.MaxNs)
	}
	if t := l.Latency.P99; t != nil {
		text += fmt.Sprintf("latency: p99 at most %s\n", t.MaxNs)
	}
	if r := l.Latency.Regression; r != nil {
		text += fmt.Sprintf("latency: p50 at most %s slower than the engine that is there\n", Percent(r.Max))
	}
	if l.ExactRepeats() {
		text += "consistency: two runs of the same cases give the same bytes\n"
	}
	if c := l.Consistency; c != nil && c.Jitter == validators.JitterLimits {
		text += "consistency: two runs of the same cases may differ within the limits of outputs\n"
	}
	if c := l.Consistency; c != nil && c.Required {
		text += "consistency: every check has run\n"
	}
	if runs := l.RepeatedRuns(); runs > 0 {
		text += fmt.Sprintf("consistency: %s, which miss a difference in one of %d requests half of the time\n", registry.Count(runs, "repeated run"), l.Consistency.Rare)
	}
	text += fmt.Sprintf("cases: at least %d\n", l.MinCases)
	if l.Confidence > 0 {
		text += fmt.Sprintf("confidence of rates: %s\n", Percent(l.Confidence))
	}
	return text
}

// accuracyText is a line for each limit on accuracy.
func accuracyText(a *validators.AccuracyLimit) string {
	if a == nil {
		return ""
	}
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, "accuracy: "+a.Metric+" "+fmt.Sprintf(format, args...)+"\n")
	}
	drops, below := "may drop by %s", "at most %s below the present engine's"
	if validators.LessIsBetter(a.Metric) {
		drops, below = "may be larger by %s of the reference's", "at most %s above the present engine's"
	}
	percent := Percent
	if a.Metric == validators.MetricProgram { // its scores have a scale of their own
		percent = func(v float64) string { return fmt.Sprintf("%g", v) }
	}
	if a.Drop != nil {
		add(drops, percent(a.Drop.Max))
	}
	if a.Regression != nil {
		add(below, percent(a.Regression.Max))
	}
	if a.Min != nil {
		add("of the engine at least %s", percent(a.Min.Min))
	}
	if a.Max != nil {
		add("of the engine at most %g", a.Max.Max)
	}
	if s := a.Slices; s != nil {
		add("on each slice by %s", s.By)
		if s.Min != nil {
			add("of the engine at least %s on each slice", percent(s.Min.Min))
		}
		if s.Max != nil {
			add("of the engine at most %g on each slice", s.Max.Max)
		}
		if s.Drop != nil {
			add(drops+" on each slice", percent(s.Drop.Max))
		}
	}
	if a.Relative != nil {
		add("of the engine at least %s of the reference's", percent(a.Relative.Min))
	}
	return strings.Join(lines, "")
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
	rows := figure.OfOutputs()
	slices.SortStableFunc(rows, func(a, b figure.Row) int { return cmp.Compare(boundOrder(a), boundOrder(b)) })
	for _, row := range rows {
		if limit, there := o.Bound(row); there {
			parts = append(parts, boundText(row, limit))
		}
	}
	if o.PerChannel != nil && *o.PerChannel {
		parts = append(parts, "per channel")
	}
	if o.Where != "" {
		parts = append(parts, "where "+o.Where+" is not 0")
	}
	return strings.Join(parts, ", ")
}

// boundOrder puts what must be large before errors, and shares before decibels.
func boundOrder(row figure.Row) int {
	switch {
	case !row.AtLeast:
		return 2
	case row.Unit == figure.Decibels:
		return 1
	}
	return 0
}

// boundText is a limit on a figure: "snr dB >= 12".
func boundText(row figure.Row, limit float64) string {
	name, sign := row.Key, "<="
	if row.Unit == figure.Decibels {
		name += " dB"
	}
	if row.AtLeast {
		sign = ">="
	}
	return fmt.Sprintf("%s %s %g", name, sign, limit)
}
