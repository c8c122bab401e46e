package registrytest

import (
	"context"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// NextList signs the list that follows the one in force in an environment, as the approver: with
// more restrictions, and without lifted ones. The reason is the change's.
func (r Registry) NextList(t testing.TB, environment, reason string, add, lift []evidence.Restriction) []byte {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	current, err := r.Restrictions(ctx, environment)
	if err != nil {
		t.Fatal(err)
	}
	environments, err := r.Environments(ctx)
	if err != nil {
		t.Fatal(err)
	}
	issued := current.List.IssuedOn.Add(time.Second)
	if current.Digest == "" {
		issued = measured()
	}
	const approver = string(evidence.RoleApprover)
	next, err := current.Next(environments.EnvironmentURI(environment), reason, r.Keys.KeyID(approver), issued, add, lift)
	if err != nil {
		t.Fatal(err)
	}
	return r.SignList(t, approver, next)
}

// SignList signs a list with a named key.
func (r Registry) SignList(t testing.TB, key string, l evidence.RestrictionList) []byte {
	t.Helper()
	statement, err := evidence.NewRestrictionList(l)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := r.Keys.SignAs(context.WithoutCancel(t.Context()), key, statement)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// Restricting puts restrictions in force, or lifts them.
func (r Registry) Restricting(t testing.TB, environment string, add, lift []evidence.Restriction) restriction.SignedRestrictions {
	t.Helper()
	signed, err := r.Restrict(context.WithoutCancel(t.Context()), environment, r.NextList(t, environment, "recalled by its vendor", add, lift))
	if err != nil {
		t.Fatalf("restrict in %s: %v", environment, err)
	}
	return signed
}

// lists are the events of restriction lists, of all environments.
func lists(t *testing.T, r Registry) []history.Event {
	t.Helper()
	events, err := r.History(t.Context(), history.HistoryQuery{Kind: history.EventRestrict})
	must(t, err)
	return events
}

// SourceOf is a restriction of the sources of a release.
func SourceOf(r artifact.Release) []evidence.Restriction {
	return []evidence.Restriction{{Kind: evidence.RestrictSource, Digest: r.Sources}}
}

// testRestrict restricts the source of a head: it is no longer given or taken, until that is lifted.
func testRestrict(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	ctx := t.Context()
	resolve := func(environment string) error {
		_, err := r.Resolve(ctx, api.ResolveQuery{Environment: environment, Model: Model, Node: Node("v3")})
		return err
	}
	before, err := r.Restrictions(ctx, "prod")
	if err != nil || before.Digest != "" || before.Environment != "prod" {
		t.Errorf("before the first list: %+v, error %v; want none", before, err)
	}
	for _, environment := range []string{"staging", "prod"} {
		must(t, resolve(environment))
		signed := r.Restricting(t, environment, SourceOf(release), nil)
		if signed.List.Counter != 1 || len(signed.InForce) != 1 || signed.Signer == "" || signed.RecordedAt.IsZero() || len(signed.Bundle) == 0 {
			t.Errorf("the first list of %s: %+v", environment, signed)
		}
		refused(t, resolve(environment), registry.CodeNoEngine, "no-restriction of", "recalled by its vendor")
	}
	p, err := r.Promote(ctx, api.PromoteRequest{Model: Model})
	refused(t, err, registry.CodePolicy, "would no longer accept it", "no-restriction of")
	if p.Decision.Allowed() {
		t.Error("the decision allows what is restricted")
	}
	next := r.Build(t, Build{Version: "1.1.0"})
	r.Prove(t, next)
	_, err = r.Promote(ctx, api.PromoteRequest{Model: Model})
	refused(t, err, registry.CodePolicy, "no-restriction of")
	headIs(t, r, "prod", release.Digest)
	events := lists(t, r)
	if len(events) != 2 || events[1].Environment != "prod" || events[1].Version != "1" ||
		events[1].Reason != "recalled by its vendor" || len(events[1].Evidence) != 1 {
		t.Errorf("events %+v, want one of each environment", events)
	}
	lifted := r.Restricting(t, "prod", nil, SourceOf(release))
	if lifted.List.Counter != 2 || len(lifted.InForce) != 0 {
		t.Errorf("the list after the lift: %+v", lifted)
	}
	must(t, resolve("prod"))
	_, err = r.Promote(ctx, api.PromoteRequest{Model: Model})
	must(t, err)
}

// testRestrictRefuses gives lists that must not come into force.
func testRestrictRefuses(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	ctx := t.Context()
	const prod = "oci://local/prod/"
	first := r.NextList(t, "prod", "first", SourceOf(release), nil)
	_, err := r.Restrict(ctx, "prod", first)
	must(t, err)
	second := r.NextList(t, "prod", "second", nil, SourceOf(release))
	_, err = r.Restrict(ctx, "prod", second)
	must(t, err)
	current := r.Restricting(t, "prod", SourceOf(release), nil)
	list := func(edit func(l *evidence.RestrictionList)) evidence.RestrictionList {
		l := current.List
		l.Counter, l.Previous, l.Entries = 4, current.Digest, nil
		edit(&l)
		return l
	}
	lift := list(func(*evidence.RestrictionList) {})
	for _, c := range []struct {
		name, environment string
		bundle            []byte
		code              registry.Code
	}{
		{"the first again", "prod", first, registry.CodeConflict},
		{"the one that lifted again", "prod", second, registry.CodeConflict},
		{"a fork", "prod",
			r.SignList(t, "approver", list(func(l *evidence.RestrictionList) { l.Counter, l.Previous = 3, current.List.Previous })), registry.CodeConflict},
		{"one is left out", "prod", r.SignList(t, "approver", list(func(l *evidence.RestrictionList) { l.Counter = 5 })), registry.CodeConflict},
		{"from the beginning",
			"prod", r.SignList(t, "approver", list(func(l *evidence.RestrictionList) { l.Counter, l.Previous = 1, "" })), registry.CodeConflict},
		{"by a promoter", "prod", r.SignList(t, "promoter", lift), registry.CodeTrust},
		{"by a builder", "prod", r.SignList(t, "builder", lift), registry.CodeTrust},
		{"by a stranger", "prod", r.SignList(t, Stranger, lift), registry.CodeTrust},
		{"of another environment",
			"prod", r.SignList(t, "approver", list(func(l *evidence.RestrictionList) { l.ResourceURI = "oci://local/staging/" })), registry.CodeTrust},
		{"of another registry",
			"prod", r.SignList(t, "approver", list(func(l *evidence.RestrictionList) { l.ResourceURI = "oci://other/prod/" })), registry.CodeTrust},
		{"of a model", "prod", r.SignList(t, "approver", list(func(l *evidence.RestrictionList) { l.ResourceURI = prod + Model })), registry.CodeTrust},
		{"of prod, for staging", "staging", first, registry.CodeTrust},
		{"from the future",
			"prod", r.SignList(t, "approver", list(func(l *evidence.RestrictionList) { l.IssuedOn = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC) })),
			registry.CodeTrust},
		{"a quarantine", "prod", r.Bundle(t, "approver", evidence.PredicateQuarantine, struct{}{}, release.Digest), registry.CodeTrust},
		{"no bundle", "prod", []byte("none"), registry.CodeTrust},
		{"of no environment", "nowhere", first, registry.CodeNotFound},
	} {
		if _, err := r.Restrict(ctx, c.environment, c.bundle); !registry.HasCode(err, c.code) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.code)
		}
	}
	if again, err := r.Restrict(ctx, "prod", current.Bundle); err != nil || again.Digest != current.Digest {
		t.Errorf("the list in force again: %s, error %v; want it", again.Digest, err)
	}
	if n := len(lists(t, r)); n != 3 {
		t.Errorf("%d events, want one for each of three lists", n)
	}
	_, err = r.Resolve(ctx, api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")})
	refused(t, err, registry.CodeNoEngine, "no-restriction of")
	if _, err := r.Restrictions(ctx, "nowhere"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("restrictions of no environment: error %v", err)
	}
}
