// Package inspection reads what is known about a release: its engines, their newest reports, the quarantines
// that stand, and who signed what.
package inspection

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Names are the names of the features of an input, or of the classes of an output.
type Names struct {
	Input  string   `json:"input,omitempty"`
	Output string   `json:"output,omitempty"`
	Count  int      `json:"count"`
	First  []string `json:"first"` // at most five
}

// Result is what is known about a release in an environment.
type Result struct {
	Ref     string           `json:"ref"`
	Release artifact.Release `json:"release"`
	Source  *Source          `json:"source,omitempty"` // absent where the sources cannot be read
	Engines []Engine         `json:"engines"`
	// CrossCheck says who checked the golden outputs; absent where no builder's provenance says it.
	CrossCheck *evidence.CrossCheck `json:"crossCheck,omitempty"`
	// Origin says from which commit the release was built, and by which CI job; absent where no builder's
	// provenance of the release says it.
	Origin *evidence.Origin `json:"origin,omitempty"`
	// Summary is the promoter's verification summary by which the release is in the environment; absent where
	// there is none that counts.
	Summary *evidence.VSA `json:"summary,omitempty"`
	// LeftOut are engines of the spec that the release was made without.
	LeftOut []evidence.LeftOut `json:"leftOut,omitempty"`
	// Names are the names of classes and features; absent where there are none. [Of] leaves them to
	// the caller, so that programs for nodes do not need to read interfaces.
	Names []Names `json:"names,omitempty"`
	// NodesGet is the engine that each registered node type gets of the release. [Of] leaves it to the caller.
	NodesGet []artifact.NodeEngine `json:"nodesGet,omitempty"`
	// Quarantines are those that stand, of the release and of its engines.
	Quarantines []Quarantine `json:"quarantines,omitempty"`
	// Approvals are those of trusted approvers for any environment, with what became of them. [Of]
	// leaves them to the caller, which knows the time.
	Approvals []evidence.GivenApproval `json:"approvals,omitempty"`
	// Skipped is what the promotion to this environment skipped; absent if nothing.
	Skipped  *evidence.Skipped `json:"skipped,omitempty"`
	Evidence []Claim           `json:"evidence"`
	evidence.IgnoredEvidence
	// Claims are what the evidence says.
	Claims []evidence.Claim `json:"-"`
}

// Source is the reference model, from which engines were built.
type Source struct {
	Digest registry.Digest `json:"digest"`
	Bytes  int64           `json:"bytes"`
}

// Engine is an engine of a release with its newest reports.
type Engine struct {
	Label       string                      `json:"label"`
	Digest      registry.Digest             `json:"digest"`
	Parity      *evidence.ParityReport      `json:"parity,omitempty"`
	Performance *evidence.PerformanceReport `json:"performance,omitempty"`
	// ParityBundle is the evidence that Parity is of.
	ParityBundle registry.Digest `json:"-"`
	// Served has the newest reports of runs through model servers, by their names.
	Served []Served `json:"served,omitempty"`
}

// Served has the newest reports of an engine that a model server ran in place of its runtime.
type Served struct {
	By          string                      `json:"by"`
	Parity      *evidence.ParityReport      `json:"parity,omitempty"`
	Performance *evidence.PerformanceReport `json:"performance,omitempty"`
}

// Through returns the engine with the reports through a server in place of the others. It has none if the server did not run it.
func (e Engine) Through(server string) Engine {
	e.Parity, e.Performance, e.ParityBundle = nil, nil, ""
	for _, s := range e.Served {
		if s.By == server {
			e.Parity, e.Performance = s.Parity, s.Performance
		}
	}
	e.Served = nil
	return e
}

// Quarantine is a quarantine that stands.
type Quarantine struct {
	Subject registry.Digest `json:"subject"`
	Label   string          `json:"label"` // "release", or the label of an engine
	Reason  string          `json:"reason"`
	Signer  string          `json:"signer"`
	Bundle  registry.Digest `json:"bundle"`
}

