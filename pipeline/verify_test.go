//go:build cgo

package pipeline_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/fitness"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// onlyFP32 is the spec of one engine.
const onlyFP32 = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
variants: [fp32]
targets: [linux/amd64/v1]
`

// An engine whose outputs have another shape than the reference model's fails; that is a verdict and no broken run.
func TestVerifyShape(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built := w.built(t, onlyFP32, build.Options{})
	w.run = func(job toolchain.Job, outDir string) error {
		shard := filepath.Join(outDir, "outputs", "engine-0", "cases-00000.safetensors")
		if job.Verb != toolchain.VerbRun || !job.Run.Shares {
			return nil
		}
		f, err := os.Create(shard)
		if err != nil {
			return err
		}
		defer f.Close()
		return tensorfile.Write(f, map[string]tensor.Tensor{"y": {DType: "float32", Shape: []int64{3, 2}, Data: make([]byte, 24)}}, nil)
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), "the engine has another interface than the reference") {
		t.Fatalf("error %v, want CodeLimit about the interface", err)
	}
	p := verified.Engines[0].Parity
	if p.Verdict != evidence.VerdictFail || len(p.Reasons) != 1 || p.Reasons[0].Code != "shape" || p.Cases.Ran != 0 {
		t.Errorf("verdict %s for %v after %d cases, want a failure with the code shape and no case", p.Verdict, p.Reasons, p.Cases.Ran)
	}
}

// What this machine cannot run is skipped and listed; if it can run nothing, that is an error.
func TestVerifyOnAnotherMachine(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built := w.built(t, strings.Replace(onlyFP32, "linux/amd64/v1", "linux/amd64/v1, linux/arm64", 1), build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil || len(verified.Engines) != 1 || len(verified.Skipped) != 1 {
		t.Fatalf("verified %d, skipped %v, error %v; want one of each", len(verified.Engines), verified.Skipped, err)
	}
	skipped := verified.Skipped[0]
	if want := (artifact.Mismatch{Requirement: "cpu.arch", Need: "arm64", Have: "amd64"}); skipped.Label != "linux-arm64/fp32" ||
		!slices.Contains(skipped.Mismatches, want) {
		t.Errorf("skipped %s for %v, want linux-arm64/fp32 for %v", skipped.Label, skipped.Mismatches, want)
	}
	w.p.Node = func(context.Context, map[string]string) (artifact.Node, error) {
		return artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "riscv64"}}, nil
	}
	_, err = verify.Verify(t.Context(), w.p, built.Ref)
	if registry.CodeOf(err) != registry.CodeWrongNode || !strings.Contains(err.Error(), "linux-amd64-v1/fp32: cpu.arch: needs amd64, has riscv64") {
		t.Errorf("error %v, want CodeWrongNode with the first reason of each engine", err)
	}
}

// No engine runs here that no trusted builder has signed.
func TestVerifyRefusesUnsigned(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	release := w.Registry.Build(t, registrytest.Build{Engines: []artifact.Engine{registrytest.MakeEngine("v1", "fp32")}})
	w.run = func(job toolchain.Job, _ string) error {
		t.Errorf("%s ran", job.Verb)
		return nil
	}
	_, err := verify.Verify(t.Context(), w.p, registry.Ref{Environment: "staging", Model: release.Model, Tag: release.Tag()})
	if registry.CodeOf(err) != registry.CodePolicy || !strings.Contains(err.Error(), "no signature of a trusted builder") {
		t.Errorf("error %v, want CodePolicy about the signature", err)
	}
}

// Limits of latency turn recorded timings into a verdict. The engines of the next environment run beside the
// new ones, so that both are measured under the same conditions.
func TestVerifyLatency(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit string
		want  evidence.Verdict
		code  registry.Code
		text  string
	}{
		"too slow":                  {"p99: {max: 1ns}", evidence.VerdictFail, registry.CodeLimit, "p99"},
		"fast enough":               {"p99: {max: 1h}", evidence.VerdictPass, "", ""},
		"no engine to compare with": {"regression: {max: 1%}", evidence.VerdictPass, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := w.built(t, onlyFP32+"limits: {latency: {"+c.limit+"}}\n", build.Options{})
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if c.code == "" && err != nil || c.code != "" && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text)) {
				t.Fatalf("error %v, want %q with %q", err, c.code, c.text)
			}
			e := verified.Engines[0]
			if e.Performance.Verdict != c.want || e.Parity.Verdict != evidence.VerdictPass {
				t.Errorf("performance %s %v, parity %s; want %s and a pass", e.Performance.Verdict, e.Performance.Reasons, e.Parity.Verdict, c.want)
			}
		})
	}
	t.Run("above the limit", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		built := w.built(t, onlyFP32+"limits: {latency: {p99: {max: 1ns}}}\n", build.Options{})
		verified, _ := verify.Verify(t.Context(), w.p, built.Ref)
		p := verified.Engines[0].Performance
		// A run takes a nanosecond in the first round, which is at the limit, and more in each later one.
		if over := p.Bounds.Over; over == nil || *over != p.Latency.Samples-3 {
			t.Errorf("%v of %d timings are above the limit, want all but 3", over, p.Latency.Samples)
		}
	})
	t.Run("prod has no engine for this machine", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		elsewhere := registrytest.MakeEngine("v1", "fp32")
		elsewhere.Target.Name, elsewhere.Target.OS = "windows", "windows"
		there := w.Build(t, registrytest.Build{Version: "0.9.0", Engines: []artifact.Engine{elsewhere}})
		w.Sign(t, there)
		report := registrytest.Report(there, there.Engines[0], evidence.VerdictPass)
		report.Node.OS = "windows"
		w.AttachTo(t, "staging", there, there.Engines[0].Digest, evidence.PredicateParity, report)
		if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
			t.Fatal(err)
		}
		built := w.built(t, onlyFP32+"limits: {latency: {regression: {max: 1%}}}\n", build.Options{})
		verified, err := verify.Verify(t.Context(), w.p, built.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if p := verified.Engines[0].Performance; p.Verdict != evidence.VerdictPass || p.Ratio != nil {
			t.Errorf("performance %s, ratio %+v; want a pass that compares with nothing", p.Verdict, p.Ratio)
		}
	})
	t.Run("beside the current engine", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		first := w.built(t, onlyFP32, build.Options{})
		if _, err := verify.Verify(t.Context(), w.p, first.Ref); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: "vision/digits"}); err != nil {
			t.Fatal(err)
		}
		w.model(t, 2.5)
		second := w.built(t, strings.Replace(onlyFP32, "1.0.0", "1.1.0", 1)+"limits: {latency: {regression: {max: 100000%}}}\n", build.Options{})
		var timed []string
		processes := 0
		w.run = func(job toolchain.Job, _ string) error {
			switch {
			case job.Verb != toolchain.VerbRun || job.Run.Rounds == 0:
			case job.Run.Order == toolchain.OrderInterleaved:
				for _, e := range job.Run.Engines {
					timed = append(timed, e.ID)
				}
			default:
				processes++
			}
			return nil
		}
		verified, err := verify.Verify(t.Context(), w.p, second.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"reference", "engine-0"}; !slices.Equal(timed, want) {
			t.Errorf("timed %q in turns, want %q: the current engine is timed apart", timed, want)
		}
		if processes != 24 {
			t.Errorf("%d processes timed an engine beside the current one, want 24", processes)
		}
		if !slices.ContainsFunc(w.steps, func(s progress.Step) bool { return strings.Contains(s.Note, " %, between ") }) {
			t.Error("no step says between which bounds the engine is slower, want one")
		}
		if r := verified.Engines[0].Performance.Ratio; r == nil ||
			!r.Release.Names(first.Release.Digest) || !r.Engine.Names(first.Release.Engines[0].Digest) {
			t.Errorf("ratio %+v, want one that names release %s and its engine", r, first.Release.Digest)
		}
	})
}

// What is known of the machine decides with the bounds: time that other virtual machines took fails no
// engine, and an engine that ran on another device than its own has no verdict on its latency. The
// report says both, and what measuring cost.
func TestFitnessDecidesLatency(t *testing.T) {
	t.Parallel()
	const limited = onlyFP32 + "limits: {latency: {p50: {max: 1ns}}}\n"
	t.Run("steal", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		built := w.built(t, limited, build.Options{})
		w.fitness = fitness.Reading{Counted: true, Busy: 100, Steal: 10}
		w.run = func(job toolchain.Job, _ string) error {
			if job.Verb == toolchain.VerbRun && job.Run.Rounds > 0 {
				w.fitness.Busy, w.fitness.Steal = 193, 17
			}
			return nil
		}
		verified, err := verify.Verify(t.Context(), w.p, built.Ref)
		if registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), "had 7.0 % of the time that its processors wanted") {
			t.Fatalf("error %v, want code limit and the share", err)
		}
		p := verified.Engines[0].Performance
		if p.Verdict != evidence.VerdictUndecided || p.Fitness == nil || p.Fitness.Steal == nil || *p.Fitness.Steal != 0.07 {
			t.Errorf("verdict %s, fitness %+v; want undecided with a steal of 0.07", p.Verdict, p.Fitness)
		}
		if p.BudgetNs != (3*time.Second).Nanoseconds() || p.TookNs <= 0 {
			t.Errorf("budget %d ns, took %d; want 3 s and more than nothing", p.BudgetNs, p.TookNs)
		}
	})
	t.Run("an emulated processor", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		built := w.built(t, limited, build.Options{})
		describe := w.p.Node
		w.p.Node = func(ctx context.Context, runtimes map[string]string) (artifact.Node, error) {
			n, err := describe(ctx, runtimes)
			n.Notes = append(n.Notes, artifact.NoteEmulated)
			return n, err
		}
		verified, err := verify.Verify(t.Context(), w.p, built.Ref)
		if registry.CodeOf(err) != registry.CodeLimit || len(verified.Engines) != 1 {
			t.Fatalf("error %v, want code limit", err)
		}
		if p := verified.Engines[0].Performance; p.Verdict != evidence.VerdictUndecided ||
			p.Fitness.Emulated != "the processor of this machine is emulated" {
			t.Errorf("verdict %s, fitness %+v; want undecided, emulated", p.Verdict, p.Fitness)
		}
	})
}

// The time of latency is a budget: without limits a second of runs, with --latency-time what it says.
func TestLatencyBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits string
		asked  time.Duration
		runs   int
		budget time.Duration
	}{
		"nothing limited":          {"", 0, 256, time.Second},
		"p50":                      {"limits: {latency: {p50: {max: 1h}}}\n", 0, 1024, 3 * time.Second},
		"more than is needed":      {"", time.Nanosecond, 8, time.Nanosecond},
		"a p99 of 99 % confidence": {"limits: {confidence: 99%, latency: {p99: {max: 1h}}}\n", 0, 1024, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.p.LatencyTime = c.asked
			built := w.built(t, onlyFP32+c.limits, build.Options{})
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if err != nil {
				t.Fatal(err)
			}
			// A round has three cases, so that the last can exceed by two.
			if p := verified.Engines[0].Performance; p.Samples < c.runs || p.Samples > c.runs+2 || p.BudgetNs != c.budget.Nanoseconds() {
				t.Errorf("%d runs within %d ns, want %d within %d", p.Samples, p.BudgetNs, c.runs, c.budget.Nanoseconds())
			}
		})
	}
}

// What a verification remembers in case it breaks off is gone when it has its reports.
func TestVerifyKeepsNothingWhenItIsDone(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.p.Unfinished = t.TempDir()
	built := w.built(t, onlyFP32, build.Options{})
	failing := registry.Errorf(registry.CodeUnavailable, "killed")
	w.run = func(job toolchain.Job, _ string) error {
		if left, err := filepath.Glob(filepath.Join(w.p.Unfinished, "*", "began.json")); err != nil || len(left) != 1 {
			t.Errorf("while it runs: %q, error %v; want the beginning of one verification", left, err)
		}
		return failing
	}
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Fatalf("error %v, want that of the driver", err)
	}
	if left, err := os.ReadDir(w.p.Unfinished); err != nil || len(left) != 1 {
		t.Errorf("after it broke off: %v, error %v; want what it keeps", left, err)
	}
	failing = nil
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(w.p.Unfinished); err != nil || len(left) != 0 {
		t.Errorf("after it ended: %v, error %v; want nothing", left, err)
	}
}

// Steps that the cache has are not done again, and the result says how many.
func TestBuildFromCache(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	open, store := w.p.Toolchain, toolchain.NewStore(t.TempDir())
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, name)
		tools.Engines = toolchain.Cache(tools.Engines, store)
		return tools, err
	}
	if first := w.built(t, onlyFP32, build.Options{}); first.Steps != 2 || first.Cached != 0 {
		t.Errorf("the first build: %d of %d steps cached, want 0 of 2", first.Cached, first.Steps)
	}
	second := w.built(t, digits, build.Options{})
	cached := func(s progress.Step) bool { return s.State == progress.Done && s.Note == "cached" }
	if n := len(slices.DeleteFunc(slices.Clone(w.steps), func(s progress.Step) bool { return !cached(s) })); n != 2 {
		t.Errorf("%d steps say that they were cached, want 2", n)
	}
	if second.Steps != 4 || second.Cached != 2 {
		t.Errorf("the second build: %d of %d steps cached, want 2 of 4: the reference model's run and the engine that was there",
			second.Cached, second.Steps)
	}
}
