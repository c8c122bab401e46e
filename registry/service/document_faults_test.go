package service_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Restriction lists and trust bundles that were changed, removed or put back to an older one are faults.
func TestFaultsOfSignedDocuments(t *testing.T) {
	t.Parallel()
	type signed struct {
		lists   []restriction.SignedRestrictions
		bundles []trust.SignedTrust
		seq     int64 // of the event before the last list and the last bundle
	}
	const older = "it is number 1, after "
	for name, c := range map[string]struct {
		damage func(t *testing.T, w *world, s signed) error
		says   []string
		newest bool // the check of heads finds it too
	}{
		"untouched": {func(*testing.T, *world, signed) error { return nil }, nil, false},
		"the list in force is gone": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			return w.config.RestrictionBundles.Delete(t.Context(), string(s.lists[1].Digest))
		}, []string{"restriction list 2 of prod, of event"}, true},
		"a list before it is gone": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			return w.config.RestrictionBundles.Delete(t.Context(), string(s.lists[0].Digest))
		}, []string{"restriction list 1 of prod, of event"}, false},
		"the list in force, changed": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			return w.config.RestrictionBundles.Put(t.Context(), string(s.lists[1].Digest), storage.RestrictionBundle{Bundle: append(s.lists[1].Bundle, ' ')})
		}, []string{"its bytes were changed"}, true},
		"the list before in its place": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			return w.config.RestrictionBundles.Put(t.Context(), string(s.lists[1].Digest), storage.RestrictionBundle{Bundle: s.lists[0].Bundle})
		}, []string{"its bytes were changed"}, true},
		"an event that names the list before": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			_, err := w.db.Apply(t.Context(), storage.Change{Event: history.Event{Time: w.config.Now(), Kind: history.EventRestrict, Environment: "prod",
				Version: "3", PredicateType: evidence.PredicateRestrictions, Evidence: []registry.Digest{s.lists[0].Digest}}})
			return err
		}, []string{older}, false},
		"an event without a list": {func(t *testing.T, w *world, _ signed) error {
			t.Helper()
			_, err := w.db.Apply(t.Context(), storage.Change{Event: history.Event{Time: w.config.Now(),
				Kind: history.EventRestrict, Environment: "prod", Version: "3"}})
			return err
		}, []string{"the event names 0, want one"}, true},
		"no approver any more": {func(_ *testing.T, w *world, _ signed) error {
			w.Keys.Retrust(nil)
			return nil
		}, []string{"no key that is trusted"}, true},
		"the newest events are gone": {func(_ *testing.T, w *world, s signed) error {
			w.db.CutHistory(s.seq)
			return nil
		}, []string{
			"restriction list 2 of prod (", "trust bundle 2 (",
		}, false},
		"the newest trust bundle is gone": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			return w.config.TrustBundles.Delete(t.Context(), string(s.bundles[1].Digest))
		}, []string{"trust bundle 2, of event"}, true},
		"the trust bundle before in its place": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			return w.config.TrustBundles.Put(t.Context(), string(s.bundles[1].Digest), storage.TrustBundleDocument{Bundle: s.bundles[0].Bundle})
		}, []string{"its bytes were changed"}, true},
		"an event that names the trust bundle before": {func(t *testing.T, w *world, s signed) error {
			t.Helper()
			_, err := w.db.Apply(t.Context(), storage.Change{Event: history.Event{Time: w.config.Now(), Kind: history.EventTrust,
				Version: "3", PredicateType: trust.PredicateTrustBundle, Evidence: []registry.Digest{s.bundles[0].Digest}}})
			return err
		}, []string{older}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := publishing(t)
			r := w.Build(t, registrytest.Build{})
			var s signed
			s.lists = append(s.lists, w.Restricting(t, "prod", registrytest.SourceOf(r), nil))
			s.bundles = append(s.bundles, w.publish(t))
			state, err := w.db.ModelState(t.Context(), "", "")
			must(t, err)
			s.seq = state.Seq
			s.lists = append(s.lists, w.Restricting(t, "prod", nil, registrytest.SourceOf(r)))
			s.bundles = append(s.bundles, w.publish(t))
			must(t, c.damage(t, w, s))
			w.faults(t, c.says...)
			quick, err := w.service.HeadFaults(t.Context())
			must(t, err)
			if (len(quick) > 0) != c.newest {
				t.Errorf("the check of heads finds %+v, want something: %t", quick, c.newest)
			}
		})
	}
}

// A list that another writer was faster with is no fault.
func TestListThatLostIsNoFault(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Build(t, registrytest.Build{})
	lost := w.NextList(t, "prod", "slower", registrytest.SourceOf(r), nil)
	w.Restricting(t, "prod", registrytest.SourceOf(r), nil)
	must(t, w.config.RestrictionBundles.Put(t.Context(), "sha256:lost", storage.RestrictionBundle{Bundle: lost}))
	w.faults(t)
}
