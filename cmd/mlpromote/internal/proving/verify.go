package proving

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

func verifyCommand(a *program.App) *cobra.Command {
	var own toolchains.Replacements
	var sensitivity, latency time.Duration
	var environment, to, through string
	var targets, engines []string
	c := &cobra.Command{
		Use:   "verify [REF | MODEL [--env ENV]]",
		Short: "Verify on this machine that engines compute the same as the reference model",
		Long: `Runs every engine that fits this machine on all cases of the release,
compares with the reference model's outputs under the limits of the release, measures
latency, and attaches signed reports, passing or failing. REF defaults to the last build here;
MODEL is the head of the only environment that has it, or of --env; MODEL:VERSION is another release there.

The cases of a large model that have run are kept in the cache folder until the reports are
attached. If verify is interrupted, the next run on the same kind of machine continues there.

Limits on a regression compare with the head of the next environment. A promotion refuses a
report that compared with another release than the one that it replaces: verify again.

Latency is measured with the first 16 cases, for about a second of runs of each engine, or, where the
limits are about latency, 3; up to 30 if a limit on the 99th percentile takes that many runs. With
--latency-time it is that long. 20 runs to warm up and the loading of engines come on top.

The program of the metric "program" runs in a sandbox without network, which sees the cases and the outputs.
If this machine has no such sandbox, the accuracy is undecided, unless --allow-program names the program.

With --through NAME, a model server runs the engines: it is started on a folder with each engine, without network, and gets the cases as
its clients send them (docs/how-to/servers.md). Its reports count for a policy that asks for this server.

For an int8 engine that fails, verify looks for the graph nodes that lose most by quantization
accuracy, and for those that must stay in full precision. --sensitivity limits the time for that.

Exit code 3: a limit was exceeded. 6: this machine meets no target.`,
		Example: `  mlpromote verify staging/vision/digits:1.0.0
  mlpromote verify vision/digits --env prod
  mlpromote verify --engine int8
  mlpromote verify --toolchains toolchains --through triton`,
		Args: command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(checkTimes(sensitivity, latency), own.Check()); err != nil {
				return err
			}
			if through != "" {
				if _, err := a.Toolchains().Server(through); err != nil {
					return err
				}
			}
			return a.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := a.ModelOrReference(c.Context(), i, "verify", environment, args)
				if err != nil {
					return err
				}
				if len(args) == 0 { // a build that failed is not it
					a.UI.Note("verifying the last build here, %s", ref)
				}
				env := a.Pipeline(i, nil, own)
				env.Destination, env.Targets, env.Engines, env.Sensitivity, env.LatencyTime, env.Server = to, targets, engines, sensitivity, latency, through
				named := "" // by the commands that come next, too
				if len(args) > 0 {
					named = ref.String() + " "
				}
				return verifyRelease(c.Context(), a, i, ref, env, named)
			})
		},
	}
	own.Add(c)
	own.AddProgram(c)
	c.Flags().StringVar(&environment, "env", "", "environment, if a model is given in place of a ref")
	c.Flags().StringVar(&to, "to", "",
		"environment to compare with for limits on a regression; default: the first that takes releases from the environment of REF")
	c.Flags().StringSliceVar(&targets, "target", nil, "verify the engines of this target alone; may be repeated")
	c.Flags().StringSliceVar(&engines, "engine", nil, "verify this engine alone, by its label, target, variant or digest; may be repeated")
	c.Flags().DurationVar(&sensitivity, "sensitivity", 5*time.Minute,
		"how long to look, for each int8 variant that fails, for the graph nodes that fail by quantization; 0: not at all")
	c.Flags().StringVar(&through, "through", "", "run engines through this model server, which servers/NAME.yaml in the folder of --toolchains describes")
	c.Flags().DurationVar(&latency, "latency-time", 0, "how long the timed runs of one engine may take; 0: as the limits need")
	return c
}

func checkTimes(sensitivity, latency time.Duration) error {
	switch {
	case sensitivity < 0:
		return registry.Errorf(registry.CodeInvalid, "--sensitivity %s: want a time such as 5m, or 0 for none", sensitivity)
	case latency < 0:
		return registry.Errorf(registry.CodeInvalid, "--latency-time %s: want a time such as 20s", latency)
	}
	return nil
}

func verifyRelease(ctx context.Context, a *program.App, i *wiring.Instance, ref registry.Ref, env *run.Env, named string) error {
	root, err := a.Toolchains().Root()
	if err != nil {
		return err
	}
	env.Unfinished = filepath.Join(root, "verify")
	result, err := verify.Verify(ctx, env, ref)
	if len(result.Engines) == 0 {
		return err
	}
	result.Ref.Host = i.HostOf(result.Ref.Environment)
	tellVerified(ctx, a, i, result)
	whole := len(env.Targets)+len(env.Engines) == 0 && env.Server == ""
	if machine, unread := a.NodeVerbs().Machine(ctx); unread == nil && whole {
		if note := undeclaredText(nodeGets(result), result.Node, machine); note != "" {
			a.UI.Note("%s", note)
		}
	}
	if out := a.UI.Result(verifyText(result, whole), verifiedRelease{result.Ref.String(), result}); out != nil {
		return out
	}
	explain(a, result)
	if a.UI.JSON { // the document has the failure of each engine with its hints
		return err
	}
	return readable(err, result, named)
}

