// Package accuracy measures outputs against labels.
//
// A [Metric] is either a rate of cases, each of which is right or wrong, or a figure of the whole
// set. A figure is kept as one contribution of each case, whose mean it is: the error of the case,
// or for a statistic of the set, such as F1, what the case changes of it (the infinitesimal
// jackknife: Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982, chapter 6). So
// every bound is one of a mean over cases, and a drop is a mean of paired differences.
package accuracy

import (
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Needs says what a metric needs of an output and of the labels.
type Needs string

// What metrics need.
const (
	NeedsScores  Needs = "scores"  // [..., classes] or [cases, classes, ...], and the class numbers [...] as labels
	NeedsAnswers Needs = "answers" // scores, or integers or booleans of the shape of the labels
	NeedsSeveral Needs = "several" // the same, with several answers for each case
	NeedsPlaces  Needs = "places"  // scores of classes, or class numbers, at several places of each case
	NeedsTwo     Needs = "two"     // one score for each case, or one for each of two classes; labels 0 and 1
	NeedsMarks   Needs = "marks"   // several numbers for each case, and as many labels 0 and 1
	NeedsValues  Needs = "values"  // numbers of the shape of the labels, which are numbers too
	NeedsOne     Needs = "one"     // one number for each case, and as label
	NeedsBoxes   Needs = "boxes"   // detections [..., n, 6]: x1, y1, x2, y2, score, class; labels [..., k, 5] without scores
	NeedsProgram Needs = "program" // a program of the user, which reads all outputs and the cases
)

// The names of the metrics that other packages mean.
const (
	Top1  = "top1"
	MAE   = "mae"
	MAPE  = "mape" // mean relative error
	RMSE  = "rmse"
	Exact = "exact"
	AUC   = "auc"

	// F1Binary is the F1 of class 1.
	F1Binary = "f1_binary"
	// AUCMacro is the mean AUC of several labels.
	AUCMacro = "auc_macro"

	// MeanIoU is the mean intersection over union of the classes that have labels.
	MeanIoU = "miou"
)

// Metric is one of a closed set. The zero Metric is none.
type Metric struct {
	Name  string
	Needs Needs
	// Rate: it is the share of cases that are right, with exact bounds. Else its bounds are by a
	// seeded bootstrap over cases.
	Rate bool
	// Loss: less is better, and the figure has no largest value. So what an engine loses is
	// relative to the other side's: see [Figures.Drop].
	Loss bool
	// Smooth: a small difference of an output makes a small difference of the figure.
	Smooth bool

	top   int                   // of top-k
	side  func(options) side    // of what is no rate
	outer func(float64) float64 // makes the figure of the mean of contributions; nil is the mean itself
	log   bool                  // contributions are logarithms
}

// options are what the figures of a side depend on beside the metric.
type options struct {
	probability bool // outputs are probabilities, not scores
}

var metrics = []Metric{
	{Name: Top1, Needs: NeedsAnswers, Rate: true, top: 1},
	{Name: "top2", Needs: NeedsScores, Rate: true, top: 2},
	{Name: "top3", Needs: NeedsScores, Rate: true, top: 3},
	{Name: "top5", Needs: NeedsScores, Rate: true, top: 5},
	{Name: "top10", Needs: NeedsScores, Rate: true, top: 10},
	{Name: Exact, Needs: NeedsAnswers, Rate: true},
	{Name: "prefix", Needs: NeedsSeveral, side: func(options) side { return &prefix{} }},
	{Name: "f1_macro", Needs: NeedsAnswers, side: func(options) side { return &confusion{} }},
	{Name: F1Binary, Needs: NeedsAnswers, side: func(options) side { return &confusion{binary: true} }},
	{Name: MeanIoU, Needs: NeedsPlaces, side: func(options) side { return &overlap{} }},
	{Name: AUC, Needs: NeedsTwo, side: func(options) side { return &ranking{} }},
	{Name: AUCMacro, Needs: NeedsMarks, side: func(options) side { return &rankings{} }},
	{Name: "r2", Needs: NeedsOne, Smooth: true, side: func(options) side { return &explained{} }},
	{Name: MAE, Needs: NeedsValues, Loss: true, Smooth: true, side: func(options) side {
		return &errorsOf{each: func(got, want float64) float64 { return math.Abs(got - want) }, column: "error"}
	}},
	{Name: MAPE, Needs: NeedsValues, Loss: true, Smooth: true, side: func(options) side {
		return &errorsOf{each: func(got, want float64) float64 { return math.Abs(got-want) / math.Abs(want) }, column: "relativeError", relative: true}
	}},
	{Name: RMSE, Needs: NeedsValues, Loss: true, Smooth: true, outer: root,
		side: func(options) side {
			return &errorsOf{each: func(got, want float64) float64 { return (got - want) * (got - want) }, column: "squaredError"}
		}},
	{Name: "map50", Needs: NeedsBoxes, side: func(options) side { return &detection{overlaps: 1} }},
	{Name: "map", Needs: NeedsBoxes, side: func(options) side { return &detection{overlaps: len(overlaps)} }},
	{Name: "perplexity", Needs: NeedsScores, Loss: true, Smooth: true, outer: math.Exp, log: true,
		side: func(o options) side { return &likelihood{probability: o.probability} }},
	{Name: Program, Needs: NeedsProgram, side: func(options) side { return &scores{} }},
	{Name: ProgramLower, Needs: NeedsProgram, Loss: true, side: func(options) side { return &scores{loss: true} }},
}

// Metrics lists the names of the metrics.
func Metrics() []string {
	var names []string
	for _, m := range metrics {
		names = append(names, m.Name)
	}
	return names
}

// Find returns a metric by name. Errors: CodeInvalid for a name that is none.
func Find(name string) (Metric, error) {
	at := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == name })
	if at >= 0 {
		return metrics[at], nil
	}
	return Metric{}, registry.Errorf(registry.CodeInvalid, "accuracy metric %.40q: want one of %s", name, strings.Join(Metrics(), ", "))
}

