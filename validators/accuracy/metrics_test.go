package accuracy_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func metric(t *testing.T, name string) accuracy.Metric {
	t.Helper()
	m, err := accuracy.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Only metrics that try more than one score say how many: others need no output with more classes.
func TestTop(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{accuracy.Top1: 0, "top2": 2, "top10": 10, accuracy.Exact: 0, "perplexity": 0} {
		if got := metric(t, name).Top(); got != want {
			t.Errorf("%s tries %d scores, want %d", name, got, want)
		}
	}
}

// set is cases of a kind that a metric takes: n rows of outputs and labels.
type set struct {
	outputs, labels []float64
	width           int // of the outputs of a case
	each            int // labels of a case; 0 is 1
}

func (s set) cases() int { return len(s.labels) / max(s.each, 1) }

const (
	classes = 12 // of scores: more than any metric tries
	common  = 4  // of them are labels
)

// sets draws cases for every metric.
func sets(r *rand.Rand, m accuracy.Metric, n int) (reference, engine set) {
	reference, engine = set{width: 1}, set{width: 1}
	if m.Needs == accuracy.NeedsBoxes {
		return boxSets(r, n)
	}
	if m.Needs == accuracy.NeedsProgram {
		return scoreSets(r, n)
	}
	if m.Needs == accuracy.NeedsMarks {
		return markSets(r, n)
	}
	for range n {
		label := float64(r.IntN(common))
		switch m.Needs {
		case accuracy.NeedsScores, accuracy.NeedsAnswers, accuracy.NeedsSeveral, accuracy.NeedsPlaces:
			width := common
			if m.Needs == accuracy.NeedsScores {
				width = classes
			}
			reference.width, engine.width = width, width
			for c := range width {
				v := math.Round(4 * r.NormFloat64()) // so that some are tied
				switch {
				case c == int(label):
					v += 3
				case c >= common:
					v -= 5
				}
				reference.outputs, engine.outputs = append(reference.outputs, v), append(engine.outputs, v+math.Round(r.NormFloat64()))
			}
		case accuracy.NeedsTwo:
			label = float64(r.IntN(2))
			v := math.Round(2*label + 2*r.NormFloat64())
			reference.outputs, engine.outputs = append(reference.outputs, v), append(engine.outputs, v+math.Round(r.NormFloat64()))
		default:
			label = 10 + 3*r.NormFloat64()
			v := label + r.NormFloat64()
			reference.outputs, engine.outputs = append(reference.outputs, v), append(engine.outputs, v+0.3*r.NormFloat64())
		}
		reference.labels = append(reference.labels, label)
	}
	engine.labels = reference.labels
	return reference, engine
}

// marked is how many labels a case of a multi-label model has.
const marked = 3

func markSets(r *rand.Rand, n int) (reference, engine set) {
	reference, engine = set{width: marked, each: marked}, set{width: marked, each: marked}
	for range marked * n {
		label := float64(r.IntN(2))
		v := math.Round(2*label + 2*r.NormFloat64())
		reference.outputs, engine.outputs = append(reference.outputs, v), append(engine.outputs, v+math.Round(r.NormFloat64()))
		reference.labels = append(reference.labels, label)
	}
	engine.labels = reference.labels
	return reference, engine
}

// label is one of the labels of each case.
func (s set) label(n int) set {
	of := set{width: 1}
	for i := n; i < len(s.labels); i += s.each {
		of.outputs, of.labels = append(of.outputs, s.outputs[i]), append(of.labels, s.labels[i])
	}
	return of
}

func (s set) tensors(t *testing.T, m accuracy.Metric) (outputs, labels tensor.Tensor) {
	t.Helper()
	n := int64(s.cases())
	outputs = of(t, s.outputs, n, int64(s.width))
	if m.Needs == accuracy.NeedsBoxes {
		return of(t, s.outputs, n, int64(s.width/6), 6), of(t, s.labels, n, int64(s.each/5), 5)
	}
	if m.Needs == accuracy.NeedsValues || m.Needs == accuracy.NeedsOne {
		return outputs, of(t, s.labels, n)
	}
	if m.Needs == accuracy.NeedsMarks {
		return outputs, of(t, s.labels, n, marked)
	}
	whole := make([]int64, n)
	for i, l := range s.labels {
		whole[i] = int64(l)
	}
	return outputs, of(t, whole, n)
}

// counted adds cases in pieces, as shards come.
func counted(t *testing.T, m accuracy.Metric, reference, engine set, pieces int) *accuracy.Counter {
	t.Helper()
	c := accuracy.NewCounter(m, false, 7)
	r, labels := reference.tensors(t, m)
	e, _ := engine.tensors(t, m)
	n := int64(reference.cases())
	for i := range int64(pieces) {
		from, to := i*n/int64(pieces), (i+1)*n/int64(pieces)
		if m.Needs == accuracy.NeedsProgram {
			if err := c.AddScores(reference.outputs[from:to], engine.outputs[from:to]); err != nil {
				t.Fatalf("%s: %v", m.Name, err)
			}
			continue
		}
		rows := func(t tensor.Tensor) tensor.Tensor { out, _ := t.Rows(from, to); return out }
		if err := c.Add(rows(r), rows(e), rows(labels)); err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
	}
	return c
}

// naive computes metrics by their definitions.
func naive(m accuracy.Metric, s set) float64 {
	n := float64(len(s.labels))
	sum := func(each func(i int, row []float64, label float64) float64) float64 {
		total := 0.0
		for i, label := range s.labels {
			total += each(i, s.outputs[i*s.width:(i+1)*s.width], label)
		}
		return total
	}
	top := func(k int) float64 {
		return sum(func(_ int, row []float64, label float64) float64 {
			order := make([]int, s.width)
			for c := range order {
				order[c] = c
			}
			slices.SortStableFunc(order, func(a, b int) int { return int(row[b] - row[a]) })
			if slices.Contains(order[:k], int(label)) {
				return 1
			}
			return 0
		}) / n
	}
	f1 := func(class float64) float64 {
		var hits, all float64
		sum(func(_ int, row []float64, label float64) float64 {
			got := float64(slices.Index(row, slices.Max(row)))
			if got == class {
				all++
			}
			if label == class {
				all++
			}
			if got == class && label == class {
				hits++
			}
			return 0
		})
		return 2 * hits / all
	}
	switch m.Name {
	case accuracy.AUCMacro:
		total := 0.0
		for label := range marked {
			total += naive(accuracy.Metric{Name: accuracy.AUC}, s.label(label))
		}
		return total / marked
	case "top1", "exact", "prefix": // of one answer each
		return top(1)
	case "top2":
		return top(2)
	case "top3":
		return top(3)
	case "top5":
		return top(5)
	case "top10":
		return top(10)
	case "f1_binary":
		return f1(1)
	case "miou":
		iou := func(class float64) float64 { return f1(class) / (2 - f1(class)) }
		return (iou(0) + iou(1) + iou(2) + iou(3)) / 4
	case "f1_macro":
		return (f1(0) + f1(1) + f1(2) + f1(3)) / 4
	case "auc":
		var pairs, right float64
		sum(func(_ int, row []float64, label float64) float64 {
			return sum(func(_ int, other []float64, zero float64) float64 {
				if label == 1 && zero == 0 {
					pairs++
					switch {
					case row[0] > other[0]:
						right++
					case row[0] == other[0]:
						right += 0.5
					}
				}
				return 0
			})
		})
		return right / pairs
	case "mae":
		return sum(func(_ int, row []float64, label float64) float64 { return math.Abs(row[0] - label) }) / n
	case "mape":
		return sum(func(_ int, row []float64, label float64) float64 { return math.Abs(row[0]-label) / math.Abs(label) }) / n
	case "rmse":
		return math.Sqrt(sum(func(_ int, row []float64, label float64) float64 { return (row[0] - label) * (row[0] - label) }) / n)
	case "r2":
		center := sum(func(_ int, _ []float64, label float64) float64 { return label }) / n
		return 1 - sum(func(_ int, row []float64, label float64) float64 { return (row[0] - label) * (row[0] - label) })/
			sum(func(_ int, _ []float64, label float64) float64 { return (label - center) * (label - center) })
	case "program", "program_lower":
		return sum(func(_ int, row []float64, _ float64) float64 { return row[0] }) / n
	case "map50":
		return naivePrecision(s, 1)
	case "map":
		return naivePrecision(s, 10)
	case "perplexity":
		return math.Exp(sum(func(_ int, row []float64, label float64) float64 {
			all := 0.0
			for _, v := range row {
				all += math.Exp(v)
			}
			return math.Log(all) - row[int(label)]
		}) / n)
	}
	return math.NaN()
}

// Every metric gives what its definition gives, for both sides, however the cases are cut and
// in whatever order they come.
func TestMetricsAgainstTheirDefinitions(t *testing.T) {
	t.Parallel()
	for _, name := range accuracy.Metrics() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := metric(t, name)
			r := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{12, 60, 301} {
				reference, engine := sets(r, m, n)
				a := counted(t, m, reference, engine, 3)
				got := a.Result()
				for side, want := range map[string][2]float64{"reference": {float64(got.Reference), naive(m, reference)},
					"engine": {float64(got.Engine), naive(m, engine)}} {
					if math.Abs(want[0]-want[1]) > 1e-12*math.Max(1, want[1]) {
						t.Errorf("%d cases, %s: got %v, want %v", n, side, want[0], want[1])
					}
				}
				order := r.Perm(n)
				b := counted(t, m, permuted(reference, order), permuted(engine, order), 1)
				if again := b.Result(); again != got {
					t.Errorf("%d cases in another order: got %+v, want %+v", n, again, got)
				}
				checkFigures(t, a.Figures(), b.Figures())
			}
		})
	}
}

