package goldenset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// comparisonOf is one of 64 cases whose golden outputs and whose outputs now are equal, but for what change changes.
func comparisonOf(t *testing.T, width int, change func(number int, golden, now []float32)) Recomputed {
	t.Helper()
	const count = 64
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	write := func(name string, values []float32, shape ...int64) toolchain.OutputFile {
		y, err := tensor.New(values, shape...)
		if err != nil {
			t.Fatal(err)
		}
		file := toolchain.OutputFile{Name: name, Path: filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))}
		if err := cases.WriteShard(file.Path, map[string]tensor.Tensor{"y": y}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var all []float32
	var pairs Pairs
	for number := range count {
		golden := make([]float32, width)
		for i := range golden {
			golden[i] = float32(random.NormFloat64())
		}
		now := append([]float32{}, golden...)
		change(number, golden, now)
		all = append(all, golden...)
		pairs.Outcome.Files = append(pairs.Outcome.Files, write(fmt.Sprintf("outputs/%s/%s", run.ReferenceID, CaseFile(number)), now, 1, int64(width)))
		pairs.Sample = append(pairs.Sample, number)
	}
	pairs.Golden = &Set{Files: []toolchain.OutputFile{write("golden", all, count, int64(width))},
		Set: artifact.CaseSet{Count: count, Shards: []artifact.Shard{{Count: count}}}}
	return Recomputed{Pairs: pairs, Allowed: Float32}
}

func TestCompareGolden(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	unrelated := func(values []float32) {
		for i := range values {
			values[i] = float32(random.NormFloat64())
		}
	}
	for name, c := range map[string]struct {
		width      int
		quantities bool
		change     func(number int, golden, now []float32)
		want       evidence.Verdict
		affected   int
	}{
		"equal":     {2000, false, func(int, []float32, []float32) {}, evidence.VerdictPass, 0},
		"unrelated": {2000, false, func(_ int, golden, _ []float32) { unrelated(golden) }, evidence.VerdictFail, 64},
		"another order of sums": {2000, false, func(_ int, _, now []float32) {
			for i := range now {
				now[i] *= 1 + 1e-6*float32(random.NormFloat64())
			}
		}, evidence.VerdictPass, 0},
		"a huge golden value beside unrelated ones": {2000, false, func(number int, golden, _ []float32) {
			unrelated(golden)
			golden[0] = 1e6 * float32(1+number)
		}, evidence.VerdictFail, 64},
		"a huge value on both sides beside unrelated ones": {2000, false, func(number int, golden, now []float32) {
			unrelated(golden)
			golden[0], now[0] = 1e6, 1e6
		}, evidence.VerdictFail, 64},
		"a mask in one case beside unrelated ones": {2000, false, func(number int, golden, now []float32) {
			if unrelated(golden); number == 5 {
				golden[0], now[0] = -math.MaxFloat32, -math.MaxFloat32
			}
		}, evidence.VerdictFail, 64},
		"one value far off in each case":   {2000, false, func(_ int, golden, _ []float32) { golden[7] += 100 }, evidence.VerdictFail, 64},
		"one value far off in one case":    {2000, false, func(number int, golden, _ []float32) { golden[7] += 100 * float32(number/63) }, evidence.VerdictRecorded, 1},
		"one value of a thousand near tie": {2000, false, func(_ int, golden, _ []float32) { golden[7] += 0.1; golden[8] += 0.1 }, evidence.VerdictPass, 0},
		"three of two thousand":            {2000, false, func(_ int, golden, _ []float32) { golden[7] += 0.1; golden[8] += 0.1; golden[9] += 0.1 }, evidence.VerdictFail, 64},
		"NaN now":                          {2000, false, func(_ int, _, now []float32) { now[7] = float32(math.NaN()) }, evidence.VerdictFail, 64},
		"NaN on both sides": {2000, false, func(_ int, golden, now []float32) {
			golden[7], now[7] = float32(math.NaN()), float32(math.NaN())
		}, evidence.VerdictPass, 0},
		"a small quantity beside a large one": {2, true, func(_ int, golden, now []float32) {
			golden[0] = 1e6 * (1 + golden[0])
			now[0] = golden[0]
			golden[1] = now[1] + 1
		}, evidence.VerdictFail, 64},
		"rounding of few large values": {1000, false, func(number int, golden, now []float32) {
			for i := range golden {
				golden[i] = 1e-6 * float32(random.NormFloat64())
				now[i] = 1e-6 * float32(random.NormFloat64())
			}
			golden[0], now[0] = 100+float32(3*number), 100+float32(3*number)
		}, evidence.VerdictPass, 0},
		"few values far from most": {1000, false, func(_ int, golden, now []float32) {
			for i := range golden {
				if i > 0 {
					golden[i] = 0
				}
			}
			copy(now, golden)
			now[0] *= 1 + 1e-6
		}, evidence.VerdictPass, 0},
	} {
		g := comparisonOf(t, c.width, c.change)
		g.Quantities = map[string]bool{"y": c.quantities}
		var check evidence.Check
		if err := g.Judge(&check); err != nil || check.Verdict != c.want || check.Affected != c.affected || check.Cases != 64 || (check.Message != "") != (c.affected > 0) {
			t.Errorf("%s: %+v, %v; want %s with %d cases", name, check, err, c.want, c.affected)
		}
	}
}

// Cases whose values are rounded for the reference model say nothing of the builder: limits judge them. Those whose values are not still count.
func TestCompareGoldenOfRoundedCases(t *testing.T) {
	t.Parallel()
	g := comparisonOf(t, 2000, func(number int, golden, _ []float32) {
		if number%2 == 0 || number == 5 {
			golden[7] += 100
		}
	})
	g.Changed = make(map[int]bool)
	for number := range 64 {
		g.Changed[number] = number%2 == 0
	}
	var check evidence.Check
	if err := g.Judge(&check); err != nil || check.Verdict != evidence.VerdictFail || check.Affected != 1 || check.Converted != 32 {
		t.Errorf("%+v, %v; want one of 32 to fail", check, err)
	}
	g.Changed[5], check = true, evidence.Check{}
	if err := g.Judge(&check); err != nil || check.Verdict != evidence.VerdictPass || check.Affected != 0 || check.Converted != 33 ||
		!strings.Contains(check.Message, "rounded for engines in 33 cases: in 33 of these the reference model computes something else") {
		t.Errorf("%+v, %v; want a pass that says so", check, err)
	}
}
