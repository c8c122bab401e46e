package service_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// publishing makes a world that publishes trust bundles, with a publisher's key beside those of the
// roles and a kept checkpoint.
func publishing(t *testing.T) *world {
	t.Helper()
	entry := func(key string, state evidence.KeyState, resource string, roles ...evidence.Role) trust.TrustEntry {
		return trust.TrustEntry{Key: key, Roles: roles, Resources: []string{resource}, State: state}
	}
	return setup(t, func(c *backend.Backend) {
		const all = "oci://local/"
		c.Environments.Configuration = digest.FromString("environments and keys")
		c.Environments.Trust = append(c.Environments.Trust, entry("publisher", "", all, evidence.RolePublisher),
			entry("revoked", evidence.KeyRevoked, all, evidence.RolePublisher), entry("retired", evidence.KeyRetired, all, evidence.RolePublisher),
			entry("elsewhere", "", "oci://local/prod/", evidence.RolePublisher))
		c.TrustBundles = mem.NewTable[storage.TrustBundleDocument]()
		c.ReadKey = func(path string) ([]byte, error) { return []byte("PEM of " + path), nil }
		c.KeptCheckpoint = func(_ context.Context, size int64) (trust.KeptCheckpoint, error) {
			if size != 3 {
				return trust.KeptCheckpoint{}, registry.Errorf(registry.CodeNotFound, "none")
			}
			return trust.KeptCheckpoint{Size: 3, Note: "kept"}, nil
		}
	})
}

// nextTrust is the bundle that may follow now.
func (w *world) nextTrust(t *testing.T) trust.TrustBundle {
	t.Helper()
	next, err := policy.DraftTrustBundle(w.config.Environments, w.config.ReadKey)
	must(t, err)
	var lists []restriction.SignedRestrictions
	for _, e := range w.config.Environments.List {
		signed, err := w.Restrictions(t.Context(), e.Name)
		must(t, err)
		lists = append(lists, signed)
	}
	next = next.WithRestrictions(lists)
	before, err := w.TrustBundle(t.Context())
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		t.Fatal(err)
	}
	next.Version, next.Previous = before.Trust.Version+1, before.Digest
	next.IssuedOn = w.config.Now()
	next.ExpiresOn = next.IssuedOn.Add(24 * time.Hour)
	return next
}

func (w *world) signTrust(t *testing.T, key string, b trust.TrustBundle) []byte {
	t.Helper()
	statement, err := trust.NewTrustBundle(b)
	must(t, err)
	bundle, err := w.Keys.SignAs(t.Context(), key, statement)
	must(t, err)
	return bundle
}

// publish publishes the bundle that may follow now.
func (w *world) publish(t *testing.T) trust.SignedTrust {
	t.Helper()
	signed, err := w.PublishTrust(t.Context(), w.signTrust(t, "publisher", w.nextTrust(t)))
	must(t, err)
	return signed
}

// Bundles are published one after the other, and the newest is handed out as it was signed.
func TestPublishTrust(t *testing.T) {
	t.Parallel()
	w := publishing(t)
	if _, err := w.TrustBundle(t.Context()); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("before any was published: error %v, want CodeNotFound", err)
	}
	first := w.publish(t)
	r := w.Build(t, registrytest.Build{})
	w.Restricting(t, "prod", registrytest.SourceOf(r), nil)
	next := w.nextTrust(t)
	next.Checkpoint = trust.KeptCheckpoint{Size: 3, Note: "kept"}
	bundle := w.signTrust(t, "publisher", next)
	second, err := w.PublishTrust(t.Context(), bundle)
	if err != nil || second.Trust.Version != 2 || second.Trust.Previous != first.Digest ||
		second.Trust.RestrictionsOf("prod").Counter != 1 || string(second.Bundle) != string(bundle) {
		t.Errorf("the second: %+v, error %v", second.Trust, err)
	}
	again, err := w.PublishTrust(t.Context(), bundle)
	if err != nil || again.Digest != second.Digest {
		t.Errorf("the same again: %s, error %v; want %s", again.Digest, err, second.Digest)
	}
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventTrust})
	if err != nil || len(events) != 2 || events[1].Version != "2" || events[1].Evidence[0] != second.Digest ||
		events[1].Signer != w.Keys.KeyID("publisher") || events[1].Reason != "changed: restrictions" {
		t.Errorf("events %+v, error %v; want one for each bundle, and what changed", events, err)
	}
	w.chained(t)
}

