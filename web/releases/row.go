package releases

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/web/page"
)

// EngineRow is an engine in the list of a release.
type EngineRow struct {
	Label     string
	URL       string
	Digest    page.Digest
	Toolchain string
	Precision string
	Native    bool
	Verdict   page.State
	Closest   margin // the check that is closest to its limit
	Accuracy  string
	Drop      string
	P50, P99  string
	P50Bounds string // empty if the report has none
	P99Bounds string
	Size      string

	p50, p99 int64 // ns; 0: not measured
	bytes    int64 // 0: unknown
}

// row describes an engine with its newest reports.
func row(in Read, e artifact.Engine) EngineRow {
	view := EngineRow{
		Label: e.Label(), URL: page.EngineURL(in.Model, e.Digest, in.environment), Digest: page.DigestOf(e.Digest), Precision: e.Precision, Native: e.NativeCode,
		Toolchain: e.Toolchain.Name + " " + e.Toolchain.Version, Verdict: page.StateOf(page.ClassWait, "not verified"),
	}
	if e.Bytes > 0 {
		view.Size, view.bytes = page.ByteSize(e.Bytes), e.Bytes
	}
	if p := newest[evidence.ParityReport](in.counted, e, evidence.PredicateParity); p != nil {
		view.Verdict = verdictState(p.Verdict)
		for _, m := range margins(p) {
			if m.counted && (!view.Closest.counted || m.share > view.Closest.share) {
				view.Closest = m
			}
		}
		if a := p.Accuracy; a != nil {
			view.Accuracy, view.Drop = registry.PlainText(a.Metric)+" "+validators.AccuracyText(*a, a.Engine)+bounds(p), validators.DropText(*a)
		}
	}
	if p := newest[evidence.PerformanceReport](in.counted, e, evidence.PredicatePerformance); p != nil {
		view.P50, view.P99, view.p50, view.p99 = page.Latency(p.P50Ns), page.Latency(p.P99Ns), p.P50Ns, p.P99Ns
		if b := p.Bounds; b != nil {
			view.P50Bounds, view.P99Bounds = page.LatencyBounds(b.P50LowNs, b.P50HighNs), page.LatencyBounds(b.P99LowNs, b.P99HighNs)
		}
	}
	return view
}

// newest returns the report of a type that finished last, of an engine on its own runtime.
func newest[R any](claims []evidence.Claim, engine artifact.Engine, predicateType string) *R {
	report, _ := newestClaim[R](claims, engine, predicateType)
	return report
}

// newestClaim is newest, with the bundle that has the report.
func newestClaim[R any](claims []evidence.Claim, engine artifact.Engine, predicateType string) (found *R, bundle registry.Digest) {
	var at time.Time
	for _, c := range claims {
		if c.Subject != engine.Digest || c.Statement.PredicateType != predicateType {
			continue
		}
		var head evidence.ReportHead
		report := new(R)
		if registry.DecodeSigned(c.Statement.Predicate, &head) != nil || registry.DecodeSigned(c.Statement.Predicate, report) != nil {
			continue
		}
		if head.Runtime.InPlaceOf(engine) == "" && (found == nil || head.FinishedOn.After(at)) {
			found, at, bundle = report, head.FinishedOn, c.Bundle
		}
	}
	return found, bundle
}

// margin is a check of a report as pages show it.
type margin struct {
	What    string // "max error of probabilities"
	Value   string
	Limit   string // "at most 0.01"
	Bounds  string
	Case    string // the worst one; empty if there is none
	State   page.State
	Margin  string // how much of what the limit allows is left: "17 %"; empty where a share means nothing
	share   float64
	counted bool
}

// margins describes the checks of a report, the one that is closest to its limit first.
func margins(p *evidence.ParityReport) []margin {
	metric := ""
	if p.Accuracy != nil {
		metric = p.Accuracy.Metric
	}
	var all []margin
	for _, c := range p.Checks.OfCases() {
		all = append(all, marginOf(c, metric))
	}
	slices.SortStableFunc(all, func(a, b margin) int { return cmp.Compare(b.share, a.share) })
	return all
}

// marginOf describes a check in the words and units of `mlpromote report show`.
func marginOf(c evidence.Check, metric string) margin {
	what := validators.FigureWord(c, metric)
	if c.Output != "" {
		what += " of " + c.Output
	}
	m := margin{
		What: registry.PlainText(what), Value: validators.ValueText(c, float64(c.Value)), Limit: validators.LimitText(c), State: verdictState(c.Verdict),
	}
	if c.Low != nil && c.High != nil {
		m.Bounds = validators.BoundsText(c)
	}
	if c.Case != nil {
		m.Case = fmt.Sprint(*c.Case)
	}
	if left := validators.Margin(c); !math.IsNaN(left) {
		m.share, m.counted, m.Margin = 1-left, true, validators.MarginText(c)
	}
	return m
}

// bounds are those of the accuracy of an engine, " (98.2 % to 99.6 %)"; empty if the report has none.
func bounds(p *evidence.ParityReport) string {
	for _, c := range p.Checks.OfCases() {
		if c.Figure == "accuracy" && c.Output == "" && c.Slice == "" && c.Low != nil && c.High != nil {
			return " (" + validators.AccuracyText(*p.Accuracy, *c.Low) + " to " + validators.AccuracyText(*p.Accuracy, *c.High) + ")"
		}
	}
	return ""
}

func verdictState(v evidence.Verdict) page.State {
	switch v {
	case evidence.VerdictPass:
		return page.StateOf(page.ClassGood, "pass")
	case evidence.VerdictFail:
		return page.StateOf(page.ClassBad, "fail")
	case evidence.VerdictRecorded:
		return page.StateOf(page.ClassPlain, "recorded")
	}
	return page.StateOf(page.ClassWait, "undecided")
}
