package service_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// A list and its lift count in the very next resolve of a replica that remembers.
func TestRestrictionsReachReplicas(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	var verified atomic.Int64
	s := w.replica(t, 1<<20, &verified)
	for _, environment := range []string{"prod", "staging"} {
		ask := func(known *api.Resolution) (api.Resolution, error) {
			q := prod("")
			q.Environment, q.Known = environment, known
			return s.Resolve(t.Context(), q)
		}
		known, err := ask(nil)
		must(t, err)
		for range 2 {
			w.Restricting(t, environment, registrytest.SourceOf(r), nil)
			if got, err := ask(&known); !registry.HasCode(err, registry.CodeNoEngine) || !strings.Contains(err.Error(), "no-restriction of") {
				t.Errorf("%s is restricted: %+v, error %v", environment, got.Ref, err)
			}
			w.Restricting(t, environment, nil, registrytest.SourceOf(r))
			if got, err := ask(&known); err != nil || got.Ground == known.Ground {
				t.Errorf("%s is no longer restricted: %+v, error %v; want an answer from another ground", environment, got.Ref, err)
			}
		}
	}
}

// Without the list that the history names, or with another, nothing is allowed.
func TestRestrictionListIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(w *world, lists storage.RestrictionBundles, first, second restriction.SignedRestrictions) error
		code   registry.Code
		says   string
	}{
		"missing": {func(w *world, lists storage.RestrictionBundles, _, second restriction.SignedRestrictions) error {
			return lists.Delete(t.Context(), string(second.Digest))
		}, registry.CodeTrust, "the history names it, but it is missing"},
		"changed": {func(w *world, lists storage.RestrictionBundles, _, second restriction.SignedRestrictions) error {
			return lists.Put(t.Context(), string(second.Digest), storage.RestrictionBundle{Bundle: append(second.Bundle, ' ')})
		}, registry.CodeDigest, "its bytes were changed"},
		"an older one in its place": {func(w *world, lists storage.RestrictionBundles, first, second restriction.SignedRestrictions) error {
			return lists.Put(t.Context(), string(second.Digest), storage.RestrictionBundle{Bundle: first.Bundle})
		}, registry.CodeDigest, "its bytes were changed"},
		"no approver any more": {func(w *world, _ storage.RestrictionBundles, _, _ restriction.SignedRestrictions) error {
			w.Keys.Retrust(nil)
			return nil
		}, registry.CodeTrust, "no key that is trusted"},
		"not to be read": {func(w *world, _ storage.RestrictionBundles, _, _ restriction.SignedRestrictions) error {
			w.config.RestrictionBundles = nil
			w.serve(t)
			return nil
		}, registry.CodeTrust, "cannot read restriction lists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.Promoted(t, registrytest.Build{})
			r := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			first := w.Restricting(t, "prod", registrytest.SourceOf(r), nil)
			second := w.Restricting(t, "prod", nil, registrytest.SourceOf(r))
			must(t, c.damage(w, w.config.RestrictionBundles, first, second))
			ctx := t.Context()
			_, restrictions := w.Restrictions(ctx, "prod")
			_, resolve := w.Resolve(ctx, prod(""))
			_, promote := w.Promote(ctx, api.PromoteRequest{Model: registrytest.Model})
			_, rollback := w.Rollback(ctx, api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "bad"})
			for what, err := range map[string]error{"restrictions": restrictions, "resolve": resolve, "promote": promote, "rollback": rollback} {
				if what != "restrictions" && name == "no approver any more" {
					continue // nothing else is trusted either
				}
				if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: error %v (%s), want %s that says %q", what, err, registry.CodeOf(err), c.code, c.says)
				}
			}
			if name != "missing" {
				return
			}
			if _, err := w.Restrict(ctx, "prod", first.Bundle); !registry.HasCode(err, registry.CodeTrust) {
				t.Errorf("the older list is taken instead: error %v", err)
			}
			_, err := w.Restrict(ctx, "prod", second.Bundle)
			must(t, err)
			_, err = w.Resolve(ctx, prod(""))
			must(t, err)
		})
	}
}

