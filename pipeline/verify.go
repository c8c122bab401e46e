package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// VerifyResult is what this machine found out about a release.
type VerifyResult struct {
	Ref     registry.Ref     `json:"-"`
	Release registry.Release `json:"release"`
	Node    registry.Node    `json:"node"`
	Engines []VerifiedEngine `json:"engines"`
	Skipped []SkippedEngine  `json:"skipped,omitempty"` // engines whose target this machine does not meet
	// Slow are engines that take far longer here than one in fp32.
	Slow []SlowEngine `json:"slow,omitempty"`
}

// VerifiedEngine is an engine that ran here.
type VerifiedEngine struct {
	Label       string                     `json:"label"`
	Digest      registry.Digest            `json:"digest"`
	Parity      registry.ParityReport      `json:"parity"`
	Performance registry.PerformanceReport `json:"performance"`
	// Sensitivity is there for an int8 engine that failed, where it could be found out.
	Sensitivity *Sensitivity `json:"sensitivity,omitempty"`

	figures []byte // the file of per-case figures that the parity report names; nil for none
	late    bool   // a consistency check did not begin or did not end for want of time
}

// SkippedEngine is an engine that did not run here, and why.
type SkippedEngine struct {
	Label      string              `json:"label"`
	Mismatches []registry.Mismatch `json:"mismatches"`
	Reason     string              `json:"reason,omitempty"` // why its toolchain cannot be had here, if so
}

