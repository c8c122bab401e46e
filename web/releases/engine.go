package releases

import (
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/web/chart"
	"mlpromote.dev/mlpromote/web/page"
)

// line is a line of the parity report.
type line struct {
	Name, Worst, Basis string
	State              page.State
}

// engineView is the page of an engine.
type engineView struct {
	EngineRow
	Model, ModelURL string
	Release         string
	ReleaseURL      string
	Environment     string
	Target          []page.Fact
	Made            []page.Fact
	Lines           []line
	Checks          []margin
	Ran             []page.Fact // under which conditions the parity report was made
	Reasons         []string
	Slices          []page.Fact
	Worst           []worst         // of each output, the element that differs most
	Errors          []template.HTML // charts, made by package chart from numbers and escaped names
	Latency         template.HTML
	Commands        []page.Command
	Evidence        []evidenceRow
	Ignored         []page.Ignored
	Quarantined     []quarantine
	Provenance      []branch
	Derivation      []branch
	NoSources       string  // why no inputs are shown; empty if they are, or there are none
	Shifted         bool    // it is known which classes shifted
	Shifts          []shift // those that did
	Taken           bool    // they say which class was answered

	figures *namedFigures // of the parity report; nil if it names none
}

// namedFigures are the per-case figures that a report names.
type namedFigures struct {
	bundle registry.Digest
	file   *evidence.CaseFigures
}

// worst is the element of an output that differs most from the reference.
type worst struct {
	Output, Case, Index, Reference, Engine string
	Inputs                                 []input // of the case, if the reader may see them

	number int
}

// EnginePage is the page of an engine. Errors: CodeNotFound if no release has it; errors of the registry.
func EnginePage(config *page.Config, r *http.Request, model string, d registry.Digest) (page.Answer, error) {
	var in Read
	ctx, query := r.Context(), r.URL.Query()
	_, environment, err := FindPlace(ctx, config.Registry, query.Get("environment"), func(name string) (err error) {
		in, err = releaseOf(config.Registry, r, name, model, d)
		return err
	})
	if err != nil {
		return page.Answer{}, err
	}
	e, _ := in.Engine(d)
	view := engineView{
		EngineRow: row(in, e), Model: model, ModelURL: page.ModelURL(model), Release: in.Tag(), ReleaseURL: page.ReleaseURL(model, in.Digest, environment),
		Environment: environment, Target: targetFacts(e.Target), Made: madeFacts(e), Derivation: derivation(in, e),
	}
	var files []artifact.File
	if config.Content != nil {
		if files, err = config.Content.Files(ctx, registry.Repository(environment, model), d); err != nil && !registry.HasCode(err, registry.CodeNotFound) {
			return page.Answer{}, err
		}
	}
	view.Commands, view.Provenance = snippets(config, r, in, e, files), provenanceTree(config.Now, in, e, files)
	for _, i := range in.ignored.Ignored {
		view.Ignored = append(view.Ignored, page.Ignored{Bundle: page.DigestOf(i.Bundle), Reason: i.Reason})
	}
	for _, c := range evidenceRows(config.Now, in) {
		if c.Subject == e.Label() {
			c.Subject = "" // that of the page
			view.Evidence = append(view.Evidence, c)
		}
	}
	for _, c := range evidence.Quarantines(in.Release, in.Claims, d) {
		view.Quarantined = append(view.Quarantined, quarantine{e.Label(), registry.PlainText(c.Reason()), signer(c)})
	}
	if p, bundle := newestClaim[evidence.ParityReport](in.counted, e, evidence.PredicateParity); p != nil {
		view.parity(p, config.Now)
		if p.CaseFigures != nil && len(p.CaseFigures.Digest) > 0 && p.Accuracy != nil {
			view.figures = &namedFigures{bundle, p.CaseFigures}
		}
		if err := addCases(config, r, &view, in, e, files); err != nil {
			return page.Answer{}, err
		}
	}
	view.Ran = append(view.Ran, throughServers(in.counted, e)...)
	if p := newest[evidence.PerformanceReport](in.counted, e, evidence.PredicatePerformance); p != nil {
		view.Latency = latencyChart(p)
	}
	return page.Answer{
		Template: "engine", Title: e.Label() + " of " + model + " " + in.Tag(), Nav: "Models", Body: view,
		API: page.ModelAPI(model, "engine", "environment", environment, "digest", string(d)),
	}, nil
}

