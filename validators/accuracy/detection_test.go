package accuracy_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	drawnLabels     = 3 // of a case of boxSets, padding included
	drawnDetections = 8
	drawnClasses    = 3
)

// boxSets draws cases of boxes: labels that are found, missed and found twice, and false alarms.
func boxSets(r *rand.Rand, n int) (reference, engine set) {
	reference = set{width: 6 * drawnDetections, each: 5 * drawnLabels}
	engine = reference
	for range n {
		var labels, outputs, worse []float64
		for range drawnLabels {
			x, y := 50*r.Float64(), 50*r.Float64()
			label := []float64{x, y, x + 10 + 20*r.Float64(), y + 10 + 20*r.Float64(), float64(r.IntN(drawnClasses))}
			for range r.IntN(3) {
				outputs = append(outputs, near(r, label[:4], 3)...)
				outputs = append(outputs, math.Round(20*(0.3+r.Float64()))/20, label[4])
			}
			if r.IntN(4) == 0 {
				label[4] = -1 // padding
			}
			labels = append(labels, label...)
		}
		for len(outputs) < 6*drawnDetections {
			x, y, class := 50*r.Float64(), 50*r.Float64(), float64(r.IntN(drawnClasses+1)-1)
			outputs = append(outputs, x, y, x+20*r.Float64(), y+20*r.Float64(), math.Round(20*r.Float64())/20, class)
		}
		for of := range slices.Chunk(outputs, 6) {
			worse = append(append(worse, near(r, of[:4], 0.5)...), of[4], of[5])
		}
		reference.outputs, engine.outputs = append(reference.outputs, outputs...), append(engine.outputs, worse...)
		reference.labels = append(reference.labels, labels...)
	}
	engine.labels = reference.labels
	return reference, engine
}

// near moves the corners of a box.
func near(r *rand.Rand, box []float64, by float64) []float64 {
	moved := slices.Clone(box)
	for i := range moved {
		moved[i] += by * r.NormFloat64()
	}
	return moved
}

// naivePrecision is mAP by its definition, over the first of the overlaps from 0.5 on.
func naivePrecision(s set, overlaps int) float64 {
	var all []float64
	for class := range drawnClasses {
		for i := range overlaps {
			if p := naiveCurve(s, float64(class), 0.5+0.05*float64(i)); !math.IsNaN(p) {
				all = append(all, p)
			}
		}
	}
	sum := 0.0
	for _, p := range all {
		sum += p
	}
	return sum / float64(len(all))
}

// naiveCurve is the average precision of a class; NaN without labels.
func naiveCurve(s set, class, overlap float64) float64 {
	type answer struct {
		score float64
		right bool
	}
	var answers []answer
	labels := 0.0
	for n := range s.cases() {
		var wanted, got [][]float64
		for l := range slices.Chunk(s.labels[n*s.each:(n+1)*s.each], 5) {
			if l[4] == class {
				wanted = append(wanted, l)
			}
		}
		for d := range slices.Chunk(s.outputs[n*s.width:(n+1)*s.width], 6) {
			if d[5] == class {
				got = append(got, d)
			}
		}
		labels += float64(len(wanted))
		slices.SortFunc(got, func(a, b []float64) int { return cmp.Or(cmp.Compare(b[4], a[4]), slices.Compare(a, b)) })
		for _, d := range got {
			best := -1
			for i, l := range wanted {
				if v := naiveOverlap(d, l); v >= overlap && (best < 0 || v > naiveOverlap(d, wanted[best])) {
					best = i
				}
			}
			answers = append(answers, answer{d[4], best >= 0})
			if best >= 0 {
				wanted = slices.Delete(wanted, best, best+1)
			}
		}
	}
	if labels == 0 {
		return math.NaN()
	}
	var curve [][2]float64 // recall and precision down to the score of each answer
	for _, a := range answers {
		var hits, detections float64
		for _, b := range answers {
			if b.score >= a.score {
				detections++
				if b.right {
					hits++
				}
			}
		}
		curve = append(curve, [2]float64{hits / labels, hits / detections})
	}
	precision := 0.0
	for level := range 101 {
		best := 0.0
		for _, at := range curve {
			if at[0] >= float64(level)*0.01 {
				best = max(best, at[1])
			}
		}
		precision += best / 101
	}
	return precision
}

func naiveOverlap(a, b []float64) float64 {
	w, h := min(a[2], b[2])-max(a[0], b[0]), min(a[3], b[3])-max(a[1], b[1])
	if w <= 0 || h <= 0 {
		return 0
	}
	area := func(c []float64) float64 { return max(c[2]-c[0], 0) * max(c[3]-c[1], 0) }
	return w * h / (area(a) + area(b) - w*h)
}

// linear draws the cases of cocoCases. It is a linear congruential generator, so that a program in any
// language can draw the same.
type linear uint64