func permuted(s set, order []int) set {
	out := set{width: s.width, each: s.each}
	each := max(s.each, 1)
	for _, i := range order {
		out.outputs = append(out.outputs, s.outputs[i*s.width:(i+1)*s.width]...)
		out.labels = append(out.labels, s.labels[i*each:(i+1)*each]...)
	}
	return out
}

// checkFigures checks that bounds are around the value, and are the same for the same cases in
// another order.
func checkFigures(t *testing.T, f, other *accuracy.Figures) {
	t.Helper()
	if f == nil {
		return
	}
	for name, of := range map[string]func(accuracy.Figures, float64) accuracy.Bounded{
		"absolute": accuracy.Figures.Absolute, "drop": accuracy.Figures.Drop, "relative": accuracy.Figures.Relative,
	} {
		b := of(*f, 0.95)
		if reference, _ := f.Sides(); name == "relative" && reference == 0 {
			continue
		}
		if !(b.Low <= b.Value && b.Value <= b.High) {
			t.Errorf("%s: %v is not between its bounds %v and %v", name, b.Value, b.Low, b.High)
		}
		if again := of(*other, 0.95); again != b {
			t.Errorf("%s: in another order %+v, want %+v", name, again, b)
		}
		if wider := of(*f, 0.99); wider.Low > b.Low || wider.High < b.High {
			t.Errorf("%s: at 99 %% %+v is narrower than at 95 %% %+v", name, wider, b)
		}
	}
}