// parity adds what a parity report says.
func (view *engineView) parity(p *evidence.ParityReport, now storage.Clock) {
	for _, of := range validators.Lines(*p) {
		state := verdictState(of.Verdict)
		if of.Verdict == evidence.VerdictRecorded {
			state = page.StateOf(page.ClassPlain, "not judged")
		}
		view.Lines = append(view.Lines, line{string(of.Name), registry.PlainText(of.Worst), of.Basis, state})
	}
	view.Checks = margins(p)
	for _, reason := range p.Reasons {
		view.Reasons = append(view.Reasons, registry.PlainText(reason.Message))
	}
	view.Ran = []page.Fact{
		{Name: "Cases", Text: fmt.Sprintf("%d of %d, %s", p.Cases.Ran, p.Cases.Count, registry.PlainText(p.Cases.Origin))},
		{Name: "Machine", Text: registry.PlainText(p.Node.Kind())},
		{Name: "Runtime", Text: registry.PlainText(p.Runtime.Name + " " + p.Runtime.Version)},
		{Name: "Finished", Text: page.MomentOf(now, p.FinishedOn).Absolute},
	}
	if p.Confidence > 0 {
		view.Ran = append(view.Ran, page.Fact{Name: "Confidence", Text: validators.ShareText(float64(p.Confidence))})
	}
	for _, slice := range p.Slices {
		view.Slices = append(view.Slices, page.Fact{
			Name: registry.PlainText(slice.By + " " + slice.Value),
			Text: fmt.Sprintf("%s %s (%s to %s)", registry.PlainText(slice.Accuracy.Metric), validators.AccuracyText(slice.Accuracy, slice.Accuracy.Engine),
				validators.AccuracyText(slice.Accuracy, slice.Low), validators.AccuracyText(slice.Accuracy, slice.High)),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Outputs)) {
		if q := p.Outputs[name].Quarters; q != nil {
			view.Ran = append(view.Ran, page.Fact{Name: "Relative error of " + registry.PlainText(name), Text: validators.QuartersText(*q)})
		}
		if w := p.Outputs[name].Worst; w != nil {
			view.Worst = append(view.Worst, worst{
				Output: registry.PlainText(name), Case: fmt.Sprint(w.Case), Index: fmt.Sprint(w.Index),
				Reference: fmt.Sprintf("%.6g", float64(w.Reference)), Engine: fmt.Sprintf("%.6g", float64(w.Engine)), number: w.Case,
			})
		}
		if counts := p.Outputs[name].CaseErrors; len(counts) > 0 {
			view.Errors = append(view.Errors, errorChart(name, counts))
		}
	}
}

// throughServers has the newest verdict of each model server that ran the engine in place of its runtime.
func throughServers(claims []evidence.Claim, e artifact.Engine) []page.Fact {
	heads := make(map[string]evidence.ReportHead)
	for _, c := range claims {
		var head evidence.ReportHead
		if c.Subject != e.Digest || c.Statement.PredicateType != evidence.PredicateParity || registry.DecodeSigned(c.Statement.Predicate, &head) != nil {
			continue
		}
		if server := head.Runtime.InPlaceOf(e); server != "" && !head.FinishedOn.Before(heads[server].FinishedOn) {
			heads[server] = head
		}
	}
	var facts []page.Fact
	for _, server := range registry.SortedKeys(heads) {
		head := heads[server]
		facts = append(facts, page.Fact{Name: registry.PlainText("Through " + server), Text: registry.PlainText(string(head.Verdict) + ", version " + head.Runtime.Version)})
	}
	return facts
}

// errorChart shows how many cases have an error of which size. The first decade is below 1e-8, the last 1 and
// above.
func errorChart(output string, counts []int) template.HTML {
	c := chart.Bars{
		Title:       "Error of the cases in " + registry.PlainText(output),
		Description: "How many cases have which root mean square error, relative to the spread of the reference.",
		Unit:        "cases",
	}
	for i, n := range counts {
		label := fmt.Sprintf("1e%d", i-9)
		switch i {
		case 0:
			label = "< 1e-8"
		case len(counts) - 1:
			label = "≥ 1"
		}
		c.Rows = append(c.Rows, chart.Row{Label: label, Value: float64(n), Text: fmt.Sprint(n)})
	}
	return c.HTML()
}

// latencyChart shows quantiles of the engine beside those of the reference and of the engine that it would replace.
func latencyChart(p *evidence.PerformanceReport) template.HTML {
	c := chart.Bars{
		Title:       "Latency of one run",
		Description: fmt.Sprintf("Quantiles of %d samples with batches of %d.", p.Samples, p.Batch), Unit: "time",
	}
	add := func(who string, l *evidence.Latency) {
		if l == nil {
			return
		}
		for _, q := range []struct {
			name string
			ns   int64
		}{{"p50", l.P50Ns}, {"p90", l.P90Ns}, {"p99", l.P99Ns}} {
			c.Rows = append(c.Rows, chart.Row{Label: who + " " + q.name, Value: float64(q.ns), Text: page.Latency(q.ns)})
		}
	}
	add("this engine", &p.Latency)
	add("reference", p.ReferenceLatency)
	return c.HTML()
}

// targetFacts describes what an engine requires, in words.
func targetFacts(t artifact.Target) []page.Fact {
	cpu := t.CPU.Arch
	if t.CPU.Level != "" {
		cpu += " from level " + t.CPU.Level
	}
	if len(t.CPU.Features) > 0 {
		cpu += " with " + strings.Join(t.CPU.Features, ", ")
	}
	facts := []page.Fact{{Name: "System", Text: t.OS}, {Name: "Processor", Text: cpu}}
	if t.Accelerator != nil {
		facts = append(facts, page.Fact{Name: "Accelerator", Text: t.Accelerator.String()})
		facts = append(facts, page.Fact{Name: "Tied to", Text: compatibility(t.Compatibility)})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Runtimes)) {
		c := t.Runtimes[name]
		facts = append(facts, page.Fact{Name: "Runtime", Text: name + " " + c.String()})
	}
	if len(t.RequiredNodeTypes) > 0 {
		facts = append(facts, page.Fact{Name: "Proven on", Text: strings.Join(t.RequiredNodeTypes, ", ")})
	}
	for i := range facts {
		facts[i].Text = registry.PlainText(facts[i].Text)
	}
	return facts
}

