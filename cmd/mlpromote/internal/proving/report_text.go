package proving

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// ofCases is how many of the cases ran.
func ofCases(c evidence.CasesRun) string {
	if c.Ran == c.Count {
		return registry.Count(c.Ran, "case")
	}
	return fmt.Sprintf("%d of %s", c.Ran, registry.Count(c.Count, "case"))
}

// confidenceText is the confidence of bounds.
func confidenceText(p evidence.ParityReport) string {
	text := fmt.Sprintf("bounds at %s confidence", validators.ShareText(float64(p.Confidence)))
	if p.Attempts > 1 {
		limits := 1 - (1-float64(p.Confidence))*float64(p.Attempts)
		text += fmt.Sprintf(": %s in %s", validators.ShareText(limits), registry.Count(p.Attempts, "attempt"))
	}
	return text
}

// linesTable has a row for each line of a report.
func linesTable(p evidence.ParityReport) string {
	rows := [][]string{{"LINE", "VERDICT", "WORST", "JUDGED ON"}}
	for _, line := range validators.Lines(p) {
		verdict := line.Verdict
		if verdict == evidence.VerdictRecorded {
			verdict = ""
		}
		rows = append(rows, []string{string(line.Name), printing.Verdict(verdict), ui.Dash(line.Worst), ui.Plain(line.Basis)})
	}
	return ui.TableBehind("  ", rows)
}

// checksTable has a row for each limit.
func checksTable(p *evidence.ParityReport) string {
	rows := [][]string{{"OUTPUT", "KIND", "FIGURE", "VALUE", "BOUNDS", "LIMIT", "MARGIN", "CASES", "WORST", "VERDICT"}}
	for _, c := range p.Checks.OfCases() {
		worst := "-"
		if c.Case != nil {
			worst = fmt.Sprintf("case %d", *c.Case)
		}
		rows = append(rows, []string{ui.Dash(c.Output), ui.Dash(p.Outputs[c.Output].Kind),
			validators.FigureWord(c, metricOf(p)), validators.ValueText(c, float64(c.Value)),
			validators.BoundsText(c), validators.LimitText(c), validators.MarginText(c), fmt.Sprint(c.Cases), worst, printing.Verdict(c.Verdict)})
	}
	return ui.TableBehind("  ", rows)
}

// metricOf is the metric of the accuracy in a report; empty if there is none.
func metricOf(p *evidence.ParityReport) string {
	if p.Accuracy == nil {
		return ""
	}
	return p.Accuracy.Metric
}

// slicesText is a table of the accuracy on slices of the cases.
func slicesText(p *evidence.ParityReport) string {
	if len(p.Slices) == 0 {
		return ""
	}
	rows := [][]string{{"SLICE", "CASES", p.Slices[0].Accuracy.Metric, "BOUNDS", "REFERENCE"}}
	for _, s := range p.Slices {
		rows = append(rows, []string{s.By + "=" + s.Value, fmt.Sprint(s.Accuracy.Cases), validators.AccuracyText(s.Accuracy, s.Accuracy.Engine),
			validators.AccuracyText(s.Accuracy, s.Low) + " to " + validators.AccuracyText(s.Accuracy, s.High),
			validators.AccuracyText(s.Accuracy, s.Accuracy.Reference)})
	}
	return "\n" + ui.TableBehind("  ", rows) + "\n"
}

// provesText is what limits that held on every case say of other inputs.
func provesText(p *evidence.ParityReport) string {
	for _, c := range p.Checks.OfCases() {
		if c.Proves != nil {
			return fmt.Sprintf("  %s and none beyond a limit that holds for each case: at most %s of inputs like these are, for each such limit\n",
				registry.Count(c.Cases, "case"), validators.ShareText(math.Ceil(float64(*c.Proves)*1e4)/1e4))
		}
	}
	return ""
}

// decadeNames are the ranges of a histogram of errors.
var decadeNames = []string{"below 1e-8", "1e-8", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "0.01", "0.1", "1 and above"}

// errorsText counts the cases by the size of their errors: a line for each output.
func errorsText(p *evidence.ParityReport) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(p.Outputs)) {
		var parts []string
		for decade, count := range p.Outputs[name].CaseErrors {
			if count > 0 && decade < len(decadeNames) {
				parts = append(parts, fmt.Sprintf("%s: %d", decadeNames[decade], count))
			}
		}
		if prefix := p.Outputs[name].Prefix; prefix != nil {
			text += fmt.Sprintf("  %s, longest common prefix with the reference model's tokens, mean of the cases: %s\n",
				ui.Plain(name), printing.Percent(float64(*prefix)))
		}
		if fill := p.Outputs[name].Fill; fill > 0 {
			text += fmt.Sprintf("  %s, fill values are left out: magnitudes of %.6g and above\n", ui.Plain(name), float64(fill))
		}
		if quarters := p.Outputs[name].Quarters; quarters != nil {
			text += fmt.Sprintf("  %s, relative error by size of the reference's values: %s\n", ui.Plain(name), validators.QuartersText(*quarters))
		}
		if len(parts) > 0 {
			text += fmt.Sprintf("  %s, cases by their error / spread, from: %s\n", ui.Plain(name), strings.Join(parts, ", "))
		}
	}
	return text
}