// What a stolen key lifted is in force again once the key is revoked, until somebody else decides.
func TestRevokedKeyLiftsNothing(t *testing.T) {
	t.Parallel()
	thief := trust.TrustEntry{Key: "thief", Roles: []evidence.Role{evidence.RoleApprover}, Resources: []string{"oci://local/"}}
	w := setup(t, func(c *backend.Backend) { c.Environments.Trust = append(c.Environments.Trust, thief) })
	r := w.Promoted(t, registrytest.Build{})
	first := w.Restricting(t, "prod", registrytest.SourceOf(r), nil)
	lift, err := first.Next("oci://local/prod/", "nothing to see", w.Keys.KeyID("thief"),
		first.List.IssuedOn.Add(time.Hour), nil, registrytest.SourceOf(r))
	must(t, err)
	_, err = w.Restrict(t.Context(), "prod", w.SignList(t, "thief", lift))
	must(t, err)
	_, err = w.Resolve(t.Context(), prod(""))
	must(t, err)
	revoked := thief
	revoked.State = evidence.KeyRevoked
	w.Keys.Retrust(append(registrytest.RoleKeys(), revoked))
	if _, err = w.Resolve(t.Context(), prod("")); !registry.HasCode(err, registry.CodeNoEngine) {
		t.Errorf("after the key was revoked: error %v, want no engine", err)
	}
	again, err := w.Restrictions(t.Context(), "prod")
	if err != nil || len(again.InForce) != 1 || len(again.List.Entries) != 0 {
		t.Errorf("in force is %+v, error %v; want what was lifted", again.InForce, err)
	}
	if _, err := w.Restrict(t.Context(), "prod", w.SignList(t, "thief", evidence.RestrictionList{
		ResourceURI: "oci://local/prod/", Counter: 3, Previous: again.Digest, IssuedOn: lift.IssuedOn, Reason: "once more"})); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("another list by the revoked key: error %v, want CodeTrust", err)
	}
	w.Restricting(t, "prod", nil, registrytest.SourceOf(r))
	_, err = w.Resolve(t.Context(), prod(""))
	must(t, err)
}

// An approver of one model restricts no environment, and one of an environment no other.
func TestRestrictNeedsTheWholeEnvironment(t *testing.T) {
	t.Parallel()
	some := trust.TrustEntry{Key: "some", Roles: []evidence.Role{evidence.RoleApprover},
		Resources: []string{"oci://local/prod/" + registrytest.Model}}
	w := setup(t, func(c *backend.Backend) { c.Environments.Trust = append(c.Environments.Trust, some) })
	for _, environment := range []string{"prod", "staging"} {
		list := evidence.RestrictionList{ResourceURI: "oci://local/" + environment + "/",
			Counter: 1, IssuedOn: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Reason: "x"}
		if _, err := w.Restrict(t.Context(), environment, w.SignList(t, "some", list)); !registry.HasCode(err, registry.CodeTrust) {
			t.Errorf("%s: error %v, want CodeTrust", environment, err)
		}
	}
}

// Of two lists that follow the same one, the second is refused, and what it said is not lost: its
// approver reads the first and signs again.
func TestTwoListsAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	bundles := [][]byte{
		w.NextList(t, "prod", "one", registrytest.SourceOf(r), nil),
		w.NextList(t, "prod", "two", []evidence.Restriction{{Kind: evidence.RestrictSource, Digest: r.Limits}}, nil),
	}
	errs := make([]error, len(bundles))
	var done sync.WaitGroup
	for i, bundle := range bundles {
		done.Go(func() { _, errs[i] = w.Restrict(t.Context(), "prod", bundle) })
	}
	done.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("errors %v, want one", errs)
	}
	for _, err := range errs {
		if err != nil && !registry.HasCode(err, registry.CodeConflict) {
			t.Errorf("error %v, want CodeConflict", err)
		}
	}
	signed, err := w.Restrictions(t.Context(), "prod")
	if err != nil || signed.List.Counter != 1 || len(signed.InForce) != 1 {
		t.Errorf("in force is %+v, error %v; want one list of one restriction", signed.List, err)
	}
	w.chained(t)
}

// A quarantine or a list that comes while a list is recorded makes it look again.
func TestRestrictLooksAgain(t *testing.T) {
	t.Parallel()
	b := &busy{kind: history.EventRestrict}
	w := setup(t, func(c *backend.Backend) { b.Catalog, c.Catalog = c.Catalog, b })
	r := w.Promoted(t, registrytest.Build{})
	b.times, b.then = 1, func() { w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, struct{}{}) }
	w.Restricting(t, "prod", registrytest.SourceOf(r), nil)
	next := w.NextList(t, "prod", "late", nil, registrytest.SourceOf(r))
	b.times, b.then = 1, func() {
		w.Restricting(t, "prod", []evidence.Restriction{{Kind: evidence.RestrictOperator, Digest: r.Limits}}, nil)
	}
	if _, err := w.Restrict(t.Context(), "prod", next); !registry.HasCode(err, registry.CodeConflict) || b.times != 0 {
		t.Errorf("a lift that another list overtook: error %v, want CodeConflict", err)
	}
}

// A restricted release is no way back, and the release before it is.
func TestRollbackOfWhatIsRestricted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	engine := second.Engines[0].Toolchain
	w.Restricting(t, "prod", []evidence.Restriction{{Kind: evidence.RestrictOperator, Digest: first.Limits}}, nil)
	if _, err := w.Resolve(t.Context(), prod("")); err != nil {
		t.Errorf("a library that no engine carries is restricted: %v", err)
	}
	w.Restricting(t, "prod", []evidence.Restriction{{Kind: evidence.RestrictToolchain, Toolchain: engine.Name, Versions: engine.Version}}, nil)
	_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "bad"})
	if !registry.HasCode(err, registry.CodePolicy) || !strings.Contains(err.Error(), "it was made with "+engine.Name) {
		t.Errorf("rollback to what is restricted: error %v", err)
	}
	if w.head(t).Release != second.Digest {
		t.Error("the head moved all the same")
	}
}
