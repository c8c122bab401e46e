// Package approver signs and attaches what approvers say: quarantines of a release or an engine, in
// every environment that has it, and approvals of promotions. Package registry decides what the
// evidence means.
package approver

import (
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Registry is the part of [api.Interface] that this package needs.
type Registry interface {
	api.Inspector
	api.Lister
	Heads(ctx context.Context, environment, model string) ([]history.Head, error)
	Attach(ctx context.Context, a api.Attachment) (registry.Digest, error)
	history.HistoryReader
}

// Quarantiner signs and attaches quarantines. All fields but Unread are required.
type Quarantiner struct {
	Registry     Registry
	Environments policy.Environments
	Sign         storage.SignEvidence // asked for the approver's role
	Now          storage.Clock
	Unread       func(Unread) // called for each release that cannot be read; may be nil
}

// Place is a release in an environment that is the subject, or has it among its engines.
type Place struct {
	Environment string           `json:"environment"`
	Model       string           `json:"model"`
	Version     string           `json:"version"` // tag of the release
	Release     registry.Digest  `json:"release"`
	Subject     artifact.Subject `json:"-"`
	// Head is true if the release is the head of the environment.
	Head bool `json:"head"`
}

// Attached is evidence that was attached at a place.
type Attached struct {
	Place
	Evidence registry.Digest `json:"evidence"` // of the bundle's manifest
	// Nodes report that they have what it is about ([Quarantiner.AddNodes]).
	Nodes []storage.NodeReport `json:"nodes,omitempty"`
}

// Set puts the subject of places into quarantine: one signed statement, attached in each. The
// places are of one subject and model, as [Quarantiner.Find] gives them. Where a quarantine of the subject for
// the same reason stands, nothing is attached; the result is empty if that is everywhere. What was attached
// before an error is returned with it; the same call again does the rest. Errors: CodeInvalid
// without a place or a reason; CodeUnavailable without an approver's key; those of Attach.
func (q Quarantiner) Set(ctx context.Context, places []Place, reason string) ([]Attached, error) {
	var without []Place
	for _, p := range places {
		given, err := q.given(ctx, p, reason)
		if err != nil {
			return nil, err
		}
		if !given {
			without = append(without, p)
		}
	}
	if len(without) == 0 && len(places) > 0 {
		return nil, nil
	}
	return q.attach(ctx, without, func(about evidence.StatementSubject, now time.Time) ([]byte, error) {
		return evidence.NewQuarantine(about, reason, now)
	})
}

// given reports whether a quarantine for a reason stands at a place and was attached there: it counts elsewhere, too, but it is not
// among the evidence of a copy from there.
func (q Quarantiner) given(ctx context.Context, p Place, reason string) (bool, error) {
	standing, err := q.standing(ctx, p)
	if err != nil || len(standing) == 0 {
		return false, err
	}
	events, err := q.Registry.History(ctx, history.HistoryQuery{
		Environment: p.Environment, Model: p.Model, Kind: history.EventAttach, Subject: p.Subject.Digest,
	})
	return slices.ContainsFunc(events, func(e history.Event) bool {
		return slices.ContainsFunc(standing, func(c evidence.Claim) bool { return c.Reason() == reason && slices.Contains(e.Evidence, c.Bundle) })
	}), err
}

// Lift lifts every quarantine of the subject at places that is not lifted yet. Errors: those of
// Set; CodeNotFound if there is no quarantine.
func (q Quarantiner) Lift(ctx context.Context, places []Place, reason string) ([]Attached, error) {
	var lifts []registry.Digest
	var there []Place
	for _, p := range places {
		found, err := q.standing(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			lifts = append(lifts, c.Bundle)
		}
		if len(found) > 0 {
			there = append(there, p)
		}
	}
	if len(there) == 0 {
		return nil, registry.Errorf(registry.CodeNotFound, "nothing to lift: no quarantine stands")
	}
	return q.attach(ctx, there, func(about evidence.StatementSubject, now time.Time) ([]byte, error) {
		return evidence.NewQuarantineLift(about, reason, now, unique(lifts)...)
	})
}

// standing lists the quarantines at a place that are not lifted.
func (q Quarantiner) standing(ctx context.Context, p Place) ([]evidence.Claim, error) {
	r, err := q.Registry.Release(ctx, p.Environment, p.Model, string(p.Release))
	if err != nil {
		return nil, err
	}
	claims, _, err := q.Registry.Claims(ctx, p.Environment, r)
	if err != nil {
		return nil, err
	}
	return evidence.Quarantines(r, claims, p.Subject.Digest), nil
}

// attach signs the result of statement, once, and attaches it at every place.
func (q Quarantiner) attach(ctx context.Context, places []Place,
	statement func(evidence.StatementSubject, time.Time) ([]byte, error)) ([]Attached, error) {
	if len(places) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "quarantine: no place to attach it")
	}
	about := evidence.StatementSubject{Name: places[0].Model, Digest: evidence.NewDigestSet(places[0].Subject.Digest)}
	signed, err := statement(about, q.Now())
	if err != nil {
		return nil, err
	}
	bundle, err := q.Sign(ctx, evidence.RoleApprover, signed)
	if err != nil {
		return nil, err
	}
	var attached []Attached
	for _, p := range places {
		d, err := q.Registry.Attach(ctx, api.Attachment{
			Environment: p.Environment, Model: p.Model, Release: p.Release, Subject: p.Subject.Digest, Bundle: bundle,
		})
		if err != nil {
			return attached, registry.Errorf(registry.CodeOf(err), "quarantine in %s of %s: %w", p.Environment, p.Model, err)
		}
		attached = append(attached, Attached{Place: p, Evidence: d})
	}
	return attached, nil
}

func unique(digests []registry.Digest) []registry.Digest {
	seen := make(map[registry.Digest]bool)
	var out []registry.Digest
	for _, d := range digests {
		if !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}
