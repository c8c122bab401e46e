package registry_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// about is a claim with a statement made by a constructor.
func about(t *testing.T, subject registry.Digest, state func(registry.StatementSubject) ([]byte, error)) registry.Claim {
	t.Helper()
	data, err := state(registry.StatementSubject{Digest: registry.NewDigestSet(subject)})
	if err != nil {
		t.Fatal(err)
	}
	c := registry.Claim{
		Bundle: digest.FromBytes(data), Subject: subject, Signer: approver,
		Roles: []registry.Role{registry.RoleApprover}, Key: registry.KeyTrusted,
	}
	if err := registry.DecodeSigned(data, &c.Statement); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestQuarantines(t *testing.T) {
	t.Parallel()
	r := sample()
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	held := func(reason string, hour int) registry.Claim {
		return about(t, r.Digest, func(s registry.StatementSubject) ([]byte, error) { return registry.NewQuarantine(s, reason, at(hour)) })
	}
	lift := func(what ...registry.Claim) registry.Claim {
		var digests []registry.Digest
		for _, c := range what {
			digests = append(digests, c.Bundle)
		}
		return about(t, r.Digest, func(s registry.StatementSubject) ([]byte, error) {
			return registry.NewQuarantineLift(s, "mended", at(20), digests...)
		})
	}
	raw := func(predicate string) registry.Claim {
		c := quarantine(r.Digest)
		c.Statement.Predicate, c.Bundle = json.RawMessage(predicate), digest.FromString(predicate)
		return c
	}
	edit := func(c registry.Claim, change func(*registry.Claim)) registry.Claim {
		change(&c)
		return c
	}
	retired := func(c registry.Claim, hour int) registry.Claim {
		c.Key, c.RetiredAt = registry.KeyRetired, at(hour)
		return c
	}
	first, second, old := held("wrong labels", 1), held("wrong labels", 2), quarantine(r.Digest)
	onEngine := about(t, r.Engines[0].Digest, func(s registry.StatementSubject) ([]byte, error) { return registry.NewQuarantine(s, "slow", at(1)) })
	for _, c := range []struct {
		name   string
		claims []registry.Claim
		held   bool
	}{
		{"none", nil, false},
		{"one", []registry.Claim{first}, true},
		{"an empty one of before", []registry.Claim{old}, true},
		{"no predicate", []registry.Claim{raw(``)}, true},
		{"null", []registry.Claim{raw(`null`)}, true},
		{"not JSON", []registry.Claim{raw(`x`)}, true},
		{"no lifts", []registry.Claim{raw(`{"lifts":[]}`)}, true},
		{"lifts of another shape", []registry.Claim{raw(`{"lifts":"all"}`)}, true},
		{"lifts of an invalid digest", []registry.Claim{raw(`{"lifts":["all"]}`)}, true},
		{"lifts in another spelling", []registry.Claim{raw(`{"Lifts":["` + string(r.Digest) + `"]}`)}, true},
		{"a lift alone", []registry.Claim{lift(first)}, false},
		{"lifted", []registry.Claim{first, lift(first)}, false},
		{"lifted, in the other order", []registry.Claim{lift(first), first}, false},
		{"an empty one lifted", []registry.Claim{old, lift(old)}, false},
		{"two, one of them lifted", []registry.Claim{first, second, lift(first)}, true},
		{"two, both lifted", []registry.Claim{first, second, lift(first, second)}, false},
		{"the same again after the lift", []registry.Claim{first, lift(first), held("wrong labels", 21)}, true},
		{"the same bundle again", []registry.Claim{first, lift(first), first}, false},
		{"the same statement in another bundle", []registry.Claim{first, lift(first), rewrapped(first)}, false},
		{"a lift without an approver", []registry.Claim{first, edit(lift(first), func(c *registry.Claim) { c.Roles = []registry.Role{registry.RoleVerifier} })}, true},
		{"a lift by a revoked key", []registry.Claim{first, edit(lift(first), func(c *registry.Claim) { c.Key = registry.KeyRevoked })}, true},
		{"a lift by a key retired before it", []registry.Claim{first, retired(lift(first), 19)}, true},
		{"a lift by a key retired after it, without a record", []registry.Claim{first, retired(lift(first), 21)}, true},
		{"a lift by a key retired after it, without a history", []registry.Claim{first, withoutHistory(retired(lift(first), 21))}, false},
		{"a lift by a key retired after it, recorded later", []registry.Claim{first, recorded(23, retired(lift(first), 21))}, true},
		{"a lift of another's", []registry.Claim{first, lift(onEngine)}, true},
		{"a lift about another release", []registry.Claim{first, edit(lift(first), func(c *registry.Claim) { c.Subject = digest.FromString("another release") })}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claims := append(enough(r), c.claims...)
			got := unmet(strictest().Check(r, claims))
			if (got != "") != c.held {
				t.Errorf("unmet is %q, want in quarantine %t", got, c.held)
			}
			if left := registry.Quarantines(r, claims, r.Digest); (len(left) > 0) != c.held {
				t.Errorf("%d quarantines are left, want in quarantine %t", len(left), c.held)
			}
		})
	}
	if got := unmet(strictest().Check(r, append(enough(r), first))); !strings.Contains(got, `in quarantine ("wrong labels")`) {
		t.Errorf("unmet is %q, want the reason", got)
	}
}

// The history shows why, and tells a quarantine from its end.
func TestClaimReason(t *testing.T) {
	t.Parallel()
	release, now := sample().Digest, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state func(registry.StatementSubject) ([]byte, error)
		want  string
	}{
		"a quarantine": {func(s registry.StatementSubject) ([]byte, error) { return registry.NewQuarantine(s, "slow", now) }, "slow"},
		"a lift": {func(s registry.StatementSubject) ([]byte, error) {
			return registry.NewQuarantineLift(s, "mended", now, release)
		}, "lifted: mended"},
		"other evidence": {func(s registry.StatementSubject) ([]byte, error) {
			return registry.NewStatement(registry.PredicateParity, map[string]string{"reason": "slow"}, s)
		}, ""},
	} {
		if got := about(t, release, c.state).Reason(); got != c.want {
			t.Errorf("%s: reason %q, want %q", name, got, c.want)
		}
	}
}

func TestNewQuarantineRefuses(t *testing.T) {
	t.Parallel()
	subject, now := registry.StatementSubject{Digest: registry.NewDigestSet(sample().Digest)}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	_, noReason := registry.NewQuarantine(subject, "", now)
	_, noLifts := registry.NewQuarantineLift(subject, "mended", now)
	_, noDigest := registry.NewQuarantineLift(subject, "mended", now, "sha256:x")
	for name, err := range map[string]error{"no reason": noReason, "nothing to lift": noLifts, "no digest": noDigest} {
		if !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}