// What does not follow, says something else, or is not by a publisher of the whole registry is refused.
func TestPublishTrustRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key   string // that signs; empty: the publisher's
		spoil func(w *world, b *trust.TrustBundle)
		code  registry.Code
		says  string
	}{
		"the promoter's key":   {key: "promoter", code: registry.CodeTrust, says: "not trusted as publisher"},
		"a stranger's key":     {key: registrytest.Stranger, code: registry.CodeTrust, says: "no key that is trusted"},
		"a revoked key":        {key: "revoked", code: registry.CodeTrust, says: "is revoked"},
		"a retired key":        {key: "retired", code: registry.CodeTrust, says: "is retired"},
		"a key for prod alone": {key: "elsewhere", code: registry.CodeTrust, says: "no key that is trusted"},
		"a version too many":   {spoil: func(_ *world, b *trust.TrustBundle) { b.Version = 3 }, code: registry.CodeConflict, says: "the newest is 1"},
		"the version again":    {spoil: func(_ *world, b *trust.TrustBundle) { b.Version, b.Previous = 1, "" }, code: registry.CodeConflict, says: "the newest is 1"},
		"another one before":   {spoil: func(_ *world, b *trust.TrustBundle) { b.Previous = digest.FromString("x") }, code: registry.CodeConflict, says: "the newest is 1"},
		"another registry":     {spoil: func(_ *world, b *trust.TrustBundle) { b.Registry = "other" }, code: registry.CodeTrust, says: "of the registry other"},
		"expired":              {spoil: func(_ *world, b *trust.TrustBundle) { b.ExpiresOn = b.IssuedOn.Add(1) }, code: registry.CodeTrust, says: "it expired on"},
		"of the future": {spoil: func(_ *world, b *trust.TrustBundle) {
			b.IssuedOn, b.ExpiresOn = b.IssuedOn.AddDate(0, 1, 0), b.ExpiresOn.AddDate(0, 1, 0)
		}, code: registry.CodeTrust, says: "issued on"},
		"another key": {spoil: func(_ *world, b *trust.TrustBundle) { b.Trust[0].PEM = "PEM of a thief" },
			code: registry.CodeTrust, says: "something else than this registry about: trust"},
		"a key too few":      {spoil: func(_ *world, b *trust.TrustBundle) { b.Trust = b.Trust[1:] }, code: registry.CodeTrust, says: "about: trust"},
		"other environments": {spoil: func(_ *world, b *trust.TrustBundle) { b.Environments = digest.FromString("x") }, code: registry.CodeTrust, says: "about: environments"},
		"a root more": {spoil: func(_ *world, b *trust.TrustBundle) {
			b.Roots = []trust.BundledRoot{{Root: trust.Root{Sigstore: "x"}, Content: "x"}}
		}, code: registry.CodeTrust, says: "about: roots"},
		"without a list": {spoil: func(_ *world, b *trust.TrustBundle) {
			b.Restrictions[1] = trust.BundledRestrictions{Environment: "prod"}
		}, code: registry.CodeTrust, says: "restriction list 0 of prod"},
		"a checkpoint unkept": {spoil: func(_ *world, b *trust.TrustBundle) { b.Checkpoint = trust.KeptCheckpoint{Size: 4, Note: "kept"} },
			code: registry.CodeTrust, says: "not one that this registry made"},
		"a checkpoint's forger": {spoil: func(_ *world, b *trust.TrustBundle) {
			b.Checkpoint = trust.KeptCheckpoint{Size: 3, Note: "forged"}
		}, code: registry.CodeTrust, says: "not one that this registry made"},
		"a list that came meanwhile": {spoil: func(w *world, _ *trust.TrustBundle) {
			w.Restricting(t, "prod", []evidence.Restriction{{Kind: evidence.RestrictOperator, Digest: digest.FromString("ops")}}, nil)
		}, code: registry.CodeTrust, says: "about: restrictions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := publishing(t)
			w.Restricting(t, "prod", registrytest.SourceOf(w.Build(t, registrytest.Build{})), nil)
			first := w.publish(t)
			next := w.nextTrust(t)
			if c.spoil != nil {
				c.spoil(w, &next)
			}
			key := c.key
			if key == "" {
				key = "publisher"
			}
			if _, err := w.PublishTrust(t.Context(), w.signTrust(t, key, next)); !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v (%s), want %s that says %q", err, registry.CodeOf(err), c.code, c.says)
			}
			if now, err := w.TrustBundle(t.Context()); err != nil || now.Digest != first.Digest {
				t.Errorf("the newest is %s, error %v; want the first, %s", now.Digest, err, first.Digest)
			}
		})
	}
}

// Of two bundles that follow the same one, the second is refused.
func TestTwoTrustBundlesAtOnce(t *testing.T) {
	t.Parallel()
	w := publishing(t)
	w.publish(t)
	bundles := [][]byte{w.signTrust(t, "publisher", w.nextTrust(t)), w.signTrust(t, "publisher", w.nextTrust(t))}
	errs := make([]error, len(bundles))
	var done sync.WaitGroup
	for i, bundle := range bundles {
		done.Go(func() { _, errs[i] = w.PublishTrust(t.Context(), bundle) })
	}
	done.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !registry.HasCode(errs[0], registry.CodeConflict) && !registry.HasCode(errs[1], registry.CodeConflict) {
		t.Errorf("errors %v, want one, of CodeConflict", errs)
	}
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventTrust})
	if err != nil || len(events) != 2 {
		t.Errorf("%d events, error %v; want two", len(events), err)
	}
}

// A stored bundle that is gone or was changed is handed out to nobody, and put back by publishing it.
func TestTrustBundleIsMissing(t *testing.T) {
	t.Parallel()
	w := publishing(t)
	first, second := w.publish(t), w.publish(t)
	kept := w.config.TrustBundles
	for _, c := range []struct {
		name   string
		damage func() error
		code   registry.Code
	}{
		{"changed", func() error {
			return kept.Put(t.Context(), string(second.Digest), storage.TrustBundleDocument{Bundle: append(second.Bundle, ' ')})
		}, registry.CodeDigest},
		{"an older one", func() error {
			return kept.Put(t.Context(), string(second.Digest), storage.TrustBundleDocument{Bundle: first.Bundle})
		}, registry.CodeDigest},
		{"missing", func() error { return kept.Delete(t.Context(), string(second.Digest)) }, registry.CodeTrust},
	} {
		must(t, c.damage())
		if _, err := w.TrustBundle(t.Context()); !registry.HasCode(err, c.code) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.code)
		}
	}
	again, err := w.PublishTrust(t.Context(), second.Bundle)
	if err != nil || again.Digest != second.Digest {
		t.Errorf("published again: %s, error %v", again.Digest, err)
	}
}
