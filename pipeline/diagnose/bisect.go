package diagnose

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/divergence"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// BisectOptions say what Bisect looks at.
type BisectOptions struct {
	Engine string // label, target, variant or digest; empty: the only engine, or the only one that did not pass
	Cases  int    // how many are run; 0 means 8
	// Layers is how long to look for what the quantization of each layer costs; zero is not at all.
	Layers time.Duration
}

// Bisection says where an engine and the reference model part ways.
type Bisection struct {
	Ref       registry.Ref       `json:"-"`
	Engine    string             `json:"engine"` // label
	Digest    registry.Digest    `json:"digest"`
	Precision string             `json:"precision"`
	Runtime   artifact.Toolchain `json:"runtime"` // name and version of what ran the engine
	// MadeAgain is true if the engine has no inner tensors that can be read, so that the model it was
	// compiled of was compiled again, with inner tensors as outputs.
	MadeAgain bool `json:"madeAgain"`
	// Refined are tensors inside of what the engine has joined, measured like that although MadeAgain is false.
	Refined []string `json:"refined,omitempty"`
	Cases   []int    `json:"cases"` // numbers of those that were run
	// LimitDB is the limit on the ratio of signal to noise that tensors are held to, and LimitOf the output and
	// the limit that it follows from. WithinLimit is true if the engine keeps it in every output: then
	// LimitDB is 3 dB above the worst output, so that First is where most of its error begins.
	LimitDB     evidence.Figure    `json:"limitDb"`
	LimitOf     string             `json:"limitOf"`
	WithinLimit bool               `json:"withinLimit"`
	Outputs     []OutputDifference `json:"outputs"`
	// First is the first tensor that parts ways, and whose error reaches an output; absent if there is none.
	First *FirstDifference `json:"first,omitempty"`
	// Tensors are all that were compared, in the order of the graph.
	Tensors []TensorDifference `json:"tensors"`
	// NotCompared counts the tensors of the reference model that the engine does not have or that could not be
	// compared; Problems are reasons, each once.
	NotCompared int         `json:"notCompared"`
	Problems    []string    `json:"problems,omitempty"`
	Recovered   []string    `json:"recovered,omitempty"` // tensors below the limit whose error reaches no output
	Layers      *LayerCosts `json:"layers,omitempty"`
}

// BeyondHalf lists the nodes of an fp16 engine that make infinity of numbers, or miss the limit where the reference has numbers that float16
// does not hold. Each is there once, in the order of the graph.
func (b Bisection) BeyondHalf() []string {
	if numbers, _ := artifact.NumberFormat(b.Precision); numbers != validators.PrecisionFP16 {
		return nil
	}
	var nodes []string
	for _, t := range b.Tensors {
		missed := t.Large && t.SNRdB < b.LimitDB
		if (missed || math.IsInf(float64(t.MaxAbs), 1)) && t.Node != "" && !slices.Contains(nodes, t.Node) {
			nodes = append(nodes, t.Node)
		}
	}
	return nodes
}

// OutputDifference is an output of the engine beside the reference's, and beside it the same output of
// the run with inner tensors as outputs.
type OutputDifference struct {
	Name       string          `json:"name"`
	SNRdB      evidence.Figure `json:"snrDb"` // NaN if the output could not be compared
	InnerSNRdB evidence.Figure `json:"innerSnrDb"`
}

// Differs reports whether the run with inner tensors as outputs shows another difference than the engine, by
// more than a factor of two: then its tensors may not say where that of the engine begins.
func (o OutputDifference) Differs() bool {
	a, b := float64(o.SNRdB), float64(o.InnerSNRdB)
	return a != b && !(math.Abs(a-b) < 3) && (a < verify.Costless || b < verify.Costless)
}

// TensorDifference is how far a tensor is from the reference's.
type TensorDifference struct {
	Name     string          `json:"name"`
	Node     string          `json:"node"`
	Operator string          `json:"operator"`
	SNRdB    evidence.Figure `json:"snrDb"` // relative to the spread of the reference's values
	MaxAbs   evidence.Figure `json:"maxAbs"`
	// Layout is true if the engine has the channels last, and the reference does not.
	Layout bool `json:"channelsLast,omitempty"`
	Large  bool `json:"-"` // the reference has a number there that float16 does not hold
}

