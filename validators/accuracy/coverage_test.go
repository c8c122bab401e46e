package accuracy_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
)

// The bounds of each metric are on the right side of the true value about as often as they say. The
// true values are those of a very large set; statistics of a set are linearized, which costs some
// of the level. Average precision of few boxes is too large: with 600 cases, 1 in 13 is wrong.
func TestCoverageOfMetrics(t *testing.T) {
	t.Parallel()
	runs := 30
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		runs = 2000
	}
	for name, want := range map[string]float64{"f1_macro": 0.93, "f1_binary": 0.93, "auc": 0.93, "auc_macro": 0.93,
		"miou": 0.93, "prefix": 0.92, "r2": 0.92, "mae": 0.94, "mape": 0.9, "rmse": 0.93, "perplexity": 0.92, "map50": 0.87, "map": 0.84} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := metric(t, name)
			r := rand.New(rand.NewPCG(5, 6))
			large := 100_000
			if m.Needs == accuracy.NeedsBoxes {
				large = 20_000
			}
			reference, engine := sets(r, m, large)
			whole := counted(t, m, reference, engine, 1)
			truth := whole.Result()
			relative := float64(truth.Engine / truth.Reference)
			if m.Loss {
				relative = 1 / relative
			}
			sizes := []int{150}
			if os.Getenv("MLPROMOTE_SOAK") != "" && m.Needs == accuracy.NeedsBoxes {
				sizes = append(sizes, 600) // for docs/reference/spec.md
			}
			for _, size := range sizes {
				missed := missedBounds(t, m, r, runs, size, truth, relative)
				for what, n := range missed {
					if least := stats.LowerRate(float64(n), runs, 1-1e-6); least > 1-want {
						t.Errorf("%s of %d cases: %d of %d bounds are on the wrong side, want at most %v of them", what, size, n, runs, 1-want)
					}
				}
				if os.Getenv("MLPROMOTE_SOAK") != "" {
					t.Logf("wrong sides of %d, of %d cases: %v", runs, size, missed)
				}
			}
		})
	}
}

// missedBounds counts, by kind and side, the bounds of small sets that are on the wrong side of the truth.
func missedBounds(t *testing.T, m accuracy.Metric, r *rand.Rand, runs, size int, truth evidence.Accuracy, relative float64) map[string]int {
	t.Helper()
	missed := map[string]int{}
	add := func(name string, b accuracy.Bounded, truth float64) {
		if b.Low > truth {
			missed[name+" below"]++
		}
		if b.High < truth {
			missed[name+" above"]++
		}
	}
	for range runs {
		reference, engine := sets(r, m, size)
		f := counted(t, m, reference, engine, 1).Figures()
		add("absolute", f.Absolute(0.95), float64(truth.Engine))
		add("drop", f.Drop(0.95), float64(truth.Drop))
		add("relative", f.Relative(0.95), relative)
	}
	return missed
}