func (l *linear) n(k int) float64 {
	*l = *l*6364136223846793005 + 1442695040888963407
	return float64(uint64(*l>>33) % uint64(k))
}

// cocoCases draws cases with detections of different scores.
func cocoCases(seed uint64, cases, classes int) set {
	r, serial := linear(seed), 0.0
	var labels, found [][]float64
	for range cases {
		var l, d []float64
		for range int(r.n(5)) {
			x, y := r.n(60), r.n(60)
			w, h, class := 8+r.n(40), 8+r.n(40), r.n(classes)
			l = append(l, x, y, x+w, y+h, class)
			for range int(r.n(3)) {
				serial++
				d = append(d, x+r.n(7)-3, y+r.n(7)-3, x+w+r.n(7)-3, y+h+r.n(7)-3, (r.n(1000)+300)*1000+serial)
				other := class
				if r.n(5) == 0 {
					other = r.n(classes)
				}
				d = append(d, other)
			}
		}
		for range int(r.n(3)) {
			serial++
			x, y := r.n(60), r.n(60)
			d = append(d, x, y, x+5+r.n(40), y+5+r.n(40), r.n(1000)*1000+serial, r.n(classes))
		}
		labels, found = append(labels, l), append(found, d)
	}
	return padded(found, labels)
}

// padded makes cases of any number of detections and labels as long as the longest.
func padded(found, labels [][]float64) set {
	var s set
	for i := range labels {
		s.width, s.each = max(s.width, len(found[i]), 6), max(s.each, len(labels[i]), 5)
	}
	for i := range labels {
		for len(found[i]) < s.width {
			found[i] = append(found[i], 0, 0, 0, 0, 0, -1)
		}
		for len(labels[i]) < s.each {
			labels[i] = append(labels[i], 0, 0, 0, 0, -1)
		}
		s.outputs, s.labels = append(s.outputs, found[i]...), append(s.labels, labels[i]...)
	}
	return s
}

// The values are those of COCOeval of pycocotools 2.0.11, for all areas and 100 detections, on the same
// cases.
func TestPrecisionAgainstCOCO(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seed           uint64
		cases, classes int
		map50, all     float64
	}{
		{1, 1, 1, 0.570957095710, 0.397359735974}, // 4 labels, 6 detections
		{2, 2, 2, 0, 0}, // 1 labels, 2 detections
		{3, 10, 3, 0.497524752475, 0.257154946264},   // 23 labels, 30 detections
		{4, 30, 1, 0.551972977200, 0.236371919822},   // 45 labels, 80 detections
		{5, 100, 8, 0.436665771957, 0.209154614209},  // 198 labels, 286 detections
		{6, 400, 20, 0.423975788769, 0.205131433039}, // 837 labels, 1249 detections
		{7, 150, 40, 0.484237472854, 0.259624202225}, // 306 labels, 480 detections
	} {
		s := cocoCases(c.seed, c.cases, c.classes)
		for name, want := range map[string]float64{"map50": c.map50, "map": c.all} {
			got := float64(counted(t, metric(t, name), s, s, 1).Result().Engine)
			if math.Abs(got-want) > 1e-11 {
				t.Errorf("%s of %d cases of seed %d: got %.12f, want %.12f", name, c.cases, c.seed, got, want)
			}
		}
	}
}

func TestPrecisionByHand(t *testing.T) {
	t.Parallel()
	label := []float64{0, 0, 10, 10, 0}
	right, half := []float64{0, 0, 10, 10, 0.9, 0}, []float64{0, 0, 10, 6, 0.9, 0} // IoU 1 and 0.6
	wrong := []float64{50, 50, 60, 60, 0.95, 0}
	with := func(d []float64, score, class float64) []float64 {
		return []float64{d[0], d[1], d[2], d[3], score, class}
	}
	nan := math.NaN()
	for name, c := range map[string]struct {
		found, labels []float64
		map50, all    float64
	}{
		"found":                               {right, label, 1, 1},
		"found badly: up to 0.6":              {half, label, 1, 0.3},
		"nothing":                             {nil, label, 0, 0},
		"another class":                       {with(right, 0.9, 1), label, 0, 0},
		"a false alarm before it":             {slices.Concat(right, wrong), label, 0.5, 0.5},
		"a false alarm behind it":             {slices.Concat(with(wrong, 0.1, 0), right), label, 1, 1},
		"a false alarm of the same score":     {slices.Concat(with(wrong, 0.9, 0), right), label, 0.5, 0.5},
		"one of another class, without label": {slices.Concat(with(wrong, 0.95, 7), right), label, 1, 1},
		"found twice":                         {slices.Concat(right, with(right, 0.8, 0)), label, 1, 1},
		"found well behind found badly":       {slices.Concat(half, with(right, 0.8, 0)), label, 1, 0.3 + 0.7*0.5},
		"one of two: 51 of 101 levels":        {right, slices.Concat(label, []float64{30, 30, 40, 40, 0}), 51. / 101, 51. / 101},
		"one of two classes":                  {right, slices.Concat(label, []float64{30, 30, 40, 40, 1}), 0.5, 0.5},
		"padding":                             {slices.Concat(right, with(right, nan, -1)), slices.Concat(label, []float64{nan, 0, 0, 0, -1}), 1, 1},
		"no labels":                           {right, []float64{0, 0, 0, 0, -1}, nan, nan},
		"a score of NaN":                      {with(right, nan, 0), label, nan, nan},
		"a corner of infinity":                {[]float64{0, 0, math.Inf(1), 9, 1, 0}, label, nan, nan},
		"turned around":                       {[]float64{10, 10, 0, 0, 1, 0}, label, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := padded([][]float64{c.found}, [][]float64{c.labels})
			for name, want := range map[string]float64{"map50": c.map50, "map": c.all} {
				got := float64(counted(t, metric(t, name), s, s, 1).Result().Engine)
				if !(math.Abs(got-want) < 1e-12) && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Errorf("%s: got %v, want %v", name, got, want)
				}
			}
		})
	}
}

