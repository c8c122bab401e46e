package proving

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

func reportShowCommand(a *program.App) *cobra.Command {
	var environment, engine, through string
	c := &cobra.Command{
		Use:   "show [REF | MODEL [--env ENV]]",
		Short: "Show the proofs of a release's engines on one page",
		Long: `Shows the newest reports of trusted verifiers about every engine: each limit with the measured
value, the bounds that the cases prove, and the margin, which is the unused part of the limit. Then the conclusion for other inputs, the errors of the cases by size, the worst element, checks beyond the cases, and latency compared with the reference
model and of the engine that the next environment had. REF defaults to the last build here.`,
		Example: `  mlpromote report show staging/vision/digits:1.0.0
  mlpromote report show vision/digits --env prod --engine linux-amd64-v1/int8`,
		Args: command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := a.ModelOrReference(c.Context(), i, "report show", environment, args)
				if err != nil {
					return err
				}
				return showReports(c.Context(), a, i, ref, engine, through)
			})
		},
	}
	c.Flags().StringVar(&environment, "env", "", "environment, if a model is given in place of a ref")
	c.Flags().StringVar(&engine, "engine", "", "label of one engine, such as linux-amd64-v1/int8 (default all)")
	c.Flags().StringVar(&through, "through", "", "show the reports of runs through this model server, in place of those on the runtimes")
	return c
}

// shownReports is what report show prints.
type shownReports struct {
	Ref string `json:"ref"`
	// CrossCheck says who checked the reference model's outputs; absent where no builder's provenance says it.
	CrossCheck *evidence.CrossCheck `json:"crossCheck,omitempty"`
	Engines    []shownEngine        `json:"engines"`
}

// shownEngine is an engine with its newest reports.
type shownEngine struct {
	inspection.Engine
	// Margins are those of the checks of the parity report, in their order: the part of what each
	// limit allows that is left.
	Margins []evidence.Figure `json:"margins,omitempty"`
	// Lines are the parts of the parity report that people read as one thing each, with the worst check of each.
	Lines []validators.Line `json:"lines,omitempty"`
}

func showReports(ctx context.Context, a *program.App, i *wiring.Instance, ref registry.Ref, engine, through string) error {
	found, err := inspection.Of(ctx, &i.Registry, ref)
	if err != nil {
		return err
	}
	shown := shownReports{Ref: found.Ref, CrossCheck: found.CrossCheck, Engines: []shownEngine{}}
	var labels []string
	pages := []string{ui.Plain(found.Ref) + "\n" + "reference model: " + crossCheckText(found.CrossCheck) + "\n"}
	for _, e := range found.Engines {
		labels = append(labels, e.Label)
		if engine != "" && engine != e.Label {
			continue
		}
		if through != "" {
			e = e.Through(through)
		}
		shown.Engines = append(shown.Engines, shownEngine{e, margins(e.Parity), linesOf(e.Parity)})
		pages = append(pages, engineReport(e))
	}
	if engine != "" && len(shown.Engines) == 0 {
		return registry.Errorf(registry.CodeNotFound, "--engine %s: the release has no such engine: it has %s", engine, strings.Join(labels, ", "))
	}
	return a.UI.Result(strings.Join(pages, "\n"), shown)
}

func linesOf(p *evidence.ParityReport) []validators.Line {
	if p == nil {
		return nil
	}
	return validators.Lines(*p)
}

func margins(p *evidence.ParityReport) []evidence.Figure {
	if p == nil {
		return nil
	}
	var all []evidence.Figure
	for _, c := range p.Checks.OfCases() {
		all = append(all, evidence.Figure(validators.Margin(c)))
	}
	return all
}

// latencyVerdict is the verdict of a performance report that is no pass, after that of parity; else empty.
func latencyVerdict(l *evidence.PerformanceReport) string {
	if l == nil || l.Verdict == evidence.VerdictPass || l.Verdict == evidence.VerdictRecorded {
		return ""
	}
	return fmt.Sprintf("; latency: %s", l.Verdict)
}

// engineReport is what is known of an engine, on a page.
func engineReport(e inspection.Engine) string {
	p := e.Parity
	if p == nil {
		return ui.Plain(e.Label) + ": no report of a trusted verifier: run mlpromote verify on a machine that meets the target\n"
	}
	text := fmt.Sprintf("%s: %s%s\n", ui.Plain(e.Label), p.Verdict, latencyVerdict(e.Performance)) + linesTable(*p)
	for _, reason := range p.Reasons {
		text += "  " + ui.Plain(reason.Message) + "\n"
	}
	text += "\n"
	text += fmt.Sprintf("  %s ran, %s; %s %s on %s; %s\n", ofCases(p.Cases), p.Cases.Origin, ui.Plain(p.Runtime.Name), ui.Plain(p.Runtime.Version),
		ui.Plain(p.Node.Kind()), p.FinishedOn.UTC().Format("2006-01-02 15:04:05"))
	text += "  " + confidenceText(*p) + "\n\n" + checksTable(p) + provesText(p)
	if a := p.Accuracy; a != nil && a.Program != "" {
		text += fmt.Sprintf("  %s is the mean of the scores that a program of the release gave to %s: %s\n",
			ui.Plain(a.Metric), registry.Count(a.Cases, "case"), ui.Plain(string(a.Program)))
	}
	text += slicesText(p) + errorsText(p) + worstText(p)
	for _, check := range p.Checks.Beyond() {
		text += "  " + trialText(check) + "\n"
	}
	return text + latencyText(e.Performance) + servedText([]judged{{e.Label, e.Parity, e.Performance}})
}
