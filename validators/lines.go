package validators

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
)

// Line is one line of a report: what was found about one thing, in its worst check.
type Line struct {
	Name figure.Line `json:"name"`
	// Verdict is recorded if nothing was judged.
	Verdict evidence.Verdict `json:"verdict"`
	Worst   string           `json:"worst,omitempty"` // the check with the least margin, or without one the reason why it is no pass
	Basis   string           `json:"basis"`           // what the line rests on, or why nothing was judged
	Check   *evidence.Check  `json:"-"`               // the worst check; nil if there is none
}

// Lines returns the lines of a report, in their order.
func Lines(p evidence.ParityReport) (lines []Line) {
	for _, name := range figure.Lines() {
		line := Line{Name: name, Verdict: evidence.VerdictRecorded, Basis: unjudged(name, p)}
		for _, c := range p.Checks {
			if lineOfCheck(c) == name && !c.NotForModel() {
				line.Verdict = stronger(line.Verdict, c)
			}
		}
		worst, ok := worstCheck(name, p.Checks)
		if ok {
			line.Worst, line.Basis, line.Check = checkText(worst, p), basis(name, p), &worst
		}
		for _, r := range p.Reasons {
			if LineOf(r) == name {
				if !ok {
					line.Worst = registry.PlainText(r.Message)
				}
				if line.Verdict == evidence.VerdictPass || line.Verdict == evidence.VerdictRecorded {
					line.Verdict = p.Verdict // no check has it
				}
				break
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// stronger returns the verdict of a line with one more check: a failure decides, then what is not known. A trial that did not run
// leaves a line as it is, because a pass may lack it.
func stronger(have evidence.Verdict, c evidence.Check) evidence.Verdict {
	verdict := c.Verdict
	if c.Trial != evidence.TrialCases && (verdict == evidence.VerdictRecorded || verdict == evidence.VerdictUndecided && c.Trial != evidence.TrialGolden) {
		verdict = evidence.VerdictPass
		if c.Cases == 0 {
			return have
		}
	}
	rank := []evidence.Verdict{evidence.VerdictRecorded, evidence.VerdictPass, evidence.VerdictUndecided, evidence.VerdictFail}
	if slices.Index(rank, verdict) > slices.Index(rank, have) {
		return verdict
	}
	return have
}

func lineOfCheck(c evidence.Check) figure.Line {
	if c.Trial != evidence.TrialCases {
		return cmp.Or(TrialOf(c.Trial).Line, figure.Runs)
	}
	row, _ := figure.Find(c.Figure)
	return cmp.Or(row.Line, figure.EveryCase)
}

// incomparable are the codes of reasons about outputs that no limit measures.
var incomparable = []string{ReasonShape, ReasonNewNaN, ReasonNewInf}

// LineOf returns the line that a reason belongs to.
func LineOf(r evidence.Reason) figure.Line {
	for _, t := range trials {
		if t.Code == r.Code || r.Trial != "" && t.Trial == r.Trial {
			return t.Line
		}
	}
	if slices.Contains(incomparable, r.Code) {
		return figure.EveryCase
	}
	if _, err := accuracy.Find(r.Figure); r.Output == "" && r.Figure != "" && err == nil { // a metric: top1 is a figure of outputs, too
		return figure.Labels
	}
	if row, ok := figure.Find(r.Figure); ok {
		return row.Line
	}
	return figure.Runs
}

// OnePerLine returns one finding for each line, in the order of their first ones: a failure before what is not known, values that
// are not finite or of another shape before errors, and of errors the one that is furthest beyond its limit. The message names the number
// of other outputs. A line is left out if the failure of another one names its fault, and if
// it lacks cases while another one fails.
func (f Findings) OnePerLine() (few Findings) {
	var order []figure.Line
	byLine := make(map[figure.Line]Findings)
	for _, found := range f {
		line := LineOf(found.Reason)
		if _, known := byLine[line]; !known {
			order = append(order, line)
		}
		byLine[line] = append(byLine[line], found)
	}
	for _, line := range order {
		all := byLine[line]
		if instead, there := sameFault[line]; there && fails(byLine[instead]) && !slices.ContainsFunc(all, ofGroups) {
			continue
		}
		worst := slices.MinFunc(all, compareFindings)
		if worst.Verdict != evidence.VerdictFail && worst.Reason.Code == ReasonNotEnough && fails(f) { // more cases do not help where something fails
			continue
		}
		if others := otherOutputs(all, worst); others > 0 {
			worst.Reason.Message += fmt.Sprintf("; %s here, too", registry.Count(others, "more output fails", "more outputs fail"))
		}
		few = append(few, worst)
	}
	return few
}

// otherOutputs counts the outputs that fail beside the one of the worst finding.
func otherOutputs(all Findings, worst Finding) int {
	others := make(map[string]bool)
	if worst.Verdict != evidence.VerdictFail || worst.Reason.Output == "" {
		return 0
	}
	for _, found := range all {
		if of := found.Reason.Output; found.Verdict == worst.Verdict && of != "" && of != worst.Reason.Output {
			others[of] = true
		}
	}
	return len(others)
}

// sameFault are lines that mostly name the fault of another one: errors of single cases are biased where they are large, and labels are lost
// where answers are. The line is left to the table of lines if the other one fails.
var sameFault = map[figure.Line]figure.Line{figure.Tendency: figure.EveryCase, figure.SameAnswers: figure.Labels}

// ofGroups reports whether a finding is about groups of cases, of which labels show nothing.
func ofGroups(f Finding) bool { return f.Reason.Figure == figure.Groups }

// fails reports whether a finding is a failure.
func fails(f Findings) bool {
	return slices.ContainsFunc(f, func(found Finding) bool { return found.Verdict == evidence.VerdictFail })
}

// compareFindings orders findings of one line, the worst first.
func compareFindings(a, b Finding) int {
	if byVerdict := cmp.Compare(slices.Index(order, b.Verdict), slices.Index(order, a.Verdict)); byVerdict != 0 {
		return byVerdict
	}
	return cmp.Compare(excess(a.Reason), excess(b.Reason))
}

// excess is the margin of a reason that a limit is exceeded, which is negative; -Inf for a reason that needs no limit, and 0 for
// others.
func excess(r evidence.Reason) float64 {
	row, ok := figure.Find(r.Figure)
	switch {
	case slices.Contains(incomparable, r.Code):
		return math.Inf(-1)
	case !ok || r.Code != ReasonLimit:
		return 0
	}
	margin := Margin(evidence.Check{Figure: r.Figure, Value: r.Value, Limit: new(r.Limit), AtLeast: row.AtLeast})
	if math.IsNaN(margin) {
		return 0
	}
	return margin
}

// worstCheck returns the check of a line with the least margin; of trials the one with the largest difference.
func worstCheck(name figure.Line, checks evidence.Checks) (worst evidence.Check, ok bool) {
	for _, c := range checks {
		if lineOfCheck(c) != name || c.Trial != evidence.TrialCases && c.Cases == 0 {
			continue
		}
		if !ok || worseCheck(c, worst) {
			worst, ok = c, true
		}
	}
	return worst, ok
}

func worseCheck(c, than evidence.Check) bool {
	if c.Trial == evidence.TrialCases {
		return Margin(c) < Margin(than)
	}
	if fails, failed := c.Verdict == evidence.VerdictFail, than.Verdict == evidence.VerdictFail; fails != failed {
		return fails
	}
	return c.Affected > than.Affected || c.Affected == than.Affected && c.Value > than.Value
}

// checkText describes a check with its limit.
func checkText(c evidence.Check, p evidence.ParityReport) string {
	if c.Trial != evidence.TrialCases {
		switch {
		case c.Value == 0 && c.Affected == 0:
			return "no difference"
		case c.Affected > 0:
			return fmt.Sprintf("%s: %d of %s differ, by at most %.3g", registry.PlainText(c.Name()), c.Affected, registry.Count(c.Cases, "case"), float64(c.Value))
		}
		return fmt.Sprintf("%s: largest difference %.3g", registry.PlainText(c.Name()), float64(c.Value))
	}
	metric := ""
	if p.Accuracy != nil {
		metric = p.Accuracy.Metric
	}
	text := FigureWord(c, metric)
	if c.Output != "" {
		text += " of " + registry.PlainText(c.Output)
	}
	text += " " + ValueText(c, float64(c.Value))
	if c.Low != nil && c.High != nil {
		text += " (" + BoundsText(c) + ")"
	}
	text += ", " + LimitText(c)
	if c.Case != nil {
		text += fmt.Sprintf(", case %d", *c.Case)
	}
	return text
}

// basis describes what a line rests on.
func basis(name figure.Line, p evidence.ParityReport) string {
	switch name {
	case figure.Again, figure.Runs:
		return trialsText(name, p.Checks)
	case figure.Labels:
		if p.Accuracy != nil {
			return registry.Count(p.Accuracy.Cases, "labelled case")
		}
	}
	most := 0
	for _, c := range p.Checks.OfCases() {
		if lineOfCheck(c) == name {
			most = max(most, c.Cases)
		}
	}
	text := registry.Count(most, "case")
	if name == figure.SameAnswers {
		text += "; " + groupsText(p)
	}
	return text
}

// groupsText describes the groups of cases in which answers were compared.
func groupsText(p evidence.ParityReport) string {
	var by []string
	for _, name := range registry.SortedKeys(p.Outputs) {
		if g := p.Outputs[name].Groups; g != nil && g.Count > 0 {
			by = append(by, g.By...)
		}
	}
	slices.Sort(by)
	by = slices.Compact(by)
	if len(by) == 0 {
		return "no groups of cases"
	}
	const named = 4
	text := "groups by " + strings.Join(by[:min(len(by), named)], ", ")
	if more := len(by) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return registry.PlainText(text)
}

// trialsText lists the trials of a line that ran, with their sizes counted, and those that did not.
func trialsText(name figure.Line, checks evidence.Checks) string {
	var ran, not []string
	counts := make(map[evidence.Trial]int)
	for _, c := range checks.Beyond() {
		switch {
		case lineOfCheck(c) != name || c.NotForModel():
		case c.Cases == 0 || c.Verdict == evidence.VerdictUndecided:
			not = append(not, registry.PlainText(c.Name()))
		default:
			if counts[c.Trial]++; counts[c.Trial] == 1 {
				ran = append(ran, string(c.Trial))
			}
		}
	}
	for i, trial := range ran {
		n := counts[evidence.Trial(trial)]
		if ran[i] = strings.ReplaceAll(trial, "_", " "); n > 1 {
			ran[i] += fmt.Sprintf(" (%d runs)", n)
		}
	}
	text := strings.Join(ran, ", ")
	if often := checks.MissedOneIn(); name == figure.Again && often > 0 {
		text += fmt.Sprintf("; would miss a difference in one of %d requests half of the time", often)
	}
	if len(not) > 0 {
		text += "; not run: " + strings.Join(not, ", ")
	}
	return strings.TrimPrefix(text, "; ")
}

// unjudged returns why a line has no check.
func unjudged(name figure.Line, p evidence.ParityReport) string {
	switch {
	case p.Cases.Ran == 0:
		return "no case ran"
	case name == figure.SameAnswers:
		return "no answers judged"
	case name == figure.Labels && !p.Cases.Labelled:
		return "no labels"
	case name == figure.Labels:
		return "labels not used: no limits.accuracy"
	case name == figure.Again || name == figure.Runs:
		return cmp.Or(trialsText(name, p.Checks), "nothing was run beyond the cases")
	case name == figure.Tendency && inQuarters(p):
		return "judged in every case: an offset or factor of a quarter of the values counts four times in its error"
	}
	return "not judged"
}

// inQuarters reports whether an output is judged by quarters of its values, in which a bias counts.
func inQuarters(p evidence.ParityReport) bool {
	return slices.ContainsFunc(p.Checks, func(c evidence.Check) bool { return c.Figure == figure.QuarterError })
}