// worstText is the element that differs most, of each output.
func worstText(p *evidence.ParityReport) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(p.Outputs)) {
		if w := p.Outputs[name].Worst; w != nil {
			text += fmt.Sprintf("  %s, worst element: case %d at %v, reference model %.6g, engine %.6g\n",
				ui.Plain(name), w.Case, w.Index, float64(w.Reference), float64(w.Engine))
		}
	}
	return text
}

// trialText is the result of a trial beyond the cases.
func trialText(p evidence.Check) string {
	text := ui.Plain("consistency "+p.Name()) + ": " + string(p.Verdict)
	if p.Trial == evidence.TrialPlainLoad {
		text = fmt.Sprintf("without its load profile: %s on %s", p.Verdict, registry.Count(p.Cases, "case"))
		if p.Message == "" {
			return text
		}
	}
	switch {
	case p.Verdict == evidence.VerdictFail && p.Trial == evidence.TrialGolden && p.Affected == 0:
		return text + ", " + ui.Plain(p.Message)
	case p.Verdict == evidence.VerdictFail && p.Trial != evidence.TrialPlainLoad:
		return text + fmt.Sprintf(", %s, largest difference %.3g", registry.Count(p.Cases, "case"), float64(p.Value)) // the reasons say why
	case p.Message != "":
		return text + ", " + ui.Plain(p.Message)
	case p.Affected > 0:
		return text + fmt.Sprintf(", %d of %s differ, by at most %.3g", p.Affected, registry.Count(p.Cases, "case"), float64(p.Value))
	case p.Cases == 0:
		return text + ", it did not run"
	case p.Value > 0:
		return text + fmt.Sprintf(", %s, largest difference %.3g", registry.Count(p.Cases, "case"), float64(p.Value))
	}
	return text + ", " + registry.Count(p.Cases, "case") + ", no difference"
}

// latencyText is a table of latencies, with the ratio of the engine's p50 to each.
func latencyText(l *evidence.PerformanceReport) string {
	if l == nil {
		return ""
	}
	rows := [][]string{{"LATENCY: " + string(l.Verdict), "P50", "P99", "PER SECOND", "ENGINE P50 / THIS"}}
	for _, of := range []struct {
		name string
		*evidence.Latency
	}{{"engine", &l.Latency}, {"reference model", l.ReferenceLatency}} {
		if of.Latency == nil {
			continue
		}
		ratio := "-"
		if of.Latency != &l.Latency && of.P50Ns > 0 {
			ratio = fmt.Sprintf("%.2f", float64(l.P50Ns)/float64(of.P50Ns))
		}
		rows = append(rows, []string{of.name, printing.Duration(of.P50Ns), printing.Duration(of.P99Ns), fmt.Sprintf("%.0f", of.PerSecond), ratio})
	}
	text := "\n" + ui.TableBehind("  ", rows)
	if r := l.Ratio; r != nil {
		text += fmt.Sprintf("  p50 is %.3g times the p50 of the engine that %s had, between %.3g and %.3g; "+
			"beside itself, between %.3g and %.3g (release %s)\n",
			float64(r.Ratio), ui.Plain(r.Environment), float64(r.Low), float64(r.High), float64(r.SameLow), float64(r.SameHigh), ui.Plain(r.Release["sha256"]))
	}
	text += costText(l) + fitnessText(l.Fitness)
	for _, reason := range l.Reasons {
		text += "  " + ui.Plain(reason.Message) + "\n"
	}
	return text
}

// costText is how many runs there were, and what measuring took.
func costText(l *evidence.PerformanceReport) string {
	if l.TookNs == 0 {
		return ""
	}
	return fmt.Sprintf("  %s in a budget of %s; measuring the latency of all engines took %s\n",
		registry.Count(l.Samples, "run"), ui.Seconds(time.Duration(l.BudgetNs)), ui.Seconds(time.Duration(l.TookNs)))
}

// fitnessText is what the machine did meanwhile.
func fitnessText(f *evidence.Fitness) string {
	if f == nil {
		return ""
	}
	var said []string
	if f.Steal != nil {
		said = append(said, fmt.Sprintf("other virtual machines had %.1f %% of the time that processors wanted", 100*float64(*f.Steal)))
	}
	if f.MHzBefore > 0 {
		said = append(said, fmt.Sprintf("processors went from %d to %d MHz", f.MHzBefore, f.MHzAfter))
	}
	if f.Emulated != "" {
		said = append(said, ui.Plain(f.Emulated))
	}
	if len(said) == 0 {
		return ""
	}
	return "  machine: " + strings.Join(said, "; ") + "\n"
}
