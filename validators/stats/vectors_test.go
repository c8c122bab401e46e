package stats_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"mlpromote.dev/mlpromote/validators/stats"
)

// vectors is testdata/vectors.json, which testdata/make.py computed with SciPy.
type vectors struct {
	Rates []struct {
		Misses, Level, Upper, Lower float64
		N                           int
	}
	Drops []struct {
		Lost, Won, N        int
		Level, Upper, Lower float64
	}
	Cases []struct {
		Rate, Level float64
		N           int
	}
	EarlyStopping []struct {
		Over, Under            int
		Percentile, Confidence float64
	}
	Quantiles []struct {
		N, Low, High int
		Q, Level     float64
	}
}

// near allows for a relative error, and next to 1 and to 0 for what doubles can hold.
func near(got, want float64) bool {
	return math.Abs(got-want) <= 1e-11*math.Abs(want)+1e-15
}

func TestVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Rates {
		if got := stats.UpperRate(c.Misses, c.N, c.Level); !near(got, c.Upper) {
			t.Errorf("UpperRate(%v, %d, %v) is %.17g, want %.17g", c.Misses, c.N, c.Level, got, c.Upper)
		}
		if got := stats.LowerRate(c.Misses, c.N, c.Level); !near(got, c.Lower) {
			t.Errorf("LowerRate(%v, %d, %v) is %.17g, want %.17g", c.Misses, c.N, c.Level, got, c.Lower)
		}
	}
	for _, c := range v.Drops {
		if low, high := stats.PairedDrop(c.Lost, c.Won, c.N, c.Level); !near(low, c.Lower) || !near(high, c.Upper) {
			t.Errorf("PairedDrop(%d, %d, %d, %v) is %.17g, %.17g, want %.17g, %.17g",
				c.Lost, c.Won, c.N, c.Level, low, high, c.Lower, c.Upper)
		}
	}
	for _, c := range v.Cases {
		if got := stats.CasesFor(c.Rate, c.Level); got != c.N {
			t.Errorf("CasesFor(%v, %v) is %d, want %d", c.Rate, c.Level, got, c.N)
		}
	}
	for _, c := range v.EarlyStopping {
		if got := stats.EarlyStopping(c.Over, c.Percentile, c.Confidence); got != c.Under {
			t.Errorf("EarlyStopping(%d, %v, %v) is %d, want %d", c.Over, c.Percentile, c.Confidence, got, c.Under)
		}
	}
	for _, c := range v.Quantiles {
		if low, high := stats.QuantileBounds(c.N, c.Q, c.Level); low != c.Low || high != c.High {
			t.Errorf("QuantileBounds(%d, %v, %v) is %d, %d, want %d, %d", c.N, c.Q, c.Level, low, high, c.Low, c.High)
		}
	}
}
