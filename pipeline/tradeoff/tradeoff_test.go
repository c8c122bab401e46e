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

func TestDominates(t *testing.T) {
	t.Parallel()
	base := tradeoff.Point{PerSecond: 100, P99Ns: 20, SizeBytes: 30, Loss: 0.1}
	for name, c := range map[string]struct {
		change func(p *tradeoff.Point)
		want   bool
	}{
		"an equal one":                      {func(*tradeoff.Point) {}, false},
		"faster, else equal":                {func(p *tradeoff.Point) { p.PerSecond = 101 }, true},
		"quicker at worst, else equal":      {func(p *tradeoff.Point) { p.P99Ns = 19 }, true},
		"smaller, else equal":               {func(p *tradeoff.Point) { p.SizeBytes = 29 }, true},
		"more faithful, else equal":         {func(p *tradeoff.Point) { p.Loss = 0.05 }, true},
		"slower, else equal":                {func(p *tradeoff.Point) { p.PerSecond = 99 }, false},
		"smaller and less faithful":         {func(p *tradeoff.Point) { p.SizeBytes, p.Loss = 1, 0.2 }, false},
		"a better median, which is no axis": {func(p *tradeoff.Point) { p.P50Ns = -1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := base
			c.change(&p)
			if got := p.Dominates(base); got != c.want {
				t.Errorf("Dominates = %t, want %t for %+v against %+v", got, c.want, p, base)
			}
		})
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	half := 0.005
	strict := tradeoff.Objective{P50Ns: 10, P99Ns: 20, MaxLoss: &half}
	slow := tradeoff.Point{Keeps: true, P50Ns: 1e12, P99Ns: 1e12, Loss: 1}
	for name, c := range map[string]struct {
		o    tradeoff.Objective
		p    tradeoff.Point
		want string
	}{
		"exactly at every limit":         {strict, tradeoff.Point{Keeps: true, P50Ns: 10, P99Ns: 20, Loss: 0.005}, ""},
		"outside the limits of the spec": {strict, tradeoff.Point{P50Ns: 10}, "limits"},
		"median over":                    {strict, tradeoff.Point{Keeps: true, P50Ns: 11}, "p50"},
		"tail over":                      {strict, tradeoff.Point{Keeps: true, P99Ns: 21}, "p99"},
		"both latencies over":            {strict, tradeoff.Point{Keeps: true, P50Ns: 11, P99Ns: 21}, "p50 p99"},
		"a loss that is no number":       {strict, tradeoff.Point{Keeps: true, Loss: math.NaN()}, "accuracy_drop"},
		"no constraint at all":           {tradeoff.Objective{}, slow, ""},
		"only the median is constrained": {tradeoff.Objective{P50Ns: 10}, slow, "p50"},
		"only the tail is constrained":   {tradeoff.Objective{P99Ns: 10}, slow, "p99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(c.o.Violations(c.p), " "); got != c.want {
				t.Errorf("Violations = %q, want %q for %+v", got, c.want, c.p)
			}
		})
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	half := 0.005
	tail := tradeoff.Objective{P99Ns: 20, MaxLoss: &half}
	median := tradeoff.Objective{P50Ns: 20, MaxLoss: &half}
	fp32 := tradeoff.Point{Name: "fp32", Keeps: true, P99Ns: 50, P50Ns: 50}
	quantized := func(name string, keeps bool, loss float64, ns int64) tradeoff.Point {
		return tradeoff.Point{Name: name, Int8: true, Keeps: keeps, Loss: loss, P50Ns: ns, P99Ns: ns}
	}
	for name, c := range map[string]struct {
		o      tradeoff.Objective
		points []tradeoff.Point
		want   []string // parts of what is said, in order
	}{
		"nothing was built":                     {tail, nil, nil},
		"int8 suffices":                         {tail, []tradeoff.Point{fp32, quantized("int8", true, 0, 9)}, []string{"quantize first", "not needed"}},
		"int8 loses too much everywhere":        {tail, []tradeoff.Point{fp32, quantized("a", false, 0.4, 9), quantized("b", true, 0.1, 9)}, []string{"quantize first", "least in b:"}},
		"int8 is outside the limits":            {tail, []tradeoff.Point{fp32, quantized("int8", false, 0, 9)}, []string{"quantize first", "least in int8:"}},
		"int8 is too slow at worst":             {tail, []tradeoff.Point{fp32, quantized("int8", true, 0, 30)}, []string{"quantize first", "not needed", "distil"}},
		"int8 is too slow in the median":        {median, []tradeoff.Point{fp32, quantized("int8", true, 0, 30)}, []string{"quantize first", "not needed", "distil"}},
		"fp32 is too slow and there is no int8": {tail, []tradeoff.Point{fp32}, []string{"distil"}},
		"fp32 suffices":                         {tradeoff.Objective{}, []tradeoff.Point{fp32}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := c.o.Advice(c.points)
			if len(said) != len(c.want) {
				t.Fatalf("%d pieces of advice, want %d: got %q, want %q", len(said), len(c.want), said, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(said[i], want) {
					t.Errorf("advice %d is %q, want %q in it", i, said[i], want)
				}
			}
		})
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
