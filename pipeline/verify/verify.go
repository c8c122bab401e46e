package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// Verify runs every engine whose target this machine meets on all cases, compares
// with the golden outputs, measures latency, and attaches signed reports. A
// report that fails is attached like one that passes, and then the error is
// CodeLimit. Errors: CodeWrongNode when this machine meets no target; CodePolicy when
// no trusted builder signed an engine; CodeDigest when stored bytes were changed.
func Verify(ctx context.Context, env *run.Env, ref registry.Ref) (Result, error) {
	temp, err := tempdir.New("verify")
	if err != nil {
		return Result{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	if err := env.UseKey(ctx, evidence.RoleVerifier, ref.Environment, ref.Model); err != nil {
		return Result{}, err
	}
	v, err := newSession(ctx, env, ref, scratch)
	if err != nil {
		return Result{}, err
	}
	return judge(ctx, v)
}

// newSession brings what the verification of a release on this machine needs.
func newSession(ctx context.Context, env *run.Env, ref registry.Ref, scratch string) (Session, error) {
	began, err := begin(ctx, env, ref.Model)
	if err != nil {
		return Session{}, err
	}
	release, err := env.Registry.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return Session{}, err
	}
	of, err := targeted(env, release)
	if err != nil {
		return Session{}, err
	}
	here, err := openHost(ctx, env, of)
	if err != nil {
		return Session{}, err
	}
	candidates, skipped, err := here.choose(of)
	if err != nil {
		return Session{}, err
	}
	claims, err := checkSignatures(ctx, env, ref.Environment, release, candidates)
	if err != nil {
		return Session{}, err
	}
	material, err := fetcher{env, ref.Environment, release, here, scratch}.all(ctx, candidates)
	if err != nil {
		return Session{}, err
	}
	v := Session{Env: env, Scratch: scratch, Host: here, Fetched: material, skipped: skipped,
		Subject: Subject{Began: began, Environment: ref.Environment, Release: release, Claims: claims}}
	return v, serve(ctx, &v)
}

// targeted is the release with the engines that are to be verified. Errors: CodeInvalid for a target that it does not have, CodeNotFound
// for an engine.
func targeted(env *run.Env, r artifact.Release) (artifact.Release, error) {
	var names []string
	var kept []artifact.Engine
	for _, e := range r.Engines {
		names = append(names, e.Target.Name)
		ofTarget := len(env.Targets) == 0 || slices.Contains(env.Targets, e.Target.Name)
		if ofTarget && (len(env.Engines) == 0 || slices.ContainsFunc(env.Engines, func(name string) bool { return isNamed(e, name) })) {
			kept = append(kept, e)
		}
	}
	for _, name := range env.Engines {
		if !slices.ContainsFunc(r.Engines, func(e artifact.Engine) bool { return isNamed(e, name) }) {
			return r, noEngine(r, name)
		}
	}
	err := run.CheckTargets(env.Targets, slices.Compact(names))
	if r.Engines = kept; err == nil && len(kept) == 0 && len(names) > 0 {
		err = registry.Errorf(registry.CodeInvalid, "no engine of the targets %s is %s", strings.Join(env.Targets, ", "), strings.Join(env.Engines, ", "))
	}
	return r, err
}

// checkSignatures wants a trusted builder behind everything that will run here. It returns what
// is claimed about the release.
func checkSignatures(ctx context.Context, env *run.Env, environment string,
	release artifact.Release, candidates []run.Candidate) ([]evidence.Claim, error) {
	claims, _, err := env.Registry.Claims(ctx, environment, release)
	if err != nil {
		return nil, err
	}
	var lacking []error
	for _, c := range candidates {
		signed := policy.Policy{Require: []string{policy.RequireSignature}}.CheckEngine(release, c.Engine, claims)
		for _, r := range signed.Unmet() {
			lacking = append(lacking, registry.Errorf(registry.CodePolicy, "%s: %s: %s", r.Subject, r.Name, r.Detail))
		}
	}
	return claims, errors.Join(lacking...)
}

// judge runs, compares, signs and attaches, engine by engine.
func judge(ctx context.Context, v Session) (_ Result, err error) {
	memory, err := openUnfinished(v)
	if err != nil {
		return Result{}, err
	}
	finished := false
	defer func() { err = errors.Join(err, memory.close(finished)) }()
	outputs, err := runCases(ctx, v, memory)
	if err != nil {
		return Result{}, err
	}
	latencies, err := latencies(ctx, v, outputs)
	if err != nil {
		return Result{}, err
	}
	result := Result{
		Ref: registry.Ref{Environment: v.Environment,
			Model: v.Release.Model, Tag: v.Release.Tag(), Digest: v.Release.Digest},
		Release: v.Release, Node: v.Node, Skipped: v.skipped,
	}
	checks, err := newConsistencyChecks(ctx, v, outputs, time.Duration(latencies.latency(run.ReferenceID).P50Ns))
	if err != nil {
		return Result{}, err
	}
	var failures []error
	for _, c := range v.candidates {
		verified, failure, err := judgeOne(ctx, v, c, outputs, latencies, checks)
		if err != nil {
			return Result{}, registry.Errorf(registry.CodeOf(err), "%s: %w", c.Engine.Label(), err)
		}
		failures = append(failures, failure)
		result.Engines = append(result.Engines, verified)
	}
	// What was run of an engine that remained undecided is remembered for the next time.
	finished = true
	for i, e := range result.Engines {
		if outputs.broken[v.candidates[i].ID] != nil && e.Parity.Verdict == evidence.VerdictUndecided {
			finished = false
		}
	}
	if err := explain(ctx, v, result.Engines); err != nil {
		return Result{}, err
	}
	conversion := goldenset.ConversionText(*v.Golden.Set, v.Golden.Set.Kind)
	for _, text := range []string{conversion, cases.RareText(*v.Cases.Set, v.Cases.Dir, v.Iface, v.Limits.Accuracy)} {
		if text != "" {
			v.Env.Caution(text)
		}
	}
	hints(result.Engines, failures)
	hintBF16(v, failures)
	hintHalf(v, failures)
	hintConverted(v, failures)
	hintThreads(v, result.Engines, failures)
	for i, e := range result.Engines {
		failures[i] = remedy.Usual(failures[i], e.Label, v.candidates[i].Engine.Precision, conversion != "", e.Parity.ReportHead, e.Performance.ReportHead)
	}
	if v.Env.Server == "" {
		result.Slow = slow(v, result.Engines)
	}
	return result, errors.Join(failures...)
}

// judgeOne judges an engine and attaches its reports. failure says why it is no pass; nothing is
// attached about an engine of which nothing could be found out.
func judgeOne(ctx context.Context, v Session, c run.Candidate, outputs RunOutputs,
	latencies measured, checks consistencyChecks) (found VerifiedEngine, failure, err error) {
	found = VerifiedEngine{Label: c.Engine.Label(), Digest: c.Engine.Digest}
	var against validators.Findings
	if broken := outputs.broken[c.ID]; broken != nil {
		var attach bool
		if found.Parity, against, attach = brokenReport(ctx, v, c, outputs); !attach {
			found.Performance = performanceOf(v, c, outputs, latencies)
			if v.faults[c.ID] != nil { // nothing ran, so nothing is known of the engine
				return found, failed(found), ctx.Err()
			}
			return found, undecided(found.Label, broken), ctx.Err()
		}
	} else if against, err = judgeRuns(ctx, v, c, outputs, checks, &found); err != nil {
		return found, nil, err
	}
	append(against, latencies.checkTimed(c)...).OnePerLine().Fold(&found.Parity.ReportHead)
	found.Performance = performanceOf(v, c, outputs, latencies)
	found.Performance.Loads = found.loads
	return found, failed(found), report(ctx, v, c.Engine, found)
}

// judgeRuns judges what an engine computed for the cases, without its load profile and beyond the cases.
// It adds the report, the file of per-case figures and whether runs were late to the engine, and returns why the engine does not pass.
func judgeRuns(ctx context.Context, v Session, c run.Candidate, outputs RunOutputs,
	checks consistencyChecks, engine *VerifiedEngine) (validators.Findings, error) {
	report, found, err := Parity(ctx, v, c, outputs)
	if err != nil {
		return nil, err
	}
	plain, against, err := checkPlainLoad(ctx, v, c, newExtra(v, c.ID, outputs, 1), found.whole, len(found.against) == 0)
	if err != nil {
		return nil, err
	}
	left := newExtra(v, c.ID, outputs, 2)
	onCases, _ := found.against.Verdict()
	fails := onCases == evidence.VerdictFail
	consistent, more, err := checks.run(ctx, c, left, found.whole, report.Cases.Ran, fails)
	if err != nil {
		return nil, err
	}
	clients, loads, mixed, err := underLoad(ctx, v, c, outputs, found.whole)
	if err != nil {
		return nil, err
	}
	engine.loads, against = loads, append(against, mixed...)
	report.Checks = slices.Concat(report.Checks, plain, consistent, clients)
	if fails { // its errors at other sizes are no other fault
		more = slices.DeleteFunc(more, func(f validators.Finding) bool { return f.Reason.Code == validators.ReasonDimension })
	}
	against = slices.Concat(found.against, against, more)
	if len(against) == 0 {
		against = contradicted(v, c, report)
	}
	report.FinishedOn = v.Env.Time().UTC()
	engine.Parity, engine.figures, engine.late = report, found.figures, left.late
	return against, nil
}

// failed says which limits an engine exceeded, or could not be shown to keep, or gives nil.
func failed(e VerifiedEngine) error {
	what := "is undecided, which is no pass"
	var lines []string
	for _, head := range []evidence.ReportHead{e.Parity.ReportHead, e.Performance.ReportHead} {
		if head.Verdict == evidence.VerdictFail {
			what = "does not keep its limits"
		}
		if head.Verdict == evidence.VerdictPass || head.Verdict == evidence.VerdictRecorded {
			continue
		}
		for _, r := range head.Reasons {
			lines = append(lines, registry.PlainText(r.Message))
		}
	}
	switch {
	case e.Passes():
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

// runCases runs all candidates on all cases, once, each with its own toolchain: large ones
// chunk by chunk, the others of a toolchain in one process.
func runCases(ctx context.Context, v Session, memory unfinished) (_ RunOutputs, err error) {
	candidates := slices.Concat(v.candidates, comparedCurrents(v))
	ctx, done := v.Env.Report().StepIn(ctx, fmt.Sprintf("run %s on %s",
		registry.Count(len(candidates), "engine"), registry.Count(v.Cases.Set.Count, "case")))
	var held []string
	var note string
	defer func() { done(note, err, held...) }()
	out := RunOutputs{Root: make(map[string]string), broken: make(map[string]error), earlier: make(map[string]int), resumed: memory.began}
	for _, group := range v.Tools.RunGroups(candidates) {
		dir := filepath.Join(v.Scratch, "outputs-of-cases-"+group.Name)
		together := group
		together.Members = nil
		for _, c := range group.Members {
			out.Root[c.ID] = dir
			if v.faults[c.ID] != nil {
				out.broken[c.ID] = v.faults[c.ID]
				continue
			}
			if !chunked(v, c) {
				together.Members = append(together.Members, c)
			}
		}
		more, err := runGroup(ctx, v, together, dir, &out)
		if err != nil {
			return RunOutputs{}, err
		}
		held = append(held, more...)
		for _, c := range group.Members {
			if !chunked(v, c) || out.broken[c.ID] != nil {
				continue
			}
			r, err := inChunks(ctx, v, c, memory, dir)
			if ctx.Err() != nil {
				return RunOutputs{}, err
			}
			if err != nil {
				out.broken[c.ID] = err
				continue
			}
			out.Engines, out.earlier[c.ID] = append(out.Engines, r.result), r.earlier
			held = append(held, r.held...)
		}
	}
	note = out.note(v.Cases.Set.Count)
	return out, nil
}