// String says why the engine did not run: what the machine lacks first, and why it lacks that.
func (s SkippedEngine) String() string {
	text := s.Label + ": " + s.Mismatches[0].String()
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

// verification is one release on one machine: what is to be verified, where, and with what.
// What it says of these does not change once it is made.
type verification struct {
	p       *Pipeline
	scratch string
	subject
	host
	fetched
	skipped []SkippedEngine
}

// subject is the release that is verified, as it was when the verification began.
type subject struct {
	began       beginning
	environment string
	release     registry.Release
	claims      []registry.Claim // about the release and its engines
}

// host is this machine, and the toolchains that it has for the engines of a release.
type host struct {
	tools   tools
	node    registry.Node
	lacking map[string]error // why toolchains of the release's engines cannot be had here
}

// candidate is an engine that runs here.
type candidate struct {
	id     string // names it among the engines of a run
	engine registry.Engine
	tool   tool
	model  loadable
}

// material is a part that was fetched.
type material struct {
	ref   registry.PartRef
	dir   string
	files []registry.File
	set   *registry.CaseSet
}

// Verify runs every engine whose target this machine meets on all cases, compares
// with the golden outputs, measures latency, and attaches signed reports. A
// report that fails is attached like one that passes, and then the error is
// CodeLimit. Errors: CodeWrongNode when this machine meets no target; CodePolicy when
// no trusted builder signed an engine; CodeDigest when stored bytes were changed.
func (p *Pipeline) Verify(ctx context.Context, ref registry.Ref) (VerifyResult, error) {
	temp, err := tempdir.New("verify")
	if err != nil {
		return VerifyResult{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	if err := p.openKey(ctx, registry.RoleVerifier, ref.Environment, ref.Model); err != nil {
		return VerifyResult{}, err
	}
	v, err := p.verification(ctx, ref, scratch)
	if err != nil {
		return VerifyResult{}, err
	}
	return v.judge(ctx)
}

// verification brings what the verification of a release on this machine needs.
func (p *Pipeline) verification(ctx context.Context, ref registry.Ref, scratch string) (verification, error) {
	began, err := p.begin(ctx, ref.Model)
	if err != nil {
		return verification{}, err
	}
	release, err := p.Registry.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return verification{}, err
	}
	of, err := p.targeted(release)
	if err != nil {
		return verification{}, err
	}
	here, err := p.host(ctx, of)
	if err != nil {
		return verification{}, err
	}
	candidates, skipped, err := here.choose(of)
	if err != nil {
		return verification{}, err
	}
	claims, err := p.checkSignatures(ctx, ref.Environment, release, candidates)
	if err != nil {
		return verification{}, err
	}
	material, err := fetcher{p, ref.Environment, release, here, scratch}.all(ctx, candidates)
	return verification{p: p, scratch: scratch, host: here, fetched: material, skipped: skipped,
		subject: subject{began: began, environment: ref.Environment, release: release, claims: claims}}, err
}

// host opens ONNX Runtime, and the toolchains of the engines that this machine would run if it had
// them. One that cannot be had here is a runtime that the machine lacks.
func (p *Pipeline) host(ctx context.Context, release registry.Release) (host, error) {
	found := make(tools)
	if err := found.open(ctx, p, onnxRuntime); err != nil {
		return host{}, err
	}
	lacking := make(map[string]error)
	bare, err := p.Node(ctx, nil)
	if err != nil {
		return host{}, err
	}
	for _, e := range release.Engines {
		if !(host{node: bare}).machineMeets(e.Target) {
			continue
		}
		if lacking[e.Toolchain.Name] != nil {
			continue
		}
		err := found.open(ctx, p, e.Toolchain.Name)
		if err != nil && ctx.Err() != nil {
			return host{}, err
		}
		if err != nil {
			lacking[e.Toolchain.Name] = err
		}
	}
	node, err := p.Node(ctx, found.runtimes())
	return host{found, node, lacking}, err
}

// choose keeps the engines whose target the machine meets. Errors: CodeWrongNode if it meets none.
func (h host) choose(release registry.Release) ([]candidate, []SkippedEngine, error) {
	var candidates []candidate
	var skipped []SkippedEngine
	for _, e := range release.Engines {
		tool, lacks := h.toolOf(e)
		if lacks != nil {
			skipped = append(skipped, *lacks)
			continue
		}
		candidates = append(candidates, candidate{id: engineID(len(candidates)), engine: e, tool: tool})
	}
	if len(candidates) > 0 {
		return candidates, skipped, nil
	}
	var lines []string
	for _, s := range skipped {
		lines = append(lines, s.String())
	}
	return nil, nil, registry.Errorf(registry.CodeWrongNode,
		"this machine meets no target of %s %s, so nothing can be verified on it:\n  %s",
		release.Model, release.Tag(), strings.Join(lines, "\n  "))
}

// targeted is the release with the engines of the targets that are to be verified. Errors: CodeInvalid for a target that
// it does not have.
func (p *Pipeline) targeted(r registry.Release) (registry.Release, error) {
	if len(p.Targets) == 0 {
		return r, nil
	}
	var names []string
	var kept []registry.Engine
	for _, e := range r.Engines {
		names = append(names, e.Target.Name)
		if slices.Contains(p.Targets, e.Target.Name) {
			kept = append(kept, e)
		}
	}
	r.Engines = kept
	return r, knownTargets(p.Targets, slices.Compact(names))
}

// toolOf gives the tool that runs an engine here, or why it does not run here.
func (h host) toolOf(e registry.Engine) (tool, *SkippedEngine) {
	if lacks := e.Target.Match(h.node, h.node.Runtime()); len(lacks) > 0 {
		return tool{}, &SkippedEngine{e.Label(), lacks, h.why(e)}
	}
	found, ok := h.tools[e.Toolchain.Name]
	if !ok || found.Profile.CompileOnly {
		return tool{}, &SkippedEngine{e.Label(), []registry.Mismatch{{Requirement: "toolchain", Need: e.Toolchain.Name}}, h.why(e)}
	}
	return found, nil
}

// machineMeets reports whether this machine meets a target, whatever runtimes it has.
func (h host) machineMeets(t registry.Target) bool {
	t.Runtimes = nil
	return len(t.Match(h.node, h.node.Runtime())) == 0
}

// why says why the toolchain of an engine cannot be had here; empty if it can, or was not tried.
func (h host) why(e registry.Engine) string {
	if err := h.lacking[e.Toolchain.Name]; err != nil {
		return registry.PlainText(err.Error())
	}
	return ""
}

// checkSignatures wants a trusted builder behind everything that will run here. It returns what
// is claimed about the release.
func (p *Pipeline) checkSignatures(ctx context.Context, environment string,
	release registry.Release, candidates []candidate) ([]registry.Claim, error) {
	claims, _, err := p.Registry.Claims(ctx, environment, release)
	if err != nil {
		return nil, err
	}
	var lacking []error
	for _, c := range candidates {
		signed := registry.Policy{Require: []string{registry.RequireSignature}}.CheckEngine(release, c.engine, claims)
		for _, r := range signed.Unmet() {
			lacking = append(lacking, registry.Errorf(registry.CodePolicy, "%s: %s: %s", r.Subject, r.Name, r.Detail))
		}
	}
	return claims, errors.Join(lacking...)
}

// judge runs, compares, signs and attaches, engine by engine.
func (v verification) judge(ctx context.Context) (_ VerifyResult, err error) {
	memory, err := v.openUnfinished()
	if err != nil {
		return VerifyResult{}, err
	}
	finished := false
	defer func() { err = errors.Join(err, memory.close(finished)) }()
	outputs, err := v.runCases(ctx, memory)
	if err != nil {
		return VerifyResult{}, err
	}
	latencies, err := v.latencies(ctx, outputs)
	if err != nil {
		return VerifyResult{}, err
	}
	result := VerifyResult{
		Ref: registry.Ref{Environment: v.environment,
			Model: v.release.Model, Tag: v.release.Tag(), Digest: v.release.Digest},
		Release: v.release, Node: v.node, Skipped: v.skipped,
	}
	checks, err := v.consistencyChecks(ctx, outputs, time.Duration(latencies.latency(referenceID).P50Ns))
	if err != nil {
		return VerifyResult{}, err
	}
	var failures []error
	for _, c := range v.candidates {
		verified, failure, err := v.judgeOne(ctx, c, outputs, latencies, checks)
		if err != nil {
			return VerifyResult{}, registry.Errorf(registry.CodeOf(err), "%s: %w", c.engine.Label(), err)
		}
		failures = append(failures, failure)
		result.Engines = append(result.Engines, verified)
	}
	// What was run of an engine that remained undecided is remembered for the next time.
	finished = true
	for i, e := range result.Engines {
		if outputs.broken[v.candidates[i].id] != nil && e.Parity.Verdict == registry.VerdictUndecided {
			finished = false
		}
	}
	if err := v.explain(ctx, result.Engines); err != nil {
		return VerifyResult{}, err
	}
	if text := conversionText(*v.golden.set, v.golden.set.Kind); text != "" {
		v.p.warn(text)
	}
	hints(result.Engines, failures)
	v.hintBF16(failures)
	v.hintThreads(result.Engines, failures)
	result.Slow = v.slow(result.Engines)
	return result, errors.Join(failures...)
}

// judgeOne judges an engine and attaches its reports. failure says why it is no pass; nothing is
// attached about an engine of which nothing could be found out.
func (v verification) judgeOne(ctx context.Context, c candidate, outputs runOutputs,
	latencies measured, checks consistencyChecks) (found VerifiedEngine, failure, err error) {
	found = VerifiedEngine{Label: c.engine.Label(), Digest: c.engine.Digest}
	var against validators.Findings
	if broken := outputs.broken[c.id]; broken != nil {
		var attach bool
		if found.Parity, against, attach = v.brokenReport(ctx, c, outputs); !attach {
			found.Performance = v.performance(c, outputs, latencies)
			return found, undecided(found.Label, broken), ctx.Err()
		}
	} else if against, err = v.judgeRuns(ctx, c, outputs, checks, &found); err != nil {
		return found, nil, err
	}
	append(against, latencies.checkTimed(c)...).Fold(&found.Parity.ReportHead)
	found.Performance = v.performance(c, outputs, latencies)
	return found, failed(found), v.report(ctx, c.engine, found)
}

// judgeRuns judges what an engine computed for the cases, without its load profile and beyond the cases.
// It adds the report, the file of per-case figures and whether runs were late to the engine, and returns why the engine does not pass.
func (v verification) judgeRuns(ctx context.Context, c candidate, outputs runOutputs,
	checks consistencyChecks, engine *VerifiedEngine) (validators.Findings, error) {
	report, found, err := v.parity(ctx, c, outputs)
	if err != nil {
		return nil, err
	}
	plain, against, err := v.checkPlainLoad(ctx, c, v.extra(c.id, outputs, 1), found.whole, len(found.against) == 0)
	if err != nil {
		return nil, err
	}
	report.PlainLoad = plain
	left := v.extra(c.id, outputs, 2)
	consistent, more, err := checks.run(ctx, c, left, found.whole, report.Cases.Ran)
	if err != nil {
		return nil, err
	}
	report.Consistency = consistent
	against = slices.Concat(found.against, against, more)
	if len(against) == 0 {
		against = v.contradicted(c, report)
	}
	report.FinishedOn = v.p.now().UTC()
	engine.Parity, engine.figures, engine.late = report, found.figures, left.late
	return against, nil
}

// passes reports whether an engine computes what the reference computes, and is as fast as its limits
// ask; without a limit on its times, they are only recorded.
func (e VerifiedEngine) passes() bool {
	fast := e.Performance.Verdict == registry.VerdictPass || e.Performance.Verdict == registry.VerdictRecorded
	return fast && e.Parity.Verdict == registry.VerdictPass
}

// failed says which limits an engine exceeded, or could not be shown to keep, or gives nil.
func failed(e VerifiedEngine) error {
	what := "is undecided, which is no pass"
	var lines []string
	for _, head := range []registry.ReportHead{e.Parity.ReportHead, e.Performance.ReportHead} {
		if head.Verdict == registry.VerdictFail {
			what = "does not keep its limits"
		}
		if head.Verdict == registry.VerdictPass || head.Verdict == registry.VerdictRecorded {
			continue
		}
		for _, r := range head.Reasons {
			lines = append(lines, registry.PlainText(r.Message))
		}
	}
	switch {
	case e.passes():
		return nil
	case len(lines) == 0:
		return registry.Errorf(registry.CodeLimit, "%s %s", e.Label, what)
	}
	if more := len(lines) - mostReasons; more > 1 {
		lines = append(lines[:mostReasons], fmt.Sprintf("and %d more reasons, which `mlpromote report show` lists", more))
	}
	return registry.Errorf(registry.CodeLimit, "%s %s:\n  %s", e.Label, what, strings.Join(lines, "\n  "))
}

// mostReasons is how many reasons of an engine an error lists: one that is wrong at every size of its inputs has many.
const mostReasons = 8

// engineID names the i-th candidate among the engines of a run.
func engineID(i int) string { return fmt.Sprintf("engine-%d", i) }

// runOutputs is where runs left their outputs, and how long their single runs took.
type runOutputs struct {
	root    map[string]string // by engine: where its run left its outputs
	broken  map[string]error  // by engine: why it did not run
	earlier map[string]int    // by engine: cases that an earlier verification had run
	resumed beginning         // of that verification
	engines []toolchain.EngineResult
}

// began is when the outputs of an engine began to be made.
func (o runOutputs) began(id string, now beginning) beginning {
	if o.earlier[id] > 0 {
		return o.resumed
	}
	return now
}

// providers says who ran an engine.
func (o runOutputs) providers(id string) []registry.ProviderShare {
	for _, e := range o.engines {
		if e.ID == id {
			return e.Providers
		}
	}
	return nil
}

func (o runOutputs) dir(id string) string { return filepath.Join(o.root[id], "outputs", id) }

// runCases runs all candidates on all cases, once, each with its own toolchain: large ones
// chunk by chunk, the others of a toolchain in one process.
func (v verification) runCases(ctx context.Context, memory unfinished) (_ runOutputs, err error) {
	candidates := slices.Concat(v.candidates, v.comparedCurrents())
	ctx, done := v.p.report().stepIn(ctx, fmt.Sprintf("run %s on %s",
		registry.Count(len(candidates), "engine"), registry.Count(v.cases.set.Count, "case")))
	var held []string
	var note string
	defer func() { done(note, err, held...) }()
	out := runOutputs{root: make(map[string]string), broken: make(map[string]error), earlier: make(map[string]int), resumed: memory.began}
	for _, group := range v.tools.runGroups(candidates) {
		dir := filepath.Join(v.scratch, "outputs-of-cases-"+group.name)
		together := group
		together.members = nil
		for _, c := range group.members {
			out.root[c.id] = dir
			if !v.chunked(c) {
				together.members = append(together.members, c)
			}
		}
		more, err := v.runGroup(ctx, together, dir, &out)
		if err != nil {
			return runOutputs{}, err
		}
		held = append(held, more...)
		for _, c := range group.members {
			if !v.chunked(c) {
				continue
			}
			r, err := v.inChunks(ctx, c, memory, dir)
			if ctx.Err() != nil {
				return runOutputs{}, err
			}
			if err != nil {
				out.broken[c.id] = err
				continue
			}
			out.engines, out.earlier[c.id] = append(out.engines, r.result), r.earlier
			held = append(held, r.held...)
		}
	}
	note = out.note(v.cases.set.Count)
	return out, nil
}

// note says what did not run again.
func (o runOutputs) note(cases int) string {
	total, earlier := 0, 0
	for _, n := range o.earlier {
		total, earlier = total+cases, earlier+n
	}
	if earlier == 0 {
		return ""
	}
	return fmt.Sprintf("resumed: %d of %d cases were run before", earlier, total)
}

// inputs names the files of a fetched part as the inputs of a job.
func (m material) inputs(role string) []toolchain.Input {
	inputs := make([]toolchain.Input, len(m.files))
	for i, f := range m.files {
		inputs[i] = toolchain.Input{Role: role, Name: f.Path,
			Path: filepath.Join(m.dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size}
	}
	return inputs
}
