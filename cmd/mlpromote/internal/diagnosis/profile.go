package diagnosis

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
)

// Profile shows where the time of an engine goes.
func (v Verbs) Profile() *cobra.Command {
	var own toolchains.Replacements
	var environment, engine string
	var all bool
	c := &cobra.Command{
		Use:   "profile [REF | MODEL [--env ENV]]",
		Short: "Show where the time of an engine goes: loading, copies, and each operator",
		Long: `Runs the first case on an engine as nodes load it, and reads the runtime's own profile: what loading takes, what
copies between devices and layouts take, and the time of each node of the engine's graph, the costliest first. The first
line names the node that most of the time goes into. The median is of runs without the profile.

ONNX Runtime and OpenVINO have such profiles. Of other runtimes, and of OpenVINO's blobs, it shows loading and the
median alone, with a note.

REF defaults to the last build here. --engine is not needed if the release has one engine, or if one has failed.`,
		Example: `  mlpromote profile staging/vision/digits:1.0.0 --engine linux-amd64-v1/int8`,
		Args:    command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := own.Check(); err != nil {
				return err
			}
			return v.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := v.ModelOrReference(c.Context(), i, "profile", environment, args)
				if err != nil {
					return err
				}
				found, err := diagnose.Profile(c.Context(), v.Pipeline(i, nil, own), ref, engine)
				if err != nil {
					return err
				}
				found.Ref.Host = i.HostOf(found.Ref.Environment)
				return v.UI.Result(profileText(found, all), profiled{found.Ref.String(), found})
			})
		},
	}
	own.Add(c)
	c.Flags().StringVar(&environment, "env", "", "environment, if a model is given in place of a ref")
	c.Flags().StringVar(&engine, "engine", "", "label, target, variant or digest of one engine, such as linux-amd64-v1/int8 or int8")
	c.Flags().BoolVar(&all, "all", false, "show all nodes, not only the costliest")
	return c
}

// profiled is what profile prints.
type profiled struct {
	Ref string `json:"ref"`
	diagnose.Profiled
}

// shownNodes is how many nodes are shown without --all.
const shownNodes = 10

func profileText(p diagnose.Profiled, all bool) string {
	text := fmt.Sprintf("%s\n%s on %s %s\n", ui.Plain(p.Ref.String()), ui.Plain(p.Engine), ui.Plain(p.Runtime.Name), ui.Plain(p.Runtime.Version))
	if b, ok := p.Bottleneck(); ok {
		text += fmt.Sprintf("most time: %s (%s), %.0f %% of what all nodes take\n", ui.Plain(b.Node), ui.Plain(b.Operator), 100*b.Share)
	}
	text += "\n" + partsTable(p)
	if p.Missing != "" {
		return text + ui.Plain(p.Missing) + "\n"
	}
	rows := [][]string{{"NODE", "OPERATOR", "BY", "TIME", "SHARE"}}
	nodes := p.Nodes
	if !all {
		nodes = nodes[:min(shownNodes, len(nodes))]
	}
	for _, n := range nodes {
		rows = append(rows, []string{n.Node, n.Operator, orDash(n.Provider), took(n.TimeNS), fmt.Sprintf("%.1f %%", 100*n.Share)})
	}
	text += "\n" + ui.Table(rows)
	if left := len(p.Nodes) - len(nodes); left > 0 {
		text += fmt.Sprintf("%d more with --all\n", left)
	}
	rows = [][]string{{"OPERATOR", "NODES", "TIME", "SHARE"}}
	for _, k := range p.Kinds {
		rows = append(rows, []string{k.Operator, fmt.Sprint(k.Count), took(k.TimeNS), fmt.Sprintf("%.1f %%", 100*k.Share)})
	}
	return text + "\n" + ui.Table(rows)
}

// partsTable is what loading and a run come to.
func partsTable(p diagnose.Profiled) string {
	rows := [][]string{{"PART", "TIME"}, {"load", took(p.LoadNS)}}
	for _, part := range p.Load {
		rows = append(rows, []string{"  " + part.Name, took(part.TimeNS)})
	}
	rows = append(rows, []string{"run, median without profile", took(p.P50NS)})
	if p.Missing == "" {
		if p.RunNS > 0 {
			rows = append(rows, []string{"run with profile", took(p.RunNS)})
		}
		rows = append(rows, []string{"  operators", took(p.OperatorsNS)}, []string{"  copies", took(p.CopiesNS)})
		if between := p.RunNS - p.OperatorsNS - p.CopiesNS; p.RunNS > 0 && between > 0 {
			rows = append(rows, []string{"  between operators", took(between)})
		}
	}
	return ui.Table(rows)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// took is a time of a run.
func took(ns int64) string {
	switch d := time.Duration(ns); {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.1f us", float64(ns)/1e3)
	}
}
