package proving

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// columnsPage explains the columns of the tables of engines.
const columnsPage = "docs/how-to/reports.md explains the columns"

// judged is an engine with its newest reports, nil if it has none.
type judged struct {
	label       string
	parity      *evidence.ParityReport
	performance *evidence.PerformanceReport
}

// latency is the verdict on latencies; empty if no limit asks for one.
func (j judged) latency() evidence.Verdict {
	if j.performance == nil || j.performance.Verdict == evidence.VerdictRecorded {
		return ""
	}
	return j.performance.Verdict
}

// verdict is the verdict of both reports together; empty without a report.
func (j judged) verdict() evidence.Verdict {
	switch {
	case j.parity == nil:
		return ""
	case j.parity.Verdict == evidence.VerdictPass && j.latency() != "":
		return j.latency()
	}
	return j.parity.Verdict
}

// judgedTable has a row for each engine, with the margin of each line of its report.
func judgedTable(engines []judged) string {
	header := []string{"", "ENGINE", "VERDICT"}
	for _, line := range figure.Lines() {
		header = append(header, strings.ToUpper(string(line)))
	}
	timed := slices.ContainsFunc(engines, func(j judged) bool { return j.latency() != "" })
	if timed {
		header = append(header, "LATENCY")
	}
	rows := [][]string{header}
	for _, j := range engines {
		row := []string{printing.Tone(j.verdict()).Sign(), j.label, printing.Verdict(j.verdict())}
		for n := range figure.Lines() {
			row = append(row, lineCell(j.parity, n))
		}
		if timed {
			row = append(row, ui.Dash(printing.Tone(j.latency()).Sign()))
		}
		rows = append(rows, row)
	}
	return ui.Table(rows)
}

// lineCell is the margin of a line that passes by a limit, and else the sign of its verdict.
func lineCell(p *evidence.ParityReport, n int) string {
	if p == nil {
		return "-"
	}
	line := validators.Lines(*p)[n]
	if c := line.Check; line.Verdict == evidence.VerdictPass && c != nil && c.Trial == evidence.TrialCases && validators.Margin(*c) >= 0 {
		return validators.MarginText(*c)
	}
	return ui.Dash(printing.Tone(line.Verdict).Sign())
}

// measuredTable has a row for each engine, behind that of the reference model: the limit with the smallest margin, as brief writes
// it, the metric on the labels, and latencies.
func measuredTable(engines []judged, brief func(evidence.ParityReport) string) string {
	metric := ""
	reference := -1 // an engine whose reports have the reference model's figures: all engines of a verification share them
	for i, j := range engines {
		if j.parity != nil && j.parity.Accuracy != nil {
			metric = cmp.Or(metric, j.parity.Accuracy.Metric)
		}
		if reference < 0 && j.parity != nil && j.performance != nil {
			reference = i
		}
	}
	rows := [][]string{measuredRow("ENGINE", "SMALLEST MARGIN", metric, strings.ToUpper(metric), "P50", "P99")}
	if reference >= 0 {
		j := engines[reference]
		p50, p99 := latencyCells(j.performance.ReferenceLatency)
		rows = append(rows, measuredRow("reference model", "-", metric,
			accuracyCell(j.parity, func(a evidence.Accuracy) evidence.Figure { return a.Reference }), p50, p99))
	}
	for _, j := range engines {
		margin, p50, p99 := "-", "-", "-"
		if j.parity != nil {
			margin = ui.Dash(brief(*j.parity))
		}
		if j.performance != nil {
			p50, p99 = latencyCells(&j.performance.Latency)
		}
		rows = append(rows, measuredRow(j.label, margin, metric,
			accuracyCell(j.parity, func(a evidence.Accuracy) evidence.Figure { return a.Engine }), p50, p99))
	}
	return ui.Table(rows)
}

// measuredRow leaves out the cell of the metric if there is none.
func measuredRow(label, margin, metric, accuracy, p50, p99 string) []string {
	if metric == "" {
		return []string{label, margin, p50, p99}
	}
	return []string{label, margin, accuracy, p50, p99}
}

func accuracyCell(p *evidence.ParityReport, of func(evidence.Accuracy) evidence.Figure) string {
	if p == nil || p.Accuracy == nil {
		return "-"
	}
	return validators.AccuracyText(*p.Accuracy, of(*p.Accuracy))
}

func latencyCells(l *evidence.Latency) (p50, p99 string) {
	if l == nil || l.Samples == 0 {
		return "-", "-"
	}
	return printing.Duration(l.P50Ns), printing.Duration(l.P99Ns)
}

// marginText is the limit with the smallest margin of a report that passes. Of another one it is how far beyond its limit the engine
// is: the failure has its figure.
func marginText(p evidence.ParityReport) string {
	if p.Verdict != evidence.VerdictPass {
		return excessText(p)
	}
	tightest, ok := validators.Tightest(p.Checks)
	if !ok {
		return ""
	}
	return validators.MarginText(tightest) + ": " + validators.BriefText(tightest, metricOf(&p))
}

// excessText is how many times the largest part of a limit was used, and of which figure.
func excessText(p evidence.ParityReport) string {
	measured := slices.DeleteFunc(p.Checks.OfCases(), func(c evidence.Check) bool {
		return math.IsInf(validators.Margin(c), 0) || math.IsNaN(validators.Margin(c))
	})
	worst, ok := validators.Tightest(measured)
	if !ok || validators.Margin(worst) >= 0 { // what fails is no such limit
		return ""
	}
	text := validators.MarginText(worst) + ": " + validators.FigureWord(worst, metricOf(&p))
	if worst.Output != "" {
		text += " of " + worst.Output
	}
	return text
}

// marginOrReason is marginText, or the reason why a report is no pass.
func marginOrReason(p evidence.ParityReport) string {
	if p.Verdict != evidence.VerdictPass {
		return whyNot(p.ReportHead)
	}
	return marginText(p)
}
