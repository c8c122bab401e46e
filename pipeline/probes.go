package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/probe"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	// probedFrom is the version of limits from which engines are probed: what version 1 judged
	// keeps its verdict.
	probedFrom = 2
	// probeTime is what the probes of one engine may take, as far as that is known before.
	probeTime = 20 * time.Second
	// probeKill ends a process of probes that takes far longer than was known before, such as one
	// of a model that does not scale. What it was to find out is undecided.
	probeKill = 10 * probeTime
)

// prober probes the engines of a verification. The zero prober probes nothing.
type prober struct {
	v       verification
	outputs runOutputs
	set     *probe.Set
	dir     string
}

// prober makes the probes for the slowest engine, which all engines get, and runs the reference
// model on them.
func (v verification) prober(ctx context.Context, outputs runOutputs) (_ prober, err error) {
	if v.limits.V < probedFrom {
		return prober{}, nil
	}
	done := v.p.step("prepare probes")
	p := prober{v: v, outputs: outputs, dir: filepath.Join(v.scratch, "probes")}
	reference := candidate{id: referenceID, tool: v.tools[onnxRuntime], model: v.referenceModel}
	var held []string
	defer func() { done("", err, held...) }()
	p.set, err = probe.New(probe.Options{Interface: v.iface, Dir: v.cases.dir, Shards: v.cases.set.Shards,
		Scratch: p.dir, Budget: probeTime, Load: outputs.load(), Run: outputs.median()})
	if err != nil {
		return p, err
	}
	return p, p.set.Reference(ctx, p.runner(reference, &held))
}

// load is how long the slowest engine takes to load.
func (o runOutputs) load() time.Duration {
	var slowest int64
	for _, e := range o.engines {
		slowest = max(slowest, e.LoadNS)
	}
	return time.Duration(slowest)
}

// run probes an engine and adds to its report what was found. An engine whose outputs could not be
// compared is not probed.
func (p prober) run(ctx context.Context, c candidate, report *registry.ParityReport) (err error) {
	if p.set == nil || report.Cases.Ran == 0 {
		return nil
	}
	done := p.v.p.step("probe " + c.engine.Label())
	var held []string
	var note string
	defer func() { done(note, err, held...) }()
	dir := filepath.Join(p.dir, c.id)
	defer os.RemoveAll(dir)
	comparison, err := p.v.comparisonOfSome(ctx, c.engine.Precision)
	if err != nil {
		return err
	}
	engine := probe.Engine{Run: p.runner(c, &held), Outputs: p.outputs.dir(c.id), Comparison: comparison, Judge: p.judge(c)}
	found, reasons, err := p.set.Engine(ctx, engine, dir)
	if err != nil {
		return err
	}
	report.Probes = found
	if len(reasons) > 0 {
		report.Verdict, report.Reasons = registry.VerdictFail, append(report.Reasons, reasons...)
	}
	report.FinishedOn = p.v.p.now().UTC()
	note = probesNote(found)
	return nil
}

// judge judges by the limits of an engine's precision. What few cases cannot decide is no failure.
func (p prober) judge(c candidate) func(map[string]tensor.Result, int) (registry.Verdict, []registry.Reason) {
	return func(outputs map[string]tensor.Result, cases int) (registry.Verdict, []registry.Reason) {
		judged := p.v.limits.JudgeSome(c.engine.Precision, validators.Measured{Outputs: outputs, Cases: cases})
		return judged.Verdict, slices.DeleteFunc(judged.Reasons, func(r registry.Reason) bool {
			return r.Code != validators.ReasonLimit && r.Code != validators.ReasonNewNaN && r.Code != validators.ReasonNewInf
		})
	}
}

// runner runs an engine in a process of its own.
func (p prober) runner(c candidate, held *[]string) probe.Runner {
	return func(ctx context.Context, inputs []probe.Input, dir string) (string, error) {
		run := c.tool.run(toolchain.RunOptions{})
		run.job.Machine, run.job.Budget.Time = machine(p.v.node), probeKill
		for _, in := range inputs {
			input, err := toolchain.FileInput(toolchain.RoleCases, in.Name, in.Path)
			if err != nil {
				return "", err
			}
			run.job.Inputs = append(run.job.Inputs, input)
		}
		run.addCandidate(c)
		if c.id == referenceID { // it runs as it did for the golden outputs
			run.job.Run.Threads, run.job.Run.Level = runThreads, c.tool.Profile.Level
			run.job.Run.Engines[0].Load = nil
		}
		_, err := run.do(ctx, dir)
		*held = run.held
		return filepath.Join(dir, "outputs", c.id), err
	}
}

// probesNote says how many probes there are, how many say nothing, and whether runs differ.
func probesNote(probes []registry.Probe) string {
	note := registry.Count(len(probes), "probe")
	for _, c := range []struct {
		verdict registry.Verdict
		text    string
	}{{registry.VerdictUndecided, "undecided"}, {registry.VerdictRecorded, "with jitter within the limits"}} {
		is := func(p registry.Probe) bool { return p.Verdict == c.verdict }
		if n := len(probes) - len(slices.DeleteFunc(slices.Clone(probes), is)); n > 0 {
			note += fmt.Sprintf(", %d %s", n, c.text)
		}
	}
	return note
}

// plainProbes are probes as evidence may have them.
func plainProbes(probes []registry.Probe) []registry.Probe {
	plain := slices.Clone(probes)
	for i := range plain {
		for _, text := range []*string{&plain[i].What, &plain[i].Output, &plain[i].Message} {
			*text = registry.PlainText(*text)
		}
	}
	return plain
}
