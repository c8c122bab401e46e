package accuracy_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// usualDrops are limits on drops that people ask for.
var usualDrops = []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1}

func byBootstrap(m accuracy.Metric) bool { return m.Smooth || m.Loss }

// inversions are how many of a thousand pairs may pass with the engine that is worse alone, and how far apart their bounds are: docs/how-to/limits.md.
var inversions = map[string]struct {
	pairs int
	size  float64
}{accuracy.ProgramLower: {219, 1.15}, "mae": {31, 0.91}, "mape": {35, 0.65}, "rmse": {20, 0.26}, "r2": {20, 0.15}}

// No limit passes an engine that has all harmful errors of another and more, and not the other.
func TestWorseIsNeverBetter(t *testing.T) {
	t.Parallel()
	for _, name := range accuracy.Metrics() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, r := metric(t, name), rand.New(rand.NewPCG(21, 22))
			found, most := 0, 0.0
			pairs := 1000
			if byBootstrap(m) && os.Getenv("MLPROMOTE_SOAK") == "" { // which takes its time
				pairs = 100
			}
			for pair := range pairs {
				lower, worse := boundsOfPair(t, m, r, pair)
				if by := lower - worse; by > 1e-9 && slices.ContainsFunc(usualDrops, func(limit float64) bool { return worse <= limit && limit < lower }) {
					found, most = found+1, max(most, by)
				}
			}
			t.Logf("%d inversions, the largest of %.3g", found, most)
			allowed := inversions[name]
			expected := float64(allowed.pairs*pairs) / 1000
			if pairs < 1000 {
				expected += 2 * math.Sqrt(expected) // a sample of the thousand has a few more or less
			}
			if float64(found) > expected || most > allowed.size {
				t.Errorf("%d of %d worse engines pass alone, with bounds %.3g apart; want %d of 1000 and %.3g", found, pairs, most, allowed.pairs, allowed.size)
			}
		})
	}
}

// boundsOfPair bounds the drops of two engines, of which the second is the worse one.
func boundsOfPair(t *testing.T, m accuracy.Metric, r *rand.Rand, pair int) (lower, worse float64) {
	t.Helper()
	n := 60
	if byBootstrap(m) || m.Needs == accuracy.NeedsBoxes {
		n = 30
	}
	var reference, engine set
	if m.Name == accuracy.MeanIoU {
		reference, engine = placeSets(r, n)
	} else {
		reference, engine = sets(r, m, n)
	}
	scale := 1.0 // of errors
	if byBootstrap(m) {
		scale = math.Pow(10, -2*r.Float64())
		for i, v := range reference.outputs {
			engine.outputs[i] = v + scale*(engine.outputs[i]-v)
		}
	}
	switch pair % 3 {
	case 0:
		engine = reference
	case 1:
		engine = worsened(r, m, reference, 1+r.IntN(4), scale)
	}
	return boundOf(t, m, reference, engine), boundOf(t, m, reference, worsened(r, m, engine, 1+r.IntN(8), scale))
}

func boundOf(t *testing.T, m accuracy.Metric, reference, engine set) float64 {
	t.Helper()
	var c *accuracy.Counter
	if m.Name == accuracy.MeanIoU {
		c = accuracy.NewCounter(m, false, 7)
		if err := c.Add(maskOf(reference.outputs), maskOf(engine.outputs), maskOf(reference.labels)); err != nil {
			t.Fatal(err)
		}
	} else {
		c = counted(t, m, reference, engine, 1)
	}
	if f := c.Figures(); f != nil {
		return f.Drop(0.95).High
	}
	a := c.Result()
	return rateBound(a)
}

const placesOfCase = 16

// placeSets are masks of three classes, of which the last is in one case of six.
func placeSets(r *rand.Rand, n int) (reference, engine set) {
	for i := range n {
		for range placesOfCase {
			label := float64(r.IntN(2))
			if i%6 == 0 && r.IntN(4) == 0 {
				label = 2
			}
			ours, theirs := label, label
			if r.IntN(10) == 0 {
				ours, theirs = float64(r.IntN(3)), float64(r.IntN(3))
			} else if r.IntN(20) == 0 {
				theirs = float64(r.IntN(3))
			}
			reference.labels = append(reference.labels, label)
			reference.outputs, engine.outputs = append(reference.outputs, ours), append(engine.outputs, theirs)
		}
	}
	reference.width, reference.each = placesOfCase, placesOfCase
	engine.width, engine.each, engine.labels = placesOfCase, placesOfCase, reference.labels
	return reference, engine
}

func maskOf(values []float64) tensor.Tensor {
	data := make([]byte, len(values))
	for i, v := range values {
		data[i] = byte(v)
	}
	return tensor.Tensor{DType: tensor.Int8, Shape: []int64{int64(len(values) / placesOfCase), placesOfCase}, Data: data}
}

// worsened is an engine with errors in some more cases, or larger ones.
func worsened(r *rand.Rand, m accuracy.Metric, s set, cases int, scale float64) set {
	worse := s
	worse.outputs = slices.Clone(s.outputs)
	for range cases {
		n := r.IntN(s.cases())
		out := worse.outputs[n*s.width : (n+1)*s.width]
		worsen(r, m, out, s.labels[n*max(s.each, 1):(n+1)*max(s.each, 1)], scale)
	}
	return worse
}

func worsen(r *rand.Rand, m accuracy.Metric, out, labels []float64, scale float64) {
	by := scale * (1 + 4*r.Float64())
	switch m.Needs {
	case accuracy.NeedsPlaces:
		for range 1 + r.IntN(8) {
			if at := r.IntN(len(out)); out[at] == labels[at] {
				out[at] = float64((int(labels[at]) + 1 + r.IntN(2)) % 3)
			}
		}
	case accuracy.NeedsScores, accuracy.NeedsAnswers, accuracy.NeedsSeveral:
		label := int(labels[0])
		if tensor.Argmax(out) == label || m.Needs == accuracy.NeedsScores {
			out[label] -= by
			if !m.Smooth {
				out[label] -= 20
			}
		}
	case accuracy.NeedsTwo, accuracy.NeedsMarks:
		for i, label := range labels {
			out[i] += by * (1 - 2*label)
		}
	case accuracy.NeedsProgram:
		if m.Loss {
			out[0] += by
		} else {
			out[0] *= r.Float64()
		}
	case accuracy.NeedsBoxes:
		out[0], out[2] = out[0]+1e4, out[2]+1e4 // of the first box
	default:
		out[0] += by * math.Copysign(1, out[0]-labels[0])
	}
}

func rateBound(a evidence.Accuracy) float64 {
	_, high := stats.PairedDrop(int(a.Lost), int(a.Won), a.Cases, 0.95)
	return high
}