// FirstDifference is the first tensor that parts ways.
type FirstDifference struct {
	TensorDifference
	// InputsSNRdB is that of the worst tensor that it is computed of; +Inf where that is an input of the model.
	InputsSNRdB evidence.Figure `json:"inputsSnrDb"`
	// Nodes are the nodes of the reference model between those tensors and this one, the last of which
	// computes it: with several, the engine has joined them, or has no tensors in between.
	Nodes []GraphNode `json:"nodes"`
	// Sharp is true if most of the error begins in these nodes. Else it has added up, and Sharpest is the
	// node that adds the most.
	Sharp    bool       `json:"sharp"`
	Sharpest *GraphNode `json:"sharpest,omitempty"`
}

// GraphNode is a node of the reference model.
type GraphNode struct {
	Node     string `json:"node"`
	Operator string `json:"operator"`
}

const (
	bisectCases  = 8
	withinMargin = 3 // dB
	largestHalf  = 65504
)

// Bisect finds the first tensor in which an engine and the reference model part ways. It runs both on
// some cases, the worst of the engine's newest report among them, with inner tensors as outputs, some of them at
// a time. Errors: those of oneEngine; CodeInvalid for an engine that was not made of ONNX.
func Bisect(ctx context.Context, env *run.Env, ref registry.Ref, o BisectOptions) (Bisection, error) {
	temp, err := tempdir.New("bisect")
	if err != nil {
		return Bisection{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	v, c, err := verify.Open(ctx, env, ref, o.Engine, scratch)
	if err != nil {
		return Bisection{}, err
	}
	if len(c.Tool.Profile.Sources) > 0 {
		return Bisection{}, registry.Errorf(registry.CodeInvalid, "%s was compiled of the source by %s, which has no tensors of the ONNX reference inside",
			c.Engine.Label(), c.Tool.Profile.Name)
	}
	b := &bisector{v: v, c: c, sums: make(map[string]*summed)}
	b.made, b.known = verify.HowMade(v, c.Engine.Digest)
	b.known = b.known && !b.made.IsCompressed() // the model that it was compiled from is not among the sources
	if v.Tools[run.OnnxRuntime].Importer == nil {
		return Bisection{}, registry.Errorf(registry.CodeUnavailable, "the toolchain %s here cannot show inner tensors of models", run.OnnxRuntime)
	}
	if o.Layers > 0 {
		if err := hasLayerCosts(c, b.made); err != nil {
			return Bisection{}, err
		}
	}
	found := Bisection{
		Ref:    registry.Ref{Environment: v.Environment, Model: v.Release.Model, Tag: v.Release.Tag(), Digest: v.Release.Digest},
		Engine: c.Engine.Label(), Digest: c.Engine.Digest, Precision: c.Engine.Precision,
		Runtime: artifact.Toolchain{Name: c.Tool.Runtime.Name, Version: c.Tool.Runtime.Version},
	}
	report, _ := verify.NewestParity(v.Release, v.Claims, c.Engine.Digest)
	found.Cases = casesToRun(report, v.Cases.Set.Count, cmp.Or(o.Cases, bisectCases))
	if err := b.prepare(ctx, found.Cases); err != nil {
		return found, err
	}
	if err := b.scan(ctx); err != nil {
		return found, err
	}
	if err := b.refine(ctx, b.conclude(&found)); err != nil {
		return found, err
	}
	if len(b.refined) > 0 {
		b.conclude(&found)
	}
	if o.Layers > 0 {
		found.Layers, err = layerCosts(ctx, v, c, b.made, o.Layers)
	}
	return found, err
}

// casesToRun are the cases that hold the worst elements of a report, and others evenly from all.
func casesToRun(report evidence.ParityReport, count, most int) []int {
	var picked []int
	for _, o := range report.Outputs {
		if o.Worst != nil && o.Worst.Case >= 0 && o.Worst.Case < count {
			picked = append(picked, o.Worst.Case)
		}
	}
	slices.Sort(picked)
	picked = slices.Compact(picked)
	picked = picked[:min(len(picked), most)]
	for i := range min(most, count) {
		if number := i * count / min(most, count); len(picked) < most && !slices.Contains(picked, number) {
			picked = append(picked, number)
		}
	}
	slices.Sort(picked)
	return picked
}

// conclude says where the tensors part ways. It returns the tensors, of those that were not compared, in which that may be.
func (b *bisector) conclude(found *Bisection) (between []string) {
	found.MadeAgain, found.Refined = b.madeAgain, b.refined
	found.Tensors, found.Outputs, found.NotCompared, found.First = []TensorDifference{}, nil, 0, nil
	snr := make(map[string]float64)
	byName := make(map[string]TensorDifference)
	for _, value := range b.graph.Values {
		sum, ok := b.sums[value.Name]
		if !ok {
			found.NotCompared++
			continue
		}
		result, turned := sum.result()
		d := TensorDifference{Name: value.Name, Node: value.Node, Operator: value.Operator, SNRdB: evidence.Figure(result.SpreadSNR),
			MaxAbs: evidence.Figure(result.MaxAbs), Layout: turned}
		if result.Worst != nil {
			d.Large = math.Abs(result.Worst.Reference) > largestHalf
		}
		snr[value.Name], byName[value.Name] = result.SpreadSNR, d
		found.Tensors = append(found.Tensors, d)
	}
	b.limit(found, snr)
	first, ok := divergence.Find(b.graph, snr, float64(found.LimitDB))
	found.Recovered, found.Problems = first.Recovered, b.problems
	if !ok {
		return nil
	}
	found.First = &FirstDifference{TensorDifference: byName[first.Value.Name], InputsSNRdB: evidence.Figure(first.InputsSNRdB), Sharp: first.Sharp}
	for _, n := range first.Nodes {
		if node := (GraphNode{n.Node, n.Operator}); !slices.Contains(found.First.Nodes, node) {
			found.First.Nodes = append(found.First.Nodes, node)
		}
		if n.Name != first.Value.Name {
			between = append(between, n.Name)
		}
	}
	if !first.Sharp {
		found.First.Sharpest = &GraphNode{first.Sharpest.Node, first.Sharpest.Operator}
	}
	return between
}

// limit chooses the ratio that tensors are held to, by the limits of the outputs.
func (b *bisector) limit(found *Bisection, snr map[string]float64) {
	worst, highest := math.Inf(1), math.Inf(-1)
	found.WithinLimit = true
	for _, name := range b.graph.Outputs {
		limits, _ := b.v.Limits.For(b.c.Engine.Precision, name)
		db, from := limits.Noise(b.c.Engine.Precision)
		own, inner := math.NaN(), math.NaN()
		if sum := b.outputs[name]; sum != nil {
			result, _ := sum.result()
			own = result.SpreadSNR
		}
		if measured, ok := snr[name]; ok {
			inner = measured
		}
		found.Outputs = append(found.Outputs, OutputDifference{name, evidence.Figure(own), evidence.Figure(inner)})
		if !(own >= db) {
			found.WithinLimit = false
		}
		if measured, ok := snr[name]; ok {
			worst = math.Min(worst, measured)
		}
		if db > highest {
			highest, found.LimitOf = db, name+" "+from
		}
	}
	found.LimitDB = evidence.Figure(highest)
	if found.WithinLimit && !math.IsInf(worst, 1) {
		found.LimitDB = evidence.Figure(worst + withinMargin)
	}
}

// caseName is the name of the file that has one case.
func caseName(number int) string { return "case-" + leftPad(number) + ".safetensors" }

// caseInputs writes cases into files of their own, so that inner tensors may have shapes that depend on a case.
func caseInputs(v verify.Session, numbers []int, dir string) ([]caseInput, error) {
	var inputs []caseInput
	for _, number := range numbers {
		pieces := run.PiecesOf(v.Cases.Set.Shards, number, 1)
		if len(pieces) != 1 {
			return nil, registry.Errorf(registry.CodeInvalid, "case %d: the release has %s, from 0 on", number, registry.Count(v.Cases.Set.Count, "case"))
		}
		p, to := pieces[0], filepath.Join(dir, caseName(number))
		from := filepath.Join(v.Cases.Dir, filepath.FromSlash(p.Shard.File))
		if err := run.WriteRows(to, []run.RowsOf{{Path: from, First: int64(p.First), End: int64(p.End), Count: int64(p.Shard.Count)}}); err != nil {
			return nil, err
		}
		in, err := caseFile(number, to)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}