// An engine that gives the same outputs drops by nothing, and that is proven as far as the cases
// go: of a smooth metric wholly, of one that jumps as of a rate.
func TestSameOutputs(t *testing.T) {
	t.Parallel()
	for _, name := range accuracy.Metrics() {
		m := metric(t, name)
		if m.Rate {
			continue
		}
		reference, _ := sets(rand.New(rand.NewPCG(3, 4)), m, 300)
		b := counted(t, m, reference, reference, 1).Figures().Drop(0.95)
		if b.Value != 0 || b.Low > 0 || b.High < 0 || m.Smooth && (b.Low != 0 || b.High != 0) || !m.Smooth && (b.High < 0.001 || b.High > 0.1) {
			t.Errorf("%s: the same outputs drop by %+v", name, b)
		}
		seven := set{reference.outputs[:7*reference.width], reference.labels[:7*max(reference.each, 1)], reference.width, reference.each}
		few := counted(t, m, seven, seven, 1)
		if b := few.Figures().Drop(0.95); !math.IsInf(b.High, 1) {
			t.Errorf("%s: seven cases bound a drop by %+v", name, b)
		}
	}
}

// A perfect F1 or AUC of so many cases proves no more than their number does.
func TestPerfectIsNotProven(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"f1_macro", "auc"} {
		m := metric(t, name)
		s := set{width: 1}
		for i := range 300 {
			s.labels = append(s.labels, float64(i%2))
			s.outputs = append(s.outputs, float64(i%2))
		}
		if m.Needs == accuracy.NeedsAnswers {
			s.width, s.outputs = 2, nil
			for i := range 300 {
				s.outputs = append(s.outputs, float64(1-i%2), float64(i%2))
			}
		}
		b := counted(t, m, s, s, 1).Figures().Absolute(0.95)
		if b.Value != 1 || b.Low > 0.991 || b.Low < 0.95 {
			t.Errorf("%s of 300 right cases: %+v, want a lower bound from 95 to 99.1 %%", name, b)
		}
	}
}

