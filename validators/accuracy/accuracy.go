package accuracy

import (
	"cmp"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Counter compares the answers of the reference model and of an engine to the same cases with
// their labels, by one metric. The zero Counter counts top1, and has no cases.
type Counter struct {
	metric            Metric
	probability       bool // outputs are probabilities
	seed              uint64
	rated             []rated       // of a rate: each case
	count             int           // answers
	hits              [2]int        // that the reference model and the engine have right
	reference, engine side          // of what is no rate
	labelled          map[int32]int // of top1: the cases by their label, if a case has one
}

// rated is one case: the parts of its answers that only the reference model has right, that only
// the engine has, and that the engine has; and how many answers there are.
type rated struct {
	lost, won, right  float64
	answers           int
	reference, engine int32 // the class that each answers, where that is one
}

// Classes that are none.
const (
	noClass      int32 = -1 // there is no answer: a score is NaN
	unknownClass int32 = -2 // the answer is not one class, or it is not known
)

// NewCounter returns a counter for a metric. probability says that outputs are probabilities and
// not scores; seed is that of bounds by the bootstrap.
func NewCounter(m Metric, probability bool, seed uint64) *Counter {
	c := &Counter{metric: m, probability: probability, seed: seed}
	if m.side != nil {
		o := options{probability}
		c.reference, c.engine = m.side(o), m.side(o)
	}
	return c
}

// Add takes the outputs for some cases, which are the rows of all tensors. What they have to look
// like follows from the metric: see [Needs]. Where scores are ranked, the largest value is the
// answer, and a row with a NaN has none. A negative label of such a row says that no answer counts
// there. Errors: of kind tensor.ErrMismatch for outputs and labels that do not fit together, and for
// cases whose outputs have no elements: they would have no answer, and no figure would show it. Only
// of boxes there may be none.
func (c *Counter) Add(reference, engine, labels tensor.Tensor) error {
	for _, output := range []tensor.Tensor{reference, engine} {
		if len(output.Shape) > 0 && output.Shape[0] > 0 && output.Len() == 0 && c.metric.Needs != NeedsBoxes {
			return mismatchf("outputs of shape %v have no elements: there is no answer to compare with a label", output.Shape)
		}
	}
	if c.probability && c.metric.Needs == NeedsAnswers {
		reference, engine = yesOrNo(reference, labels), yesOrNo(engine, labels)
	}
	if c.metric.ranks() {
		return c.metric.ranked(reference, engine, labels, c.add)
	}
	return c.add(reference, engine, labels)
}

// yesOrNo takes one probability for each label for the answer 1 from a half on, else 0; NaN is none. Other outputs stay as they are.
func yesOrNo(output, labels tensor.Tensor) tensor.Tensor {
	if output.DType.Class() != tensor.ClassFloat || labels.DType.Class() == tensor.ClassFloat || output.Len() != labels.Len() {
		return output
	}
	answers := make([]int64, output.Len())
	for i := range answers {
		switch p := output.Float64(i); {
		case math.IsNaN(p):
			answers[i] = int64(noClass)
		case p >= 0.5:
			answers[i] = 1
		}
	}
	if of, err := tensor.New(answers, labels.Shape...); err == nil {
		return of
	}
	return output
}

// AddRight takes cases to which the reference model and the engine give the labels as answers. Errors: those of [Counter.Add], also for labels
// from which no outputs can be made.
func (c *Counter) AddRight(labels tensor.Tensor) error {
	if c.metric.Needs != NeedsBoxes {
		return c.Add(labels, labels, labels)
	}
	if n := len(labels.Shape); n < 3 || labels.Shape[n-1] != labelWidth {
		return mismatchf("labels have shape %v: want [cases, boxes, %d]", labels.Shape, labelWidth)
	}
	var found []float64
	for of := range slices.Chunk(labels.Float64s(), labelWidth) {
		found = append(append(found, of[:4]...), 1, of[4])
	}
	right, err := tensor.New(found, append(slices.Clone(labels.Shape[:len(labels.Shape)-1]), detectionWidth)...)
	if err != nil {
		return err
	}
	return c.Add(right, right, labels)
}

func (c *Counter) add(reference, engine, labels tensor.Tensor) error {
	if c.reference != nil {
		if err := c.reference.add(reference, labels); err != nil {
			return err
		}
		return c.engine.add(engine, labels)
	}
	r, err := c.answers(reference, labels)
	if err != nil {
		return err
	}
	e, err := c.answers(engine, labels)
	if err != nil || len(r) == 0 {
		return err
	}
	each := len(r) / int(labels.Shape[0])
	var said [2][]int32
	if each == 1 && cmp.Or(c.metric.Name, Top1) == Top1 {
		c.countLabels(labels, len(r))
		said = [2][]int32{classesOf(reference, len(r)), classesOf(engine, len(r))}
	}
	n := 0
	for i := range slices.Chunk(r, each) {
		of := rateCase(i, e[:each])
		if said[0] != nil && said[1] != nil {
			of.reference, of.engine = said[0][n], said[1][n]
		}
		c.rate(of)
		e = e[each:]
		n++
	}
	return nil
}

func (c *Counter) countLabels(labels tensor.Tensor, n int) {
	if c.labelled == nil {
		c.labelled = make(map[int32]int)
	}
	for _, class := range classesOf(labels, n) {
		c.labelled[class]++
	}
}

// MostFrequent returns the accuracy of an engine that always answers the most frequent label. It is NaN for other metrics than top1, and if
// cases have several labels.
func (c *Counter) MostFrequent() float64 {
	most := 0
	for _, n := range c.labelled {
		most = max(most, n)
	}
	if most == 0 || c.Cases() == 0 {
		return math.NaN()
	}
	return float64(most) / float64(c.Cases())
}

// classesOf are the classes that an output has as its answers to n cases; nil if they are not one small number each.
func classesOf(output tensor.Tensor, n int) []int32 {
	classes := make([]int32, 0, n)
	if output = integers(output); output.DType.Class() == tensor.ClassInteger && output.Len() == n {
		for i := range n {
			class := output.Float64(i)
			if class < 0 || class > math.MaxInt32 {
				return nil
			}
			classes = append(classes, int32(class))
		}
		return classes
	}
	best, err := tensor.ArgmaxRows(output)
	if err != nil || len(best) != n {
		return nil
	}
	for _, class := range best {
		if class > math.MaxInt32 {
			return nil
		}
		classes = append(classes, max(int32(class), noClass))
	}
	return classes
}

// answers says of each answer whether it is right.
func (c *Counter) answers(output, labels tensor.Tensor) ([]bool, error) {
	if c.metric.top > 1 {
		var right []bool
		err := eachRanked(output, labels, func(rows [][]float64, classes []int) error {
			for i, row := range rows {
				if len(row) <= c.metric.top {
					return mismatchf("outputs have scores of %d classes: %s of so few is always right", len(row), c.metric.Name)
				}
				right = append(right, rank(row, classes[i]) < c.metric.top)
			}
			return nil
		})
		return right, err
	}
	right, err := tensor.Right(integers(output), integers(labels))
	if err != nil || c.metric.Name != Exact || len(right) == 0 {
		return right, err
	}
	var whole []bool
	for of := range slices.Chunk(right, len(right)/int(labels.Shape[0])) {
		whole = append(whole, !slices.Contains(of, false))
	}
	return whole, nil
}

// integers takes booleans as 0 and 1.
func integers(t tensor.Tensor) tensor.Tensor {
	if t.DType == tensor.Bool {
		t.DType = tensor.Uint8
		t.Data = slices.Clone(t.Data)
		for i, b := range t.Data {
			t.Data[i] = min(b, 1)
		}
	}
	return t
}

// rateCase counts the answers to one case.
func rateCase(reference, engine []bool) rated {
	var right, lost, won int
	for i, r := range reference {
		e := engine[i]
		right += one(e)
		lost += one(r && !e)
		won += one(e && !r)
	}
	n := float64(len(reference))
	return rated{float64(lost) / n, float64(won) / n, float64(right) / n, len(reference), unknownClass, unknownClass}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Cases returns the number of cases that were added.
func (c *Counter) Cases() int {
	return len(c.all())
}

// all are the numbers of the cases.
func (c *Counter) all() []int {
	n := len(c.rated)
	if c.engine != nil {
		n = c.engine.size()
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Result returns the metric of both sides, the drop from the reference model's to the engine's, and
// what decides whether the drop is more than chance. A negative drop is a gain.
func (c *Counter) Result() evidence.Accuracy {
	if f := c.Figures(); f != nil {
		return f.Accuracy()
	}
	a := c.rateOf(c.all())
	share := func(n int) evidence.Figure { return evidence.Figure(float64(n) / float64(max(c.count, 1))) }
	a.Reference, a.Engine, a.Drop, a.Count = share(c.hits[0]), share(c.hits[1]), share(c.hits[0])-share(c.hits[1]), c.count
	return a
}

// rateOf is the rate of some of the cases, each of which counts as much.
func (c *Counter) rateOf(cases []int) evidence.Accuracy {
	sum := func(of func(rated) float64) evidence.Figure {
		values := make([]float64, len(cases))
		for i, n := range cases {
			values[i] = of(c.rated[n])
		}
		return evidence.Figure(total(values))
	}
	a := evidence.Accuracy{Metric: cmp.Or(c.metric.Name, Top1), Cases: len(cases), Count: len(cases)}
	a.Lost = sum(func(r rated) float64 { return r.lost })
	a.Won = sum(func(r rated) float64 { return r.won })
	a.Right = sum(func(r rated) float64 { return r.right })
	n := evidence.Figure(max(len(cases), 1))
	a.Reference, a.Engine, a.Drop = (a.Right+a.Lost-a.Won)/n, a.Right/n, (a.Lost-a.Won)/n
	return a
}

// Figures returns what the bounds of the metric are computed from; nil for a rate, whose counts are
// in the result.
func (c *Counter) Figures() *Figures { return c.figuresOf(c.all()) }

func (c *Counter) figuresOf(cases []int) *Figures {
	if c.reference == nil {
		return nil
	}
	f := &Figures{Metric: c.metric, Seed: c.seed, Reference: c.reference.contributions(cases), Engine: c.engine.contributions(cases)}
	if jumps, ok := c.reference.(jumping); ok {
		f.lost = jumps.lost(cases, c.engine, *f)
	}
	return f
}
