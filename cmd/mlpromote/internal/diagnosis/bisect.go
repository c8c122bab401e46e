package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Bisect finds the first tensor in which an engine and the reference model part ways.
func (v Verbs) Bisect() *cobra.Command {
	var own toolchains.Replacements
	var environment string
	var all bool
	var o diagnose.BisectOptions
	c := &cobra.Command{
		Use:   "bisect [REF | MODEL [--env ENV]]",
		Short: "Find the first tensor in which an engine and the reference model part ways",
		Long: `Runs the engine and the reference model on some cases, the worst of its newest report among them, with inner
tensors as outputs, and compares them in the order of the graph. It names the first tensor with a ratio of
signal to noise below the limit of the outputs and an error that reaches an output, and the operator that
computes it. A tensor whose error vanishes on the way is no cause, and is listed apart.

An engine of ONNX is run as it is, with its own tensors as outputs; several nodes are named where the engine has
joined them. For other runtimes, the model that the engine was compiled of is compiled again with
inner tensors as outputs. Either way this can change the engine's behavior: the outputs of this run are
shown next to the original engine's. A few tensors are compared at a time, so that large models fit in memory.

--layers shows for an int8 engine of ONNX Runtime's quantizer the effect of each layer on the outputs:
with it and all before it quantized, with it alone, and with all but it.

REF defaults to the last build here. --engine is not needed if the release has one engine, or if one has failed.`,
		Example: `  mlpromote bisect staging/vision/digits:1.0.0 --engine linux-amd64-v1/int8
  mlpromote bisect vision/digits --env staging --engine int8 --layers 5m`,
		Args: command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case o.Layers < 0:
				return registry.Errorf(registry.CodeInvalid, "--layers %s: want a time such as 5m, or 0 for none", o.Layers)
			case o.Cases < 0 || o.Cases > 10_000:
				return registry.Errorf(registry.CodeInvalid, "--cases %d: want 1 to 10000, or 0 for 8", o.Cases)
			}
			if err := own.Check(); err != nil {
				return err
			}
			return v.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := v.ModelOrReference(c.Context(), i, "bisect", environment, args)
				if err != nil {
					return err
				}
				found, err := diagnose.Bisect(c.Context(), v.Pipeline(i, nil, own), ref, o)
				if err != nil {
					return err
				}
				found.Ref.Host = i.HostOf(found.Ref.Environment)
				return v.UI.Result(bisectText(found, all), bisected{found.Ref.String(), found})
			})
		},
	}
	own.Add(c)
	c.Flags().StringVar(&environment, "env", "", "environment, if a model is given in place of a ref")
	c.Flags().StringVar(&o.Engine, "engine", "", "label, target, variant or digest of one engine, such as linux-amd64-v1/int8 or int8")
	c.Flags().IntVar(&o.Cases, "cases", 0, "how many cases to run (default 8)")
	c.Flags().DurationVar(&o.Layers, "layers", 0, "time for measuring the effect of each layer's quantization; 0: none")
	c.Flags().BoolVar(&all, "all", false, "show all tensors, not only those around the first that parts ways")
	return c
}

// bisected is what bisect prints.
type bisected struct {
	Ref string `json:"ref"`
	diagnose.Bisection
}

func bisectText(b diagnose.Bisection, all bool) string {
	text := fmt.Sprintf("%s\n%s, %s, on %s %s\n", ui.Plain(b.Ref.String()), ui.Plain(b.Engine), ui.Plain(b.Precision), ui.Plain(b.Runtime.Name),
		ui.Plain(b.Runtime.Version))
	how := "the engine's own graph, with inner tensors as outputs"
	if b.MadeAgain {
		how = "the model that it was compiled of, compiled again with inner tensors as outputs"
	}
	text += fmt.Sprintf("%s compared on %s (%s): %s\n", registry.Count(len(b.Tensors), "tensor"), registry.Count(len(b.Cases), "case"),
		numbers(b.Cases), how)
	if len(b.Refined) > 0 {
		text += fmt.Sprintf("the engine has joined the nodes of %s: read from the model that it was compiled of, compiled again\n",
			ui.Plain(strings.Join(first(b.Refined, 8), ", ")))
	}
	text += firstText(b) + "\n" + outputsTable(b) + "\n" + tensorsTable(b, all) + halfText(b)
	if len(b.Recovered) > 0 {
		text += fmt.Sprintf("below the limit too, but their error reaches no output: %s\n", ui.Plain(strings.Join(first(b.Recovered, 8), ", ")))
	}
	if b.NotCompared > 0 {
		text += fmt.Sprintf("%s of the reference model not compared: the engine does not have them, or they cannot be outputs\n",
			registry.Count(b.NotCompared, "tensor"))
	}
	for _, p := range b.Problems {
		text += "  " + ui.Plain(p) + "\n"
	}
	return text + layersText(b.Layers)
}

