package verify

import (
	"context"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Open brings what it needs to run one engine of a release here, and the reference model with its cases.
// name is the engine's label, target, variant or digest; empty means the only engine, or the only one whose newest
// report is no pass. Nothing is attached, so that no key is needed. Errors: CodeNotFound for a name that no engine
// has; CodeInvalid for one that several have; CodeWrongNode for an engine that does not run here; CodePolicy for one
// that no trusted builder signed.
func Open(ctx context.Context, env *run.Env, ref registry.Ref, name, scratch string) (Session, run.Candidate, error) {
	release, err := env.Registry.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return Session{}, run.Candidate{}, err
	}
	claims, _, err := env.Registry.Claims(ctx, ref.Environment, release)
	if err != nil {
		return Session{}, run.Candidate{}, err
	}
	engine, err := chooseEngine(release, claims, name)
	if err != nil {
		return Session{}, run.Candidate{}, err
	}
	of := release
	of.Engines = []artifact.Engine{engine}
	here, err := openHost(ctx, env, of)
	if err != nil {
		return Session{}, run.Candidate{}, err
	}
	candidates, _, err := here.choose(of)
	if err != nil {
		return Session{}, run.Candidate{}, err
	}
	if _, err := checkSignatures(ctx, env, ref.Environment, release, candidates); err != nil {
		return Session{}, run.Candidate{}, err
	}
	material, err := fetcher{env, ref.Environment, release, here, scratch}.one(ctx, candidates[0])
	if err != nil {
		return Session{}, run.Candidate{}, err
	}
	return Session{Env: env, Scratch: scratch, Host: here, Fetched: material,
		Subject: Subject{Environment: ref.Environment, Release: release, Claims: claims}}, material.candidates[0], nil
}

// one fetches an engine, and what its outputs are held against.
func (f fetcher) one(ctx context.Context, c run.Candidate) (got Fetched, err error) {
	done := f.env.Step("fetch engine and cases")
	defer func() { done("", err) }()
	repository := registry.Repository(f.environment, f.release.Model)
	if got.Limits, got.Iface, err = f.documents(ctx, repository); err != nil {
		return got, err
	}
	if err := f.sources(ctx, &got); err != nil {
		return got, err
	}
	c.Model, err = f.engine(ctx, repository, c)
	got.candidates = []run.Candidate{c}
	return got, err
}

// chooseEngine finds the engine that a name means.
func chooseEngine(r artifact.Release, claims []evidence.Claim, name string) (artifact.Engine, error) {
	var found []artifact.Engine
	var labels []string
	for _, e := range r.Engines {
		labels = append(labels, e.Label())
		if name == "" || isNamed(e, name) {
			found = append(found, e)
		}
	}
	if len(found) > 1 && name == "" {
		found = slices.DeleteFunc(slices.Clone(found), func(e artifact.Engine) bool {
			report, ok := NewestParity(r, claims, e.Digest)
			return !ok || report.Verdict == evidence.VerdictPass
		})
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case name == "":
		return artifact.Engine{}, registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s %s has %s: choose one", r.Model, r.Tag(),
			registry.Count(len(r.Engines), "engine")),
			"add --engine and its label: %s", strings.Join(labels, ", "))
	case len(found) == 0:
		return artifact.Engine{}, noEngine(r, name)
	}
	var digests []string
	for _, e := range found {
		digests = append(digests, e.Label()+" "+e.Digest.String())
	}
	return artifact.Engine{}, registry.Errorf(registry.CodeInvalid, "%s of %s %s means %s: name one by its label or digest: %s",
		name, r.Model, r.Tag(), registry.Count(len(found), "engine"), strings.Join(digests, ", "))
}

// NewestParity reads the newest parity report of a trusted verifier about an engine.
func NewestParity(r artifact.Release, claims []evidence.Claim, engine registry.Digest) (newest evidence.ParityReport, ok bool) {
	var when time.Time
	counted, _ := evidence.Accept(r, claims)
	for _, c := range counted {
		var report evidence.ParityReport
		if c.Subject != engine || c.Statement.PredicateType != evidence.PredicateParity || registry.DecodeSigned(c.Statement.Predicate,
			&report) != nil {
			continue
		}
		if !ok || report.FinishedOn.After(when) {
			newest, when, ok = report, report.FinishedOn, true
		}
	}
	return newest, ok
}
