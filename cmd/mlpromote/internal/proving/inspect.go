package proving

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

func inspectCommand(a *program.App) *cobra.Command {
	var environment string
	c := &cobra.Command{
		Use:   "inspect [REF | MODEL [--env ENV]]",
		Short: "Show a release, its engines and the evidence for them",
		Long: `Shows the content of a release, the results of its engines in their newest reports, which
quarantines stand, and who approved it. REF defaults to the last build here.`,
		Example: `  mlpromote inspect prod/vision/digits:1.0.0
  mlpromote inspect vision/digits --env prod`,
		Args: command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := a.ModelOrReference(c.Context(), i, "inspect", environment, args)
				if err != nil {
					return err
				}
				found, err := inspection.Of(c.Context(), &i.Registry, ref)
				if err != nil {
					return err
				}
				found.Approvals = i.Envs.Approvals(found.Release, found.Claims, clock.Now())
				found.Names = namesIn(c.Context(), i, ref.Environment, found.Release)
				if found.NodesGet, err = nodesGet(c.Context(), i, ref.Environment, found.Release); err != nil {
					return err
				}
				return a.UI.Result(inspectText(found), found)
			})
		},
	}
	c.Flags().StringVar(&environment, "env", "", "environment, if a model is given in place of a ref")
	return c
}

func inspectText(i inspection.Result) string {
	r := i.Release
	rows := [][]string{{"ENGINE", "SIZE", "TOOLCHAIN", "DIGEST"}}
	if i.Source != nil {
		rows = append(rows, []string{"reference model", ui.Size(i.Source.Bytes), "-", ui.Short(i.Source.Digest)})
	}
	var engines []judged
	loads := ""
	for n, e := range i.Engines {
		engine := r.Engines[n]
		rows = append(rows, []string{e.Label, ui.Size(engine.Bytes), engine.Toolchain.Name + " " + engine.Toolchain.Version, ui.Short(engine.Digest)})
		engines = append(engines, judged{e.Label, e.Parity, e.Performance})
		loads += printing.Load(engine.Label(), engine.Load)
	}
	return fmt.Sprintf("%s\nmodel    %s %s\n%ssources  %s\n%s\nlimits   %s\n%s%s%s\n%s\n%s\n%s%s\n%s\n%s\n\nevidence%s\n",
		ui.Plain(i.Ref), r.Model, ui.Plain(r.Tag()), originText(i.Origin)+summaryText(i.Summary), r.Sources, ui.Hanging("golden   ", crossCheckText(i.CrossCheck)), r.Limits,
		leftOutText(i.LeftOut), printing.Names(i.Names),
		quarantinesText(i.Quarantines)+skippedText(i.Skipped)+approvalsText(i.Approvals),
		judgedTable(engines), measuredTable(engines, marginOrReason)+throughServers(i.Engines), ui.Table(rows), loads, printing.NodesGet(r, i.NodesGet), columnsPage, evidenceText(i))
}

// nodesGet asks for each registered node type which engine of a release it gets. Who may not read node types sees none.
func nodesGet(ctx context.Context, i *wiring.Instance, environment string, r artifact.Release) ([]artifact.NodeEngine, error) {
	var all []artifact.NodeEngine
	for t, err := range storage.Rows(ctx, i.NodeTypes, "") {
		if registry.HasCode(err, registry.CodeForbidden) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		answer, err := i.Resolve(ctx, api.ResolveQuery{Environment: environment, Model: r.Model, Version: string(r.Digest), Node: t.Document})
		if err != nil && !registry.HasCode(err, registry.CodeNoEngine) && !registry.HasCode(err, registry.CodePolicy) {
			return nil, err
		}
		n := artifact.NodeEngine{NodeType: t.Name}
		if answer.Engine != nil {
			n.Engine, n.Label = answer.Engine.Digest, answer.Engine.Label()
		}
		all = append(all, n)
	}
	return all, nil
}

// originText says from which commit the release was built.
func originText(o *evidence.Origin) string {
	if o == nil {
		return ""
	}
	return "built of " + ui.Plain(o.String()) + "\n"
}

// skippedText says what a break-glass promotion skipped.
func skippedText(s *evidence.Skipped) string {
	if s == nil {
		return ""
	}
	return "\npromoted by " + ui.Plain(s.String()) + "\n"
}

// summaryText says by which rules the release was promoted.
func summaryText(v *evidence.VSA) string {
	if v == nil {
		return ""
	}
	text := "allowed  on " + v.TimeVerified.UTC().Format(time.RFC3339) + " by " + ui.Plain(v.Policy.URI) + " of " + ui.Short(v.Policy.Digest.SHA256())
	if rules := v.Promotion.Policy.SHA256(); rules != "" {
		text += ", its rules " + ui.Short(rules)
	}
	return text + "\n"
}

// leftOutText lists the engines that the release was made without, with the class of each failure.
func leftOutText(left []evidence.LeftOut) string {
	if len(left) == 0 {
		return ""
	}
	return "without  " + ui.Plain(printing.LeftOutLabels(left)) + "\n"
}

// crossCheckText says who checked the golden outputs.
func crossCheckText(j *evidence.CrossCheck) string {
	if j == nil {
		return "not cross-checked: no provenance names who checked them"
	}
	return ui.Plain(j.String())
}

func quarantinesText(all []inspection.Quarantine) string {
	text := ""
	for _, q := range all {
		text += fmt.Sprintf("\nin quarantine: %s (%q)", ui.Plain(q.Label), q.Reason)
	}
	if text != "" {
		text += "\n"
	}
	return text
}

// approvalsText says who approved the release, for what, and which approvals do not count.
func approvalsText(all []evidence.GivenApproval) string {
	text := ""
	for _, g := range all {
		text += "\n" + ui.Plain(g.String())
	}
	if text != "" {
		text += "\n"
	}
	return text
}

func evidenceText(i inspection.Result) string {
	counts := make(map[string]int)
	for _, e := range i.Evidence {
		counts[e.PredicateType]++
	}
	text := ""
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		text += fmt.Sprintf("\n  %d  %s", counts[kind], ui.Plain(kind))
	}
	if i.IgnoredCount > 0 {
		text += fmt.Sprintf("\n  %d  ignored:", i.IgnoredCount)
		for _, ignored := range i.Ignored {
			text += fmt.Sprintf("\n     %s: %s", ui.Short(ignored.Bundle), ui.Plain(ignored.Reason))
		}
		if more := i.IgnoredCount - len(i.Ignored); more > 0 {
			text += fmt.Sprintf("\n     and %d more", more)
		}
	}
	if text == "" {
		return "\n  none"
	}
	return text
}
