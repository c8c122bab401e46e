package tradeoff_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/tradeoff"
)

// some are points with few different figures, so that equals and ties are among them.
func some(random *rand.Rand) []tradeoff.Point {
	points := make([]tradeoff.Point, 1+random.IntN(9))
	for i := range points {
		points[i] = tradeoff.Point{
			Name: string(rune('a' + i)), SizeBytes: random.Int64N(4), Loss: float64(random.IntN(4)) - 1,
			P50Ns: 1 + random.Int64N(4), P99Ns: 1 + random.Int64N(4), PerSecond: float64(1 + random.IntN(4)),
			Keeps: random.IntN(4) > 0, Int8: random.IntN(2) == 0,
		}
	}
	return points
}

// The front is exactly what nobody dominates, and whoever is not on it is dominated by
// somebody who is.
func TestFront(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		points := some(random)
		front := tradeoff.Front(points)
		for i, p := range points {
			beaten := slices.ContainsFunc(front, func(j int) bool { return points[j].Dominates(p) })
			if on := slices.Contains(front, i); on == (beaten || !p.Keeps) {
				t.Fatalf("%+v: on the front %t, beaten %t\n%+v", p, on, beaten, points)
			}
			if p.Dominates(p) {
				t.Fatalf("%+v dominates itself", p)
			}
		}
	}
}

// The choice breaks no constraint, is as good in the goal as any that breaks none, is on
// the front of those, and does not depend on the order of points. Where there is none,
// every point breaks something.
func TestChoose(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	better := map[tradeoff.Goal]func(p, q tradeoff.Point) bool{
		"":                  func(p, q tradeoff.Point) bool { return p.PerSecond > q.PerSecond },
		tradeoff.Throughput: func(p, q tradeoff.Point) bool { return p.PerSecond > q.PerSecond },
		tradeoff.Latency:    func(p, q tradeoff.Point) bool { return p.P50Ns < q.P50Ns },
		tradeoff.Size:       func(p, q tradeoff.Point) bool { return p.SizeBytes < q.SizeBytes },
		tradeoff.Accuracy:   func(p, q tradeoff.Point) bool { return p.Loss < q.Loss },
	}
	for range 2000 {
		points := some(random)
		loss := float64(random.IntN(3))
		for goal, better := range better {
			o := tradeoff.Objective{Goal: goal, P99Ns: random.Int64N(5), MaxLoss: &loss}
			i, ok := o.Choose(points)
			allowed := slices.DeleteFunc(slices.Clone(points), func(p tradeoff.Point) bool { return len(o.Violations(p)) > 0 })
			if ok != (len(allowed) > 0) {
				t.Fatalf("chosen %t of %+v", ok, allowed)
			}
			if !ok {
				continue
			}
			chosen := points[i]
			if len(o.Violations(chosen)) > 0 {
				t.Fatalf("%+v breaks %v", chosen, o.Violations(chosen))
			}
			for _, p := range allowed {
				if better(p, chosen) || goal != tradeoff.Latency && p.Dominates(chosen) {
					t.Fatalf("%s: %+v chosen, %+v is better", goal, chosen, p)
				}
			}
			random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
			if j, _ := o.Choose(points); points[j] != chosen {
				t.Fatalf("%+v chosen, in another order %+v", chosen, points[j])
			}
		}
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	half := 0.005
	o := tradeoff.Objective{P50Ns: 10, P99Ns: 20, MaxLoss: &half}
	for want, p := range map[string]tradeoff.Point{
		"":              {Keeps: true, P50Ns: 10, P99Ns: 20, Loss: 0.005},
		"limits":        {P50Ns: 10},
		"p50":           {Keeps: true, P50Ns: 11},
		"p50 p99":       {Keeps: true, P50Ns: 11, P99Ns: 21},
		"accuracy_drop": {Keeps: true, Loss: math.NaN()},
	} {
		if got := strings.Join(o.Violations(p), " "); got != want {
			t.Errorf("%+v breaks %q, want %q", p, got, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	half := 0.005
	o := tradeoff.Objective{P99Ns: 20, MaxLoss: &half}
	fp32 := tradeoff.Point{Name: "fp32", Keeps: true, P99Ns: 50}
	for name, c := range map[string]struct {
		points []tradeoff.Point
		want   []string
	}{
		"nothing": {nil, nil},
		"enough":  {[]tradeoff.Point{fp32, {Name: "int8", Keeps: true, Int8: true, P99Ns: 9}}, []string{"quantize first", "not needed"}},
		"lossy":   {[]tradeoff.Point{fp32, {Name: "a", Int8: true, Loss: 0.4, P99Ns: 9}, {Name: "b", Keeps: true, Int8: true, Loss: 0.1, P99Ns: 9}}, []string{"quantize first", "least in b:"}},
		"slow":    {[]tradeoff.Point{fp32, {Name: "int8", Keeps: true, Int8: true, P99Ns: 30}}, []string{"quantize first", "not needed", "distil"}},
		"no int8": {[]tradeoff.Point{fp32}, []string{"distil"}},
	} {
		said := o.Advice(c.points)
		if len(said) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(said[i], want) {
				t.Errorf("%s: %q, want %q", name, said[i], want)
			}
		}
	}
}

func TestCostPerMillion(t *testing.T) {
	t.Parallel()
	if got := tradeoff.CostPerMillion(3.6, 1000); math.Abs(got-1) > 1e-12 {
		t.Errorf("3.6 an hour at 1000 a second is %v for a million, want 1", got)
	}
	if got := tradeoff.CostPerMillion(1, 0); got != 0 {
		t.Errorf("unmeasured costs %v", got)
	}
}

// Whatever is drawn is XML with every name in it, and the same for the same points.
func TestSVG(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		points := some(random)
		points[0].Name = `<b> & "c"`
		plot := tradeoff.Plot{Title: "a < b", Loss: "drop, %", Scale: 100, Chosen: random.IntN(len(points)+1) - 1}
		drawn := plot.SVG(points)
		if string(plot.SVG(points)) != string(drawn) {
			t.Fatal("two drawings differ")
		}
		if strings.Contains(string(drawn), "NaN") || strings.Contains(string(drawn), "Inf") {
			t.Fatalf("a place that is no number:\n%s", drawn)
		}
		var text strings.Builder
		decoder := xml.NewDecoder(strings.NewReader(string(drawn)))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if chars, ok := token.(xml.CharData); ok {
				text.Write(chars)
			}
		}
		for _, p := range points {
			if !strings.Contains(text.String(), p.Name) {
				t.Fatalf("no %q in\n%s", p.Name, drawn)
			}
		}
	}
	if len((tradeoff.Plot{Chosen: -1}).SVG(nil)) == 0 {
		t.Error("nothing drawn of nothing")
	}
}