// firstText says where errors begin.
func firstText(b diagnose.Bisection) string {
	limit := fmt.Sprintf("%s, the limit of %s", decibels(b.LimitDB), ui.Plain(b.LimitOf))
	if b.WithinLimit { // no limit is broken: the mark only finds where most of the error begins
		limit = fmt.Sprintf("the mark of %s, 3 dB better than the worst output; the outputs keep their limits of errors", decibels(b.LimitDB))
	}
	f := b.First
	if f == nil && b.WithinLimit {
		return fmt.Sprintf("the outputs keep their limits of errors, and no tensor on the way to them is below %s\n", decibels(b.LimitDB))
	}
	if f == nil {
		return "no tensor on the way to an output is below " + limit + "\n"
	}
	node := f.Nodes[len(f.Nodes)-1]
	text := fmt.Sprintf("first: %s, computed by %s (%s), has %s\n", ui.Plain(f.Name), ui.Plain(node.Node), ui.Plain(node.Operator),
		decibels(f.SNRdB))
	text += "  below " + limit + "\n"
	if len(f.Nodes) > 1 {
		var names []string
		for _, n := range f.Nodes {
			names = append(names, n.Node+" ("+n.Operator+")")
		}
		text += fmt.Sprintf("  the engine has no tensors between the nodes %s: any of them can be the cause\n", ui.Plain(strings.Join(names, ", ")))
	}
	before := "its inputs are exact"
	if !math.IsInf(float64(f.InputsSNRdB), 1) {
		before = "the worst tensor that it is computed of has " + decibels(f.InputsSNRdB)
	}
	if f.Sharp {
		return text + "  most of its error begins here: " + before + "\n"
	}
	text += "  its error has added up on the way: " + before + "\n"
	if f.Sharpest != nil {
		text += fmt.Sprintf("  the most is added by %s (%s)\n", ui.Plain(f.Sharpest.Node), ui.Plain(f.Sharpest.Operator))
	}
	return text
}

func outputsTable(b diagnose.Bisection) string {
	rows := [][]string{{"OUTPUT", "SNR OF THE ENGINE", "WITH INNER TENSORS AS OUTPUTS"}}
	differ := ""
	for _, o := range b.Outputs {
		rows = append(rows, []string{o.Name, decibels(o.SNRdB), decibels(o.InnerSNRdB)})
		if o.Differs() {
			differ = "the engine as it is differs otherwise: its difference begins, at least in part, " +
				"in optimizations of the compiler or runtime that need inner tensors to be no outputs\n"
		}
	}
	return ui.Table(rows) + "of these cases alone: the report of verify has the figures of all cases\n" + differ
}

// halfText says which nodes of an fp16 engine go beyond float16, and how they stay in float32. It is empty if there are none.
func halfText(b diagnose.Bisection) string {
	nodes := b.BeyondHalf()
	if len(nodes) == 0 {
		return ""
	}
	shown := make([]string, len(nodes))
	for i, node := range nodes {
		shown[i] = spec.Quoted(ui.Plain(node))
	}
	return fmt.Sprintf("float16 ends at 65504, and the model has larger numbers in these nodes, which can stay in float32: "+
		"quantize: {method: fp16, exclude: [%s]}\n", strings.Join(shown, ", "))
}

// around is how many tensors are shown before and behind the first that parts ways.
const around = 6

func tensorsTable(b diagnose.Bisection, all bool) string {
	at := -1
	if b.First != nil {
		at = slices.IndexFunc(b.Tensors, func(t diagnose.TensorDifference) bool { return t.Name == b.First.Name })
	}
	from, to := max(at-around, 0), min(max(at, 0)+around+1, len(b.Tensors))
	if all {
		from, to = 0, len(b.Tensors)
	}
	rows := [][]string{{"TENSOR", "NODE", "OPERATOR", "SNR", "LARGEST ERROR", ""}}
	for n, t := range b.Tensors[from:to] {
		mark := ""
		if from+n == at {
			mark = "<- first"
		}
		rows = append(rows, []string{t.Name, t.Node, t.Operator, decibels(t.SNRdB), fmt.Sprintf("%.2g", float64(t.MaxAbs)), mark})
	}
	text := ui.Table(rows)
	if left := len(b.Tensors) - (to - from); left > 0 {
		text += fmt.Sprintf("%s more with --all\n", registry.Count(left, "tensor"))
	}
	return text
}

func layersText(l *diagnose.LayerCosts) string {
	if l == nil {
		return ""
	}
	rows := [][]string{{"LAYER", "OPERATOR", "UP TO IT", "IT ALONE", "ALL BUT IT"}}
	for _, n := range l.Nodes {
		rows = append(rows, []string{n.Node, n.Operator, maybe(n.Cumulative), maybe(n.Alone), maybe(n.Without)})
	}
	text := fmt.Sprintf("\nSNR of the outputs in int8, by the quantized layer; %s with all:\n", decibels(l.SNRdB)) + ui.Table(rows)
	if worst, ok := costliest(l.Nodes); ok {
		text += fmt.Sprintf("alone, %s (%s) costs most\n", ui.Plain(worst.Node), ui.Plain(worst.Operator))
	}
	if l.Unfinished {
		text += "the time ran out: set more with --layers\n"
	}
	return text
}

// costliest is the layer that costs most when it alone is quantized.
func costliest(layers []diagnose.LayerCost) (worst diagnose.LayerCost, ok bool) {
	for _, l := range layers {
		if l.Alone != nil && *l.Alone < same && (!ok || *l.Alone < *worst.Alone) {
			worst, ok = l, true
		}
	}
	return worst, ok
}

func maybe(f *evidence.Figure) string {
	if f == nil {
		return "-"
	}
	return decibels(*f)
}

// same is the ratio in dB from which on outputs count as equal.
const same = 200

func decibels(f evidence.Figure) string {
	switch v := float64(f); {
	case v >= same:
		return "equal"
	case math.IsNaN(v):
		return "not compared"
	case math.IsInf(v, -1):
		return "no signal"
	default:
		return fmt.Sprintf("%.1f dB", v)
	}
}

func numbers(cases []int) string {
	var texts []string
	for _, n := range cases {
		texts = append(texts, fmt.Sprint(n))
	}
	return strings.Join(first(texts, 8), ", ")
}

// first are the first texts, and how many more there are.
func first(texts []string, n int) []string {
	if len(texts) <= n {
		return texts
	}
	return append(slices.Clone(texts[:n]), fmt.Sprintf("and %d more", len(texts)-n))
}