// The order of rows changes nothing, detections of equal scores included, and a perfect detector has 1.
func TestPrecisionIsOfSets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		s, _ := boxSets(r, 20)
		shuffled := set{slices.Clone(s.outputs), slices.Clone(s.labels), s.width, s.each}
		for n := range s.cases() {
			shuffleRows(r, shuffled.outputs[n*s.width:(n+1)*s.width], 6)
			shuffleRows(r, shuffled.labels[n*s.each:(n+1)*s.each], 5)
		}
		perfect := set{nil, s.labels, 6 * drawnLabels, s.each}
		for l := range slices.Chunk(s.labels, 5) {
			perfect.outputs = append(append(perfect.outputs, l[:4]...), r.Float64(), l[4])
		}
		for _, name := range []string{"map50", "map"} {
			m := metric(t, name)
			a, b := counted(t, m, s, perfect, 1), counted(t, m, shuffled, perfect, 1)
			if got, want := b.Result(), a.Result(); got != want {
				t.Errorf("%s of shuffled rows: got %+v, want %+v", name, got, want)
			}
			if got, want := b.Figures().Drop(0.95), a.Figures().Drop(0.95); got != want {
				t.Errorf("drop of %s of shuffled rows: got %+v, want %+v", name, got, want)
			}
			if got := float64(a.Result().Engine); math.Abs(got-1) > 1e-12 {
				t.Errorf("%s of a perfect detector: got %v, want 1", name, got)
			}
		}
	}
}

func shuffleRows(r *rand.Rand, values []float64, width int) {
	rows := slices.Collect(slices.Chunk(slices.Clone(values), width))
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	copy(values, slices.Concat(rows...))
}

// Cases can have no detections at all, as models whose output has a row for each have.
func TestNoDetections(t *testing.T) {
	t.Parallel()
	c := accuracy.NewCounter(metric(t, "map"), false, 0)
	if err := c.Add(of(t, []float32{}, 1, 0, 6), of(t, []float32{0, 0, 9, 9, 1, 2}, 1, 1, 6), of(t, []float32{0, 0, 9, 9, 2}, 1, 1, 5)); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(of(t, []float32{0, 0, 1, 1, 1, 2}, 1, 1, 6), of(t, []float32{}, 1, 0, 6), of(t, []float32{}, 1, 0, 5)); err != nil {
		t.Fatal(err)
	}
	if got := c.Result(); got.Reference != 0 || math.Abs(float64(got.Engine)-1) > 1e-12 || got.Cases != 2 {
		t.Errorf("got %+v, want 0 of the reference, 1 of the engine, 2 cases", got)
	}
}

func TestDetectionsThatDoNotFit(t *testing.T) {
	t.Parallel()
	label, found := of(t, []float32{0, 0, 9, 9, 2}, 1, 1, 5), of(t, []float32{0, 0, 9, 9, 1, 2}, 1, 1, 6)
	for name, c := range map[string][2]tensor.Tensor{
		"classes are not whole":      {of(t, []float32{0, 0, 9, 9, 1, 1.5}, 1, 1, 6), label},
		"labels are not whole":       {found, of(t, []float32{0, 0, 9, 9, 1.5}, 1, 1, 5)},
		"labels of width and height": {found, of(t, []float32{50, 50, 9, 9, 1}, 1, 1, 5)},
		"labels with a score":        {found, found},
		"detections without score":   {label, label},
		"labels of other cases":      {found, of(t, []float32{0, 0, 9, 9, 2, 0, 0, 9, 9, 2}, 2, 1, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := accuracy.NewCounter(metric(t, "map"), false, 0).Add(c[0], c[0], c[1])
			if !errors.Is(err, tensor.ErrMismatch) {
				t.Errorf("got %v, want a mismatch", err)
			}
		})
	}
}