// tellVerified tells what a person should know of a verification beside its verdicts.
func tellVerified(ctx context.Context, a *program.App, i *wiring.Instance, result verify.Result) {
	for _, s := range result.Skipped {
		a.UI.Note("not verified here: %s", s)
	}
	for _, e := range result.Engines {
		plain, ran := e.Parity.Checks.Of(evidence.TrialPlainLoad)
		if ran && plain.Verdict != evidence.VerdictPass && e.Parity.Verdict == evidence.VerdictPass {
			found := "a plain load was not judged"
			if plain.Verdict == evidence.VerdictRecorded {
				found = "a plain load fails"
			}
			a.UI.Note("%s: nodes must load it by its profile; %s: %s", e.Label, found, plain.Message)
		}
		if len(e.Parity.Providers) > 1 {
			a.UI.Note("%s: %s", e.Label, sharesText(e.Parity.Providers))
		}
	}
	for _, s := range result.Slow {
		a.UI.Note("%s", slowText(s))
	}
	claims, _, unread := i.Claims(ctx, result.Ref.Environment, result.Release)
	if unread == nil { // verify itself has read them before
		for _, warning := range inspection.LabelWarnings(result.Release, claims) {
			a.UI.Note("warning: %s", warning)
		}
	}
}

// slowText points an engine out that is far slower than fp32 here.
func slowText(s verify.SlowEngine) string {
	than := s.Than
	if than == "reference" {
		than = "the reference model"
	}
	return fmt.Sprintf("%s takes %.1f times as long as %s on this machine (%s against %s): list it later in the spec or leave it out, unless its size or its runtime matters more",
		s.Label, s.Times, than, printing.Duration(s.P50Ns), printing.Duration(s.ThanP50Ns))
}

// verifiedRelease is what verify found out, with its ref as printed.
type verifiedRelease struct {
	Ref string `json:"ref"`
	verify.Result
}

// shownNodes is how many nodes a report of sensitivity names on a terminal.
const shownNodes = 8

// explain shows what the layers of failing int8 engines cost.
func explain(a *program.App, r verify.Result) {
	for _, e := range explained(r) {
		a.UI.Note("%s: %.1f dB are left of the outputs with all in int8, and with one node alone in int8:\n%s",
			e.Label, float64(e.Sensitivity.SNRdB), ui.Layout(sensitivityText(*e.Sensitivity)))
	}
}

// explained are the engines whose layers explain their failure, once for each variant. The figures are of ONNX Runtime:
// beside the verdict of an engine of another runtime they would be read as its own.
func explained(r verify.Result) []verify.VerifiedEngine {
	var all []verify.VerifiedEngine
	shown := make(map[*verify.Sensitivity]bool)
	for _, e := range r.Engines {
		if s := e.Sensitivity; s != nil && !shown[s] && len(s.Nodes) > 0 && e.Parity.Runtime.Name == plan.ONNXRuntime {
			shown[s] = true
			all = append(all, e)
		}
	}
	return all
}

func sensitivityText(s verify.Sensitivity) string {
	rows := [][]string{{"    NODE", "OPERATOR", "SNR"}}
	for _, n := range s.Nodes {
		if n.Costs() && len(rows) <= shownNodes {
			rows = append(rows, []string{"    " + n.Node, n.Operator, printing.Cell(n.SNRdB, "%.1f dB")})
		}
	}
	return strings.TrimRight(ui.Table(rows), "\n")
}

func verifyText(r verify.Result, whole bool) string {
	var engines []judged
	for _, e := range r.Engines {
		engines = append(engines, judged{e.Label, &e.Parity, &e.Performance})
	}
	text := judgedTable(engines) + "\n" + measuredTable(engines, marginText) + "\n" + servedText(engines)
	if whole {
		text += ui.Paragraph("a node like this one gets "+nodeGets(r).String(), "  ") + "\n"
	}
	return text + columnsPage
}

// nodeGets returns the engine that a node like this machine gets of the release: the first in its order that fits, and that passed here.
func nodeGets(r verify.Result) policy.Choice {
	return policy.Choose(r.Node, r.Release.Ranked(), func(e artifact.Engine) []policy.Requirement {
		at := slices.IndexFunc(r.Engines, func(v verify.VerifiedEngine) bool { return v.Digest == e.Digest })
		switch {
		case at < 0:
			return []policy.Requirement{{Name: policy.RequireParity, Detail: "it was not verified here"}}
		case !r.Engines[at].Passes():
			return []policy.Requirement{{Name: policy.RequireParity, Detail: "it has not passed"}}
		}
		return nil
	})
}

// undeclaredText names the runtimes of the engine that a node like this machine gets which resolve does not find by itself, since mlpromote did
// not install them. node has what verify used, and machine what resolve finds.
func undeclaredText(gets policy.Choice, node, machine artifact.Node) string {
	if gets.Engine == nil {
		return ""
	}
	var declare []string
	for _, m := range gets.Engine.Target.Match(machine, machine.Runtime()) {
		if m.Runtime != "" {
			declare = append(declare, m.Runtime+":"+node.Runtimes[m.Runtime])
		}
	}
	switch len(declare) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s needs %s, which this node does not declare, since mlpromote did not install it: resolve and pull take it by --runtime %s", gets.Engine.Label(),
			strings.ReplaceAll(declare[0], ":", " "), declare[0])
	}
	return fmt.Sprintf("%s needs runtimes that this node does not declare, since mlpromote did not install them (%s): resolve and pull take them by a runtime document: --runtime FILE",
		gets.Engine.Label(), strings.Join(declare, ", "))
}

// sharesText says who ran an engine that several execution providers ran.
func sharesText(shares []evidence.ProviderShare) string {
	total, parts := 0, []string(nil)
	for _, s := range shares {
		total += s.Nodes
	}
	for _, s := range shares {
		parts = append(parts, fmt.Sprintf("%s ran %d of %s in %s", s.Name, s.Nodes, registry.Count(total, "node"), printing.Duration(s.TimeNS)))
	}
	return strings.Join(parts, ", ")
}
