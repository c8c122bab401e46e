package export

import (
	"strconv"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// figure is a number as CycloneDX has it, as text; "inf", "-inf" and "nan" are as in reports.
func figure(f evidence.Figure) string {
	text, err := f.MarshalJSON()
	if err != nil {
		return "nan"
	}
	if unquoted, err := strconv.Unquote(string(text)); err == nil {
		return unquoted
	}
	return string(text)
}

// interval is absent without both bounds.
func interval(low, high *evidence.Figure) *cdxInterval {
	if low == nil || high == nil {
		return nil
	}
	return &cdxInterval{figure(*low), figure(*high)}
}

// parityMetrics are the figures of every limit, the accuracy, and that on slices, with their bounds.
func parityMetrics(p *evidence.ParityReport) []cdxMetric {
	metrics := []cdxMetric{}
	for _, c := range p.Checks.OfCases() {
		kind := "parity " + c.Figure
		if c.Output == "" {
			kind = c.Figure
		} else {
			kind += " of " + c.Output
		}
		metrics = append(metrics, cdxMetric{Type: kind, Value: figure(c.Value), Slice: c.Slice, Interval: interval(c.Low, c.High)})
	}
	if a := p.Accuracy; a != nil {
		metrics = append(metrics, cdxMetric{Type: "accuracy " + a.Metric, Value: figure(a.Engine)},
			cdxMetric{Type: "accuracy " + a.Metric + " of the reference", Value: figure(a.Reference)})
	}
	for _, s := range p.Slices {
		metrics = append(metrics, cdxMetric{Type: "accuracy " + s.Accuracy.Metric,
			Value: figure(s.Accuracy.Engine), Slice: s.By + "=" + s.Value, Interval: interval(&s.Low, &s.High)})
	}
	return metrics
}

// latencyMetrics are the latencies in nanoseconds, with their bounds.
func latencyMetrics(p *evidence.PerformanceReport) []cdxMetric {
	whole := func(ns int64) string { return strconv.FormatInt(ns, 10) }
	slice := "batch " + whole(p.Batch)
	metrics := []cdxMetric{
		{Type: "latency p50 in ns", Value: whole(p.P50Ns), Slice: slice}, {Type: "latency p90 in ns", Value: whole(p.P90Ns), Slice: slice},
		{Type: "latency p99 in ns", Value: whole(p.P99Ns), Slice: slice},
	}
	if b := p.Bounds; b != nil {
		metrics[0].Interval = &cdxInterval{whole(b.P50LowNs), upper(b.P50HighNs)}
		metrics[2].Interval = &cdxInterval{whole(b.P99LowNs), upper(b.P99HighNs)}
	}
	return metrics
}

// upper is an upper bound in nanoseconds. Reports have 0 where so few samples prove none.
func upper(ns int64) string {
	if ns == 0 {
		return "inf"
	}
	return strconv.FormatInt(ns, 10)
}