// Claim is a statement that counts: who signed it, and in which roles.
type Claim struct {
	Bundle        registry.Digest `json:"bundle"`
	Subject       registry.Digest `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Signer        string          `json:"signer"`
	Roles         []evidence.Role `json:"roles"`
	// Time is when it existed, and TimeSource what shows that; both are absent if nothing does.
	Time       time.Time           `json:"time,omitzero"`
	TimeSource evidence.TimeSource `json:"timeSource,omitempty"`
}

// Of reads what is known about a release.
func Of(ctx context.Context, in *connect.Registry, ref registry.Ref) (Result, error) {
	r, err := in.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return Result{}, err
	}
	claims, ignored, err := in.Claims(ctx, ref.Environment, r)
	if err != nil {
		return Result{}, err
	}
	counted, misplaced := evidence.Accept(r, claims)
	full := registry.Ref{Host: in.HostOf(ref.Environment), Environment: ref.Environment, Model: ref.Model, Tag: r.Tag(), Digest: r.Digest}
	found := Result{Ref: full.String(), Release: r, IgnoredEvidence: ignored, Claims: claims}
	found.Ignore(misplaced...)
	found.Source = source(ctx, in, r)
	for _, e := range r.Engines {
		engine := Engine{Label: e.Label(), Digest: e.Digest}
		engine.Parity, engine.ParityBundle = latest[evidence.ParityReport](counted, e, evidence.PredicateParity, "")
		engine.Performance, _ = latest[evidence.PerformanceReport](counted, e, evidence.PredicatePerformance, "")
		for _, server := range servers(counted, e) {
			through := Served{By: server}
			through.Parity, _ = latest[evidence.ParityReport](counted, e, evidence.PredicateParity, server)
			through.Performance, _ = latest[evidence.PerformanceReport](counted, e, evidence.PredicatePerformance, server)
			engine.Served = append(engine.Served, through)
		}
		found.Engines = append(found.Engines, engine)
	}
	for _, subject := range r.Subjects() {
		for _, c := range evidence.Quarantines(r, claims, subject.Digest) {
			found.Quarantines = append(found.Quarantines, Quarantine{c.Subject, nameOf(r, c.Subject), c.Reason(), c.Signer, c.Bundle})
		}
	}
	if _, summary, ok := policy.FindVSA(claims, r, in.Envs.ResourceURI(ref.Environment, r.Model)); ok {
		found.Skipped = summary.Promotion.Skipped
	}
	if _, summary, ok := policy.FindVSA(claims, r, in.Envs.ResourceURI(ref.Environment, ref.Model)); ok {
		found.Summary = &summary
	}
	found.LeftOut, found.Origin = evidence.LeftOutOf(r, claims), Origin(r, claims)
	for _, c := range counted {
		if check := c.Statement.CrossCheck(); check != nil && found.CrossCheck == nil {
			found.CrossCheck = check
		}
		at, by := c.Time()
		found.Evidence = append(found.Evidence, Claim{c.Bundle, c.Subject, c.Statement.PredicateType, c.Signer, c.Roles, at, by})
	}
	return found, nil
}

// nameOf is what people call the release or one of its engines.
func nameOf(r artifact.Release, subject registry.Digest) string {
	if s, ok := r.Subject(subject); ok {
		return s.Name
	}
	return "release"
}

// latest reads the newest report of a kind about an engine on its own runtime, or through a server, for showing, and says which evidence it is
// of; what counts is for the policy to say.
func latest[R any](claims []evidence.Claim, engine artifact.Engine, predicateType, server string) (newest *R, bundle registry.Digest) {
	var when time.Time
	for _, c := range claims {
		var head evidence.ReportHead
		report := new(R)
		if c.Subject != engine.Digest || c.Statement.PredicateType != predicateType ||
			registry.DecodeSigned(c.Statement.Predicate, &head) != nil || registry.DecodeSigned(c.Statement.Predicate, report) != nil {
			continue
		}
		if head.Runtime.InPlaceOf(engine) == server && (newest == nil || head.FinishedOn.After(when)) {
			newest, when, bundle = report, head.FinishedOn, c.Bundle
		}
	}
	return newest, bundle
}

// servers lists the model servers that ran an engine in place of its runtime.
func servers(claims []evidence.Claim, engine artifact.Engine) []string {
	found := make(map[string]bool)
	for _, c := range claims {
		var head evidence.ReportHead
		if c.Subject == engine.Digest && c.Statement.PredicateType == evidence.PredicateParity && registry.DecodeSigned(c.Statement.Predicate, &head) == nil {
			found[head.Runtime.InPlaceOf(engine)] = true
		}
	}
	delete(found, "")
	return registry.SortedKeys(found)
}

// source reads how large the reference is. Who may not read the sources, or has none,
// sees the rest of the release all the same.
func source(ctx context.Context, in *connect.Registry, r artifact.Release) *Source {
	if len(r.Engines) == 0 {
		return nil
	}
	found := &Source{Digest: r.Engines[0].Reference}
	repository := registry.SourcesRepository(in.Envs.First().Name, r.Model)
	part, err := in.Store.Fetch(ctx, repository, found.Digest, "")
	if err != nil {
		return nil
	}
	for _, f := range part.Files {
		found.Bytes += f.Size
	}
	return found
}
