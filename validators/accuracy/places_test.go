package accuracy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// image is a set of small images with a class for each place: scores [n, classes, 2, 3], the same with the classes last, and answers.
type image struct {
	first, last tensor.Tensor // float32
	answers     tensor.Tensor // int64 [n, 2, 3]
}

const places = 6

func images(t *testing.T, answers []int64, classes int) image {
	t.Helper()
	n := len(answers) / places
	first, last := make([]float32, len(answers)*classes), make([]float32, len(answers)*classes)
	for i, class := range answers {
		of, place := i/places, i%places
		first[(of*classes+int(class))*places+place] = 1
		last[i*classes+int(class)] = 1
	}
	return image{of(t, first, int64(n), int64(classes), 2, 3), of(t, last, int64(n), 2, 3, int64(classes)), of(t, answers, int64(n), 2, 3)}
}

// Metrics of classes find them in the second dimension of scores, as frameworks write them for images, in the last one, and as
// class numbers; the figure is the same.
func TestClassesOfPlaces(t *testing.T) {
	t.Parallel()
	const classes = 5
	r := rand.New(rand.NewPCG(8, 9))
	n := 20
	labels, wanted, got := make([]int64, n*places), make([]int64, n*places), make([]int64, n*places)
	for i := range labels {
		labels[i] = r.Int64N(classes)
		wanted[i], got[i] = labels[i], labels[i]
		if r.IntN(4) == 0 {
			wanted[i] = r.Int64N(classes)
		}
		if r.IntN(4) == 0 {
			got[i] = r.Int64N(classes)
		}
	}
	reference, engine, truth := images(t, wanted, classes), images(t, got, classes), of(t, labels, int64(n), 2, 3)
	for _, name := range []string{accuracy.Top1, accuracy.Exact, "f1_macro", accuracy.MeanIoU} {
		figure := func(reference, engine tensor.Tensor) evidence.Accuracy {
			counter := accuracy.NewCounter(metric(t, name), false, 1)
			if err := counter.Add(reference, engine, truth); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return counter.Result()
		}
		last := figure(reference.last, engine.last)
		if first := figure(reference.first, engine.first); first != last || last.Cases != n {
			t.Errorf("%s: classes in front give %+v, behind %+v", name, first, last)
		}
		if name == "f1_macro" { // of numbers it is of several labels
			continue
		}
		if numbers := figure(reference.answers, engine.answers); numbers != last {
			t.Errorf("%s: class numbers give %+v, scores %+v", name, numbers, last)
		}
	}
}

// The mean intersection over union is that of its definition, of places that have labels.
func TestMeanIoU(t *testing.T) {
	t.Parallel()
	labels := of(t, []int64{0, 0, 1, 1, 2, -1, 0, 0, 0, 1, 1, -1}, 2, 2, 3)
	wanted := images(t, []int64{0, 0, 1, 1, 2, 2, 0, 0, 0, 1, 1, 1}, 4)
	got := images(t, []int64{0, 1, 1, 1, 3, 0, 0, 0, 0, 1, 0, 3}, 4)
	// class 0: 4 of 6, class 1: 3 of 5, class 2: 0 of 1; 3 is no label
	want := (4.0/6 + 3.0/5 + 0) / 3
	for name, c := range map[string][2]tensor.Tensor{
		"classes in front": {wanted.first, got.first}, "behind": {wanted.last, got.last}, "numbers": {wanted.answers, got.answers},
	} {
		counter := accuracy.NewCounter(metric(t, accuracy.MeanIoU), false, 1)
		if err := counter.Add(c[0], c[1], labels); err != nil {
			t.Fatal(err)
		}
		a := counter.Result()
		if a.Reference != 1 || math.Abs(float64(a.Engine)-want) > 1e-12 {
			t.Errorf("%s: got %v and %v, want 1 and %v", name, a.Reference, a.Engine, want)
		}
	}
}

// A row whose label is negative, such as the padding of a text, does not count, and each case counts by the others.
func TestNegativeLabels(t *testing.T) {
	t.Parallel()
	wanted := of(t, []float32{9, 0, 0, 9, 9, 0, 9, 0, 0, 9, 9, 0}, 2, 3, 2)
	got := of(t, []float32{9, 0, 9, 0, 0, 9, 9, 0, 0, 9, 0, 9}, 2, 3, 2)
	labels := of(t, []int64{0, 1, -100, 0, -100, -100}, 2, 3)
	var counter accuracy.Counter
	if err := counter.Add(wanted, got, labels); err != nil {
		t.Fatal(err)
	}
	want := evidence.Accuracy{Metric: "top1", Reference: 1, Engine: 2.0 / 3, Drop: 1 - evidence.Figure(2.0)/3, Lost: 0.5, Right: 1.5, Cases: 2, Count: 3}
	if a := counter.Result(); a != want {
		t.Errorf("got %+v, want %+v", a, want)
	}
}

// A class or a label that only a few cases have proves little, however many others there are: the engine may lose all of it.
func TestRareClasses(t *testing.T) {
	t.Parallel()
	const cases, classes = 300, 4
	bound := func(name string, rare int) float64 {
		var want, got, labels []float64
		r := rand.New(rand.NewPCG(5, 6))
		for i := range cases {
			class := i % (classes - 1)
			if i < rare {
				class = classes - 1
			}
			if name == accuracy.MeanIoU {
				labels = append(labels, float64(class))
				want, got = append(want, float64(class)), append(got, float64(class))
				if i >= rare && r.IntN(10) == 0 {
					got[i] = float64((class + 1) % (classes - 1))
				}
				continue
			}
			labels = append(labels, float64(i%2), float64(one(i < rare)))
			score := float64(i%2) + r.Float64()*2
			want, got = append(want, score, labels[2*i+1]), append(got, score+r.Float64()/2, labels[2*i+1])
		}
		counter := accuracy.NewCounter(metric(t, name), false, 1)
		tensors := make([]tensor.Tensor, 3)
		for i, values := range [][]float64{want, got, labels} {
			if tensors[i] = of(t, values, cases, int64(len(values)/cases)); name == accuracy.MeanIoU {
				numbers := make([]int64, len(values))
				for j, v := range values {
					numbers[j] = int64(v)
				}
				tensors[i] = of(t, numbers, cases, 1)
			}
		}
		if err := counter.Add(tensors[0], tensors[1], tensors[2]); err != nil {
			t.Fatal(err)
		}
		return counter.Figures().Drop(0.95).High
	}
	for _, name := range []string{accuracy.MeanIoU, accuracy.AUCMacro} {
		if few, many := bound(name, 3), bound(name, 60); few < 0.25 || many > 0.25 {
			t.Errorf("%s: 3 cases of a class prove a drop of at most %v, and 60 one of %v; want more than a quarter, and less", name, few, many)
		}
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
