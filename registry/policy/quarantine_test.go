package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// about is a claim with a statement made by a constructor.
func about(t *testing.T, subject registry.Digest, state func(evidence.StatementSubject) ([]byte, error)) evidence.Claim {
	t.Helper()
	data, err := state(evidence.StatementSubject{Digest: evidence.NewDigestSet(subject)})
	if err != nil {
		t.Fatal(err)
	}
	c := evidence.Claim{
		Bundle: digest.FromBytes(data), Subject: subject, Signer: approver,
		Roles: []evidence.Role{evidence.RoleApprover}, Key: evidence.KeyTrusted,
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
	held := func(reason string, hour int) evidence.Claim {
		return about(t, r.Digest, func(s evidence.StatementSubject) ([]byte, error) { return evidence.NewQuarantine(s, reason, at(hour)) })
	}
	lift := func(what ...evidence.Claim) evidence.Claim {
		var digests []registry.Digest
		for _, c := range what {
			digests = append(digests, c.Bundle)
		}
		return about(t, r.Digest, func(s evidence.StatementSubject) ([]byte, error) {
			return evidence.NewQuarantineLift(s, "mended", at(20), digests...)
		})
	}
	raw := func(predicate string) evidence.Claim {
		c := quarantine(r.Digest)
		c.Statement.Predicate, c.Bundle = json.RawMessage(predicate), digest.FromString(predicate)
		return c
	}
	edit := func(c evidence.Claim, change func(*evidence.Claim)) evidence.Claim {
		change(&c)
		return c
	}
	retired := func(c evidence.Claim, hour int) evidence.Claim {
		c.Key, c.RetiredAt = evidence.KeyRetired, at(hour)
		return c
	}
	first, second, old := held("wrong labels", 1), held("wrong labels", 2), quarantine(r.Digest)
	onEngine := about(t, r.Engines[0].Digest, func(s evidence.StatementSubject) ([]byte, error) { return evidence.NewQuarantine(s, "slow", at(1)) })
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		held   bool
	}{
		{"none", nil, false},
		{"one", []evidence.Claim{first}, true},
		{"an empty one of before", []evidence.Claim{old}, true},
		{"no predicate", []evidence.Claim{raw(``)}, true},
		{"null", []evidence.Claim{raw(`null`)}, true},
		{"not JSON", []evidence.Claim{raw(`x`)}, true},
		{"no lifts", []evidence.Claim{raw(`{"lifts":[]}`)}, true},
		{"lifts of another shape", []evidence.Claim{raw(`{"lifts":"all"}`)}, true},
		{"lifts of an invalid digest", []evidence.Claim{raw(`{"lifts":["all"]}`)}, true},
		{"lifts in another spelling", []evidence.Claim{raw(`{"Lifts":["` + string(r.Digest) + `"]}`)}, true},
		{"a lift alone", []evidence.Claim{lift(first)}, false},
		{"lifted", []evidence.Claim{first, lift(first)}, false},
		{"lifted, in the other order", []evidence.Claim{lift(first), first}, false},
		{"an empty one lifted", []evidence.Claim{old, lift(old)}, false},
		{"two, one of them lifted", []evidence.Claim{first, second, lift(first)}, true},
		{"two, both lifted", []evidence.Claim{first, second, lift(first, second)}, false},
		{"the same again after the lift", []evidence.Claim{first, lift(first), held("wrong labels", 21)}, true},
		{"the same bundle again", []evidence.Claim{first, lift(first), first}, false},
		{"the same statement in another bundle", []evidence.Claim{first, lift(first), rewrapped(first)}, false},
		{"a lift without an approver", []evidence.Claim{first, edit(lift(first), func(c *evidence.Claim) { c.Roles = []evidence.Role{evidence.RoleVerifier} })}, true},
		{"a lift by a revoked key", []evidence.Claim{first, edit(lift(first), func(c *evidence.Claim) { c.Key = evidence.KeyRevoked })}, true},
		{"a lift by a key retired before it", []evidence.Claim{first, retired(lift(first), 19)}, true},
		{"a lift by a key retired after it, without a record", []evidence.Claim{first, retired(lift(first), 21)}, true},
		{"a lift by a key retired after it, without a history", []evidence.Claim{first, withoutHistory(retired(lift(first), 21))}, false},
		{"a lift by a key retired after it, recorded later", []evidence.Claim{first, recorded(23, retired(lift(first), 21))}, true},
		{"a lift of another's", []evidence.Claim{first, lift(onEngine)}, true},
		{"a lift about another release", []evidence.Claim{first, edit(lift(first), func(c *evidence.Claim) { c.Subject = digest.FromString("another release") })}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claims := append(enough(r), c.claims...)
			got := unmet(strictest().Check(r, claims))
			if (got != "") != c.held {
				t.Errorf("unmet is %q, want in quarantine %t", got, c.held)
			}
			if left := evidence.Quarantines(r, claims, r.Digest); (len(left) > 0) != c.held {
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
		state func(evidence.StatementSubject) ([]byte, error)
		want  string
	}{
		"a quarantine": {func(s evidence.StatementSubject) ([]byte, error) { return evidence.NewQuarantine(s, "slow", now) }, "slow"},
		"a lift": {func(s evidence.StatementSubject) ([]byte, error) {
			return evidence.NewQuarantineLift(s, "mended", now, release)
		}, "lifted: mended"},
		"other evidence": {func(s evidence.StatementSubject) ([]byte, error) {
			return evidence.NewStatement(evidence.PredicateParity, map[string]string{"reason": "slow"}, s)
		}, ""},
	} {
		if got := about(t, release, c.state).Reason(); got != c.want {
			t.Errorf("%s: reason %q, want %q", name, got, c.want)
		}
	}
}

func TestNewQuarantineRefuses(t *testing.T) {
	t.Parallel()
	subject, now := evidence.StatementSubject{Digest: evidence.NewDigestSet(sample().Digest)}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	_, noReason := evidence.NewQuarantine(subject, "", now)
	_, noLifts := evidence.NewQuarantineLift(subject, "mended", now)
	_, noDigest := evidence.NewQuarantineLift(subject, "mended", now, "sha256:x")
	for name, err := range map[string]error{"no reason": noReason, "nothing to lift": noLifts, "no digest": noDigest} {
		if !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}