// A prefix ends at the first wrong answer, whatever follows; a row with a NaN is wrong.
func TestPrefix(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	scores := of(t, []float32{
		2, 0, 0, 2, 2, 0, 2, 0, // 0 1 0 0
		2, 0, 0, 2, 2, 0, 2, 0,
		nan, 0, 0, 2, 2, 0, 2, 0,
	}, 3, 4, 2)
	labels := of(t, []int64{0, 1, 0, 0 /**/, 0, 1, 1, 0 /**/, 0, 1, 0, 0}, 3, 4)
	classes := of(t, []int64{0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0}, 3, 4)
	for name, output := range map[string]tensor.Tensor{"scores": scores, "numbers": classes} {
		c := accuracy.NewCounter(metric(t, "prefix"), false, 0)
		if err := c.Add(output, output, labels); err != nil {
			t.Fatal(err)
		}
		if got, want := float64(c.Result().Engine), (1+0.5+0)/3; math.Abs(got-want) > 1e-15 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	// Two cases of three tokens, two classes: one token of the second is wrong.
	scores := of(t, []float32{2, 0, 0, 2, 2, 0, 2, 0, 0, 2, 0, 2}, 2, 3, 2)
	labels := of(t, []int64{0, 1, 0, 0, 1, 0}, 2, 3)
	for name, want := range map[string]float64{"top1": 5. / 6, "exact": 0.5, "f1_binary": 2. * 2 / 5} {
		c := accuracy.NewCounter(metric(t, name), false, 0)
		if err := c.Add(scores, scores, labels); err != nil {
			t.Fatal(err)
		}
		if got := float64(c.Result().Engine); math.Abs(got-want) > 1e-15 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	// A token's surprise is the logarithm of 1+exp(-2), and 2 more where it is wrong.
	c := accuracy.NewCounter(metric(t, "perplexity"), false, 0)
	if err := c.Add(scores, scores, labels); err != nil {
		t.Fatal(err)
	}
	if got, want := float64(c.Result().Engine), math.Exp(math.Log1p(math.Exp(-2))+2./6); math.Abs(got-want) > 1e-12 {
		t.Errorf("perplexity: got %v, want %v", got, want)
	}
}

// Several yes and no per case are an F1 of each, and a NaN is never the right answer.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		metric         string
		output, labels tensor.Tensor
		want           float64
	}{
		"yes and no":            {"f1_macro", of(t, []bool{true, false, true, true}, 2, 2), of(t, []bool{true, true, true, false}, 2, 2), 0.5},
		"all of a case":         {"exact", of(t, []bool{true, false, true, true}, 2, 2), of(t, []uint8{1, 1, 1, 1}, 2, 2), 0.5},
		"class numbers":         {"f1_binary", of(t, []int64{1, 0, 1, 1}, 4), of(t, []int64{1, 1, 0, 1}, 4, 1), 2. / 3},
		"NaN is no answer":      {"f1_macro", of(t, []float32{nan, 1, 0, 1}, 2, 2), of(t, []int64{1, 1}, 2), 2. / 3},
		"NaN is not in the top": {"top2", of(t, []float32{nan, 1, 2, 0, 1, 2}, 2, 3), of(t, []int64{1, 1}, 2), 0.5},
		"NaN ranks wrong":       {"auc", of(t, []float32{nan, 0, nan, 1}, 4), of(t, []int64{0, 0, 1, 1}, 4), 0.25},
		"two scores":            {"auc", of(t, []float32{0, 1, 1, 1, 0, 2, 1, 0}, 4, 2), of(t, []int64{0, 0, 1, 1}, 4), 0.5},
		"tied scores":           {"top2", of(t, []float32{1, 1, 1}, 1, 3), of(t, []int64{2}, 1), 0},
		"several values":        {"mae", of(t, []float32{1, 2, 3, 4}, 2, 2), of(t, []float64{1, 1, 1, 1}, 2, 2), 1.5},
	} {
		counter := accuracy.NewCounter(metric(t, c.metric), false, 0)
		if err := counter.Add(c.output, c.output, c.labels); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := float64(counter.Result().Engine); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestProbabilities(t *testing.T) {
	t.Parallel()
	c := accuracy.NewCounter(metric(t, "perplexity"), true, 0)
	p := of(t, []float32{0.25, 0.75, 0.5, 0.5}, 2, 2)
	if err := c.Add(p, p, of(t, []int64{0, 1}, 2)); err != nil {
		t.Fatal(err)
	}
	if got, want := float64(c.Result().Engine), math.Sqrt(8); math.Abs(got-want) > 1e-12 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is no probability is refused, and a NaN beside the label's leaves no perplexity.
func TestNoProbabilities(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		row  []float32
		says string // empty: the perplexity is NaN
	}{
		"scores":          {[]float32{0.5, 3}, "value 3 is no probability; say kind: scores"},
		"a negative one":  {[]float32{0.5, -0.25}, "value -0.25 is no probability"},
		"above tolerance": {[]float32{1.002, 0}, "is no probability"},
		"NaN elsewhere":   {[]float32{1, nan}, ""},
		"NaN":             {[]float32{nan, 1}, ""},
	} {
		counter := accuracy.NewCounter(metric(t, "perplexity"), true, 0)
		p := of(t, c.row, 1, 2)
		err := counter.Add(p, p, of(t, []int64{0}, 1))
		if c.says != "" {
			if !errors.Is(err, tensor.ErrMismatch) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %v, want a mismatch with %q", name, err, c.says)
			}
			continue
		}
		if got := float64(counter.Result().Engine); err != nil || !math.IsNaN(got) {
			t.Errorf("%s: perplexity %v, error %v; want NaN", name, got, err)
		}
	}
	// One of few digits may be above 1, and the figure says so.
	counter := accuracy.NewCounter(metric(t, "perplexity"), true, 0)
	p := of(t, []float64{1.0005, 0}, 1, 2)
	if err := counter.Add(p, p, of(t, []int64{0}, 1)); err != nil {
		t.Fatal(err)
	}
	if got, want := float64(counter.Result().Engine), 1/1.0005; math.Abs(got-want) > 1e-12 {
		t.Errorf("perplexity %v, want %v", got, want)
	}
}

// F1 has no value where no label is of a class that it counts, also in a slice.
func TestNothingToFind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metric                    string
		reference, engine, labels tensor.Tensor
	}{
		"class 1": {"f1_binary", of(t, []int64{0, 1, 1, 0}, 4), of(t, []int64{1, 1, 1, 1}, 4), of(t, []int64{0, 0, 1, 0}, 4)},
		"yes and no": {"f1_macro", of(t, []bool{false, false, false, false, true, false, false, false}, 4, 2),
			of(t, []bool{true, true, true, true, true, true, true, true}, 4, 2), of(t, []bool{false, false, false, false, true, false, false, false}, 4, 2)},
	} {
		counter := accuracy.NewCounter(metric(t, c.metric), false, 0)
		if err := counter.Add(c.reference, c.engine, c.labels); err != nil {
			t.Fatal(err)
		}
		parts, err := counter.Slices([]int64{0, 0, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, none := range []bool{true, false} {
			a, drop := parts[i].Accuracy, parts[i].Figures.Drop(0.95)
			for what, v := range map[string]float64{"reference": float64(a.Reference), "engine": float64(a.Engine), "drop": drop.Value} {
				if math.IsNaN(v) != none {
					t.Errorf("%s, %s of slice %d: %v, want NaN: %v", name, what, i, v, none)
				}
			}
			if none && !(math.IsInf(drop.Low, -1) && math.IsInf(drop.High, 1)) {
				t.Errorf("%s: bounds of a drop %+v, want none", name, drop)
			}
		}
	}
}

func TestMetricsRefuse(t *testing.T) {
	t.Parallel()
	scores := of(t, make([]float32, 6), 2, 3)
	for name, c := range map[string]struct {
		metric         string
		output, labels tensor.Tensor
	}{
		"a class too high":        {"top2", scores, of(t, []int64{0, 3}, 2)},
		"no label of a case":      {"perplexity", scores, of(t, []int64{0, -1}, 2)},
		"classes in two places":   {"miou", of(t, make([]float32, 54), 2, 3, 3, 3), of(t, make([]int64, 18), 2, 3, 3)},
		"labels that are floats":  {"f1_macro", scores, of(t, []float32{0, 1}, 2)},
		"a label of 0":            {"mape", of(t, []float32{1, 2}, 2), of(t, []float32{0, 1}, 2)},
		"a label too few":         {"rmse", scores, of(t, []float32{0, 1}, 2)},
		"other cases":             {"mae", scores, of(t, make([]float32, 9), 3, 3)},
		"three scores":            {"auc", scores, of(t, []int64{0, 1}, 2)},
		"three classes":           {"auc", of(t, []float32{0, 1, 2}, 3), of(t, []int64{0, 1, 2}, 3)},
		"classes as yes and no":   {"f1_macro", of(t, []int64{1, 2, 0, 1}, 2, 2), of(t, []int64{1, 2, 0, 1}, 2, 2)},
		"a scalar and a text":     {"prefix", of(t, []float32{1}), of(t, []int64{-1})},
		"two of a label":          {"auc_macro", scores, of(t, []int64{0, 1, 2, 0, 1, 1}, 2, 3)},
		"a label for several":     {"auc_macro", scores, of(t, []int64{0, 1}, 2)},
		"several values per case": {"r2", scores, of(t, make([]float32, 6), 2, 3)},
		"scalars":                 {"mae", of(t, []float32{1}), of(t, []float32{1})},
		"as many classes":         {"top3", scores, of(t, []int64{0, 1}, 2)},
		"fewer classes":           {"top10", scores, of(t, []int64{0, 1}, 2)},
		"tokens of other texts":   {"prefix", of(t, make([]float32, 12), 2, 3, 2), of(t, make([]int64, 4), 2, 2)},
		"answers to nothing":      {"top1", of(t, []int64{}, 2, 0), of(t, []int64{}, 2, 0)},
		"values of nothing":       {"mae", of(t, []float32{}, 2, 0), of(t, []float32{}, 2, 0)},
		"scores of no class":      {"perplexity", of(t, []float32{}, 2, 0), of(t, []int64{0, 1}, 2)},
	} {
		err := accuracy.NewCounter(metric(t, c.metric), false, 0).Add(c.output, c.output, c.labels)
		if !errors.Is(err, tensor.ErrMismatch) {
			t.Errorf("%s: error %v, want a mismatch", name, err)
		}
	}
	for _, name := range []string{"", "mAP", "top4"} {
		if _, err := accuracy.Find(name); err == nil {
			t.Errorf("metric %q is found", name)
		}
	}
}