// compatibility says how far a device may differ from the one that an engine was compiled on.
func compatibility(c artifact.Compatibility) string {
	switch c {
	case artifact.CompatibilityComputeCapability:
		return "any product of the same architecture"
	case artifact.CompatibilityVersionCompatible:
		return "this architecture of the vendor, or a later one"
	}
	return "exactly this product, architecture and MIG profile"
}

func madeFacts(e artifact.Engine) []page.Fact {
	native := "none"
	if e.NativeCode {
		native = "yes: it runs with the rights of the process that loads it"
	}
	facts := []page.Fact{
		{Name: "Engine", Digest: page.DigestOf(e.Digest)},
		{Name: "Toolchain", Text: registry.PlainText(e.Toolchain.Name + " " + e.Toolchain.Version), Digest: page.DigestOf(e.Toolchain.Lock)},
		{Name: "Precision", Text: registry.PlainText(e.Precision + " (variant " + e.Variant + ")")},
		{Name: "Native code", Text: native},
	}
	for _, o := range e.Operators {
		facts = append(facts, page.Fact{Name: "Operator library", Text: registry.PlainText(o.Path), Digest: page.DigestOf(o.Digest)})
	}
	return append(facts,
		page.Fact{Name: "Reference model", Digest: page.DigestOf(e.Reference)}, page.Fact{Name: "Sources", Digest: page.DigestOf(e.Sources)},
		page.Fact{Name: "Limits", Digest: page.DigestOf(e.Limits)}, page.Fact{Name: "Interface", Digest: page.DigestOf(e.Interface)})
}
