package approver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

// Quarantined is a quarantine that stands, of a release or of an engine of it.
type Quarantined struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Version     string          `json:"version"`
	Release     registry.Digest `json:"release"`
	Subject     registry.Digest `json:"subject"`
	Label       string          `json:"label"` // "release", or the label of the engine
	Reason      string          `json:"reason"`
	Since       time.Time       `json:"since,omitzero"` // absent where the history does not have it
	Bundle      registry.Digest `json:"-"`
}

// Standing lists the quarantines that stand in an environment, in the order of the history; of all environments if it is
// empty. Unread gets releases that cannot be read.
func (q Quarantiner) Standing(ctx context.Context, environment string) ([]Quarantined, error) {
	events, err := q.Registry.History(ctx, history.HistoryQuery{Environment: environment, Kind: history.EventAttach})
	if err != nil {
		return nil, err
	}
	type place struct {
		environment, model string
		release            registry.Digest
	}
	since := make(map[registry.Digest]time.Time) // by the bundle
	var order []place
	for _, e := range events {
		if e.PredicateType != evidence.PredicateQuarantine {
			continue
		}
		for _, bundle := range e.Evidence {
			since[bundle] = e.Time
		}
		if at := (place{e.Environment, e.Model, e.Release}); !slices.Contains(order, at) {
			order = append(order, at)
		}
	}
	var all []Quarantined
	for _, at := range order {
		found, err := q.OfRelease(ctx, at.environment, at.model, at.release)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			if q.Unread != nil {
				q.Unread(Unread{Environment: at.environment, Model: at.model, Release: at.release, Reason: err.Error()})
			}
			continue
		}
		for _, f := range found {
			f.Since = since[f.Bundle]
			all = append(all, f)
		}
	}
	return all, nil
}

// OfRelease lists the quarantines that stand of a release and of its engines.
func (q Quarantiner) OfRelease(ctx context.Context, environment, model string, release registry.Digest) (all []Quarantined, err error) {
	r, err := q.Registry.Release(ctx, environment, model, string(release))
	if err != nil {
		return nil, err
	}
	claims, _, err := q.Registry.Claims(ctx, environment, r)
	if err != nil {
		return nil, err
	}
	add := func(subject registry.Digest, label string) {
		for _, c := range evidence.Quarantines(r, claims, subject) {
			all = append(all, Quarantined{
				Environment: environment, Model: model, Version: r.Tag(), Release: r.Digest, Subject: subject, Label: label, Reason: c.Reason(), Bundle: c.Bundle})
		}
	}
	add(r.Digest, "release")
	for _, e := range slices.SortedFunc(slices.Values(r.Engines), func(a, b artifact.Engine) int { return cmp.Compare(a.Label(), b.Label()) }) {
		add(e.Digest, e.Label())
	}
	return all, nil
}
