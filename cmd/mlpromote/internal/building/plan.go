package building

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

func planCommand(a *program.App) *cobra.Command {
	var file string
	var own toolchains.Replacements
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what build would do, with all defaults and presets",
		Long: `Reads the spec and its files, and prints every engine with all options written out, in
the order in which nodes get them.
Nothing is installed or stored: of a toolchain that is not installed, the version is that
which build will install. Only a source that has to be imported takes its toolchain now.`,
		Example: "  mlpromote plan -f mlpromote.yaml",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := own.Check(); err != nil {
				return err
			}
			return showPlan(c.Context(), a, file, own)
		},
	}
	program.SpecFlag(c, &file)
	own.Add(c)
	return c
}

// planned is a plan with what building it takes.
type planned struct {
	plan.Plan
	Kinds     []plannedKind     `json:"kinds"`               // of the outputs, in the order of the graph
	Proves    *validators.Proof `json:"proves,omitempty"`    // what the cases can prove
	Unbatched string            `json:"unbatched,omitempty"` // why verify checks no batches of cases; absent where it does
	Installs  []neededInstall   `json:"installs,omitempty"`  // toolchains that build will install
	Taken     []takenVersion    `json:"taken,omitempty"`     // where the version is another release, so that this one cannot be promoted
}

// plannedKind is what an output means.
type plannedKind struct {
	Output string          `json:"output"`
	Kind   validators.Kind `json:"kind"`
	Why    string          `json:"why,omitempty"` // it is guessed to be that; absent where the spec says the kind
}

func kindsOf(p plan.Plan) []plannedKind {
	kinds := []plannedKind{}
	for _, output := range p.Interface.Outputs {
		kinds = append(kinds, plannedKind{output.Name, output.Kind, p.Guessed[output.Name]})
	}
	return kinds
}

// kindsText is a table of the outputs, with why each is taken for what it is.
func kindsText(p plan.Plan) string {
	rows := [][]string{{"OUTPUT", "KIND", "WHY"}}
	for _, k := range kindsOf(p) {
		why := "set in the spec"
		if k.Why != "" {
			why = "guessed: " + k.Why
		}
		rows = append(rows, []string{k.Output, ui.Dash(string(k.Kind)), why})
	}
	return ui.Table(rows)
}

// proofText says what the cases can prove.
func proofText(proof *validators.Proof) string {
	if proof == nil {
		return ""
	}
	drop := ""
	if proof.Drop > 0 {
		drop = fmt.Sprintf(" and a drop of accuracy of at most %.2f %%", math.Ceil(1e4*proof.Drop)/100)
	}
	return fmt.Sprintf("%s without a miss prove rates of up to %.2f %%%s, with %s confidence\n",
		registry.Count(proof.Cases, "case"), math.Floor(1e4*proof.Rate)/100, drop, validators.ShareText(proof.Confidence))
}

// neededInstall is a toolchain that is not installed.
type neededInstall struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Bytes   int64  `json:"bytes"` // that it takes, about
}

func showPlan(ctx context.Context, a *program.App, file string, own toolchains.Replacements) error {
	s, err := a.Toolchains().LoadSpec(file)
	if err != nil {
		return err
	}
	m, err := a.Toolchains().OpenLocal()
	if err != nil {
		return err
	}
	var needed []neededInstall
	missing := func(_ context.Context, installer *toolchains.Installer, name string) error {
		known, bytes, err := installer.Known(name)
		needed = append(needed, neededInstall{known.Name, known.Version, bytes})
		return err
	}
	env := a.LocalPipeline(m, own.Or(s), missing)
	plan, err := build.Plan(ctx, env, s)
	if err != nil {
		return err
	}
	taken := takenHere(ctx, a, plan)
	warnTaken(a, taken)
	return a.UI.Result(planText(plan)+installsText(needed), planned{plan, kindsOf(plan), plan.Limits.Proof(plan.Cases.Count), plan.Interface.NoBatches(), needed, taken})
}

func installsText(needed []neededInstall) string {
	text := ""
	for _, n := range needed {
		text += fmt.Sprintf("\n%s %s: not installed; build will install it (%d MiB)", n.Name, n.Version, n.Bytes>>20)
	}
	return text
}

func planText(p plan.Plan) string {
	rows := [][]string{{"ENGINE", "PRECISION", "TOOLCHAIN", "QUANTIZE", "COMPILE"}}
	compressed := ""
	for _, e := range p.Engines {
		rows = append(rows, []string{e.Target.Name + "/" + e.Variant, e.Precision,
			e.Toolchain.Name + " " + e.Toolchain.Version, quantizeText(e), printing.Options(e.Compile)})
		compressed += compressText(e)
	}
	if compressed != "" {
		compressed += compressedLimitsText(p)
	}
	source := ""
	if p.Quantized != "" {
		source = "source: already quantized (" + p.Quantized + "), passes through as it is\n"
	}
	loads := ""
	for _, e := range p.Engines {
		loads += printing.Load(e.Target.Name+"/"+e.Variant, e.Load)
	}
	return fmt.Sprintf("%s %s, plan %s\n%scases: %d %s\n%s\n%s%s\n%s\n%s", p.Model, p.Version, p.Digest, source, p.Cases.Count, p.Cases.Origin,
		proofText(p.Limits.Proof(p.Cases.Count)), ui.Table(rows), compressed+loads, kindsText(p)+printing.Names(printing.NamesOf(p.Interface)), printing.Limits(p.Limits)+unbatchedText(p))
}

// unbatchedText is a line on why verify checks no batches of cases; empty where it does.
func unbatchedText(p plan.Plan) string {
	if why := p.Interface.NoBatches(); why != "" {
		return ui.Plain(why) + "\n"
	}
	return ""
}

// compressText is a line on the model that an engine is made from, before it is quantized; empty for the reference model.
func compressText(e plan.Engine) string {
	var steps []string
	if len(e.Student) > 0 {
		steps = append(steps, "a model of its own, "+string(e.Student[0].Digest))
	}
	for _, step := range e.Compress {
		steps = append(steps, printing.Options(step))
	}
	if len(steps) == 0 {
		return ""
	}
	return ui.Plain(e.Label()) + " is made from " + strings.Join(steps, ", then ") + "\n"
}

// compressedLimitsText says which limits engines have that compute another function than the reference model.
func compressedLimitsText(p plan.Plan) string {
	text := "compressed engines have the limits of int8 unless the spec sets others, since they are other functions than the reference model\n"
	if p.Limits.Accuracy == nil {
		text += "no limit on accuracy: add limits.accuracy, so that their loss on labelled cases is judged too\n"
	}
	return text
}

// quantizeText is what quantizes an engine and how.
func quantizeText(e plan.Engine) string {
	if e.Quantizer == nil || e.Quantizer.Name == spec.ToolONNXRuntime {
		return printing.Options(e.Quantize)
	}
	return e.Quantizer.Name + " " + e.Quantizer.Version + ": " + printing.Options(e.Quantize)
}