// ranks reports whether the metric takes the class of the largest score as the answer.
func (m Metric) ranks() bool {
	return m.Needs == NeedsScores || m.Needs == NeedsAnswers || m.Needs == NeedsSeveral || m.Needs == NeedsPlaces || m.Name == ""
}

// Top returns how many of the largest scores are tried, of a metric that tries more than one; else 0.
func (m Metric) Top() int {
	if m.top > 1 {
		return m.top
	}
	return 0
}

// Figure returns the figure of a mean of contributions.
func (m Metric) Figure(mean float64) float64 {
	if m.outer == nil || math.IsInf(mean, 0) {
		return mean
	}
	return m.outer(mean)
}

// root is the square root of a mean of squares. A bound on such a mean may be negative; its root is 0.
func root(mean float64) float64 { return math.Sqrt(max(mean, 0)) }

// side collects the cases of one side, the reference model or an engine.
type side interface {
	// add adds the cases that are the rows of both tensors.
	add(output, labels tensor.Tensor) error
	size() int // cases that were added
	// contributions returns those of some of the cases, by their numbers in the order in which they
	// were added, to the figure of these cases.
	contributions(of []int) Contributions
	// columns returns what was kept of the cases; restore reads the same again.
	columns() Columns
	restore(r *reading)
}

// Contributions are one number for each case, of which the mean is the figure, or for some metrics
// what the figure is made of.
type Contributions struct {
	Each []float64
	// Least and Most are what a case can contribute; of a smooth metric, what any did.
	Least, Most float64
	// Rare: a part of the figure, such as a class, is that of fewer than 8 cases, whose spread says nothing of what others would have.
	Rare bool
	// weight is what the figure loses, times the number of cases, if everything is wrong that is right in the case with most of it.
	weight float64
	rarest Class
}

// Class is a class, or a label, and how many cases have it.
type Class struct{ Number, Cases int }

// rarer returns the class that fewer cases have; that of no cases is none.
func (c Class) rarer(than Class) Class {
	if than.Cases == 0 || c.Cases > 0 && c.Cases <= than.Cases {
		return c
	}
	return than
}

// rareCases is from how many cases on their spread says something.
const rareCases = 8
