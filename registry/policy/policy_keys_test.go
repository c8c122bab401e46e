package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// inState gives every claim of a signer a key state. A retired key is retired at an hour of
// the fixture's day.
func inState(claims []evidence.Claim, signer string, state evidence.KeyState, hour int) []evidence.Claim {
	out := slices.Clone(claims)
	for i, c := range out {
		if c.Signer != signer {
			continue
		}
		out[i].Key = state
		if state == evidence.KeyRetired {
			out[i].RetiredAt = time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)
		}
	}
	return out
}

// all records every claim in row 3.
func all(claims []evidence.Claim) []evidence.Claim {
	var out []evidence.Claim
	for _, c := range claims {
		out = append(out, recorded(3, c))
	}
	return out
}

// withoutHistory is a claim from a pulled folder.
func withoutHistory(c evidence.Claim) evidence.Claim {
	c.WithoutHistory = true
	return c
}

// liftOf is a lift of a quarantine that claims to be made at an hour.
func liftOf(t *testing.T, subject, quarantine registry.Digest, hour int) evidence.Claim {
	t.Helper()
	return claim(evidence.PredicateQuarantine, subject, approver, evidence.RoleApprover, evidence.Quarantine{
		Reason: "over", IssuedOn: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC), Lifts: []registry.Digest{quarantine},
	})
}

// Retiring or revoking a key drops none of its claims against a release. For a release, what
// was recorded before its retirement counts.
func TestKeyStates(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	signed := all(enough(r))
	fails := append(slices.Clone(signed), recorded(5, parity(r, e, 5, evidence.VerdictFail, nil)))
	held := append(slices.Clone(signed), recorded(5, quarantine(r.Digest)))
	lift := liftOf(t, r.Digest, held[len(held)-1].Bundle, 1)
	passing := func(pass evidence.Claim) []evidence.Claim { // with this pass for the first engine alone
		return append(all(without(enough(r), is(evidence.PredicateParity, e.Digest))), pass)
	}
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		signer string
		state  evidence.KeyState
		hour   int
		want   string // part of the unmet requirement; empty: all are met
	}{
		{"trusted builder", signed, builder, evidence.KeyTrusted, 0, ""},
		{"builder retired after", signed, builder, evidence.KeyRetired, 4, ""},
		{"builder retired in the hour", signed, builder, evidence.KeyRetired, 3, "signature of release"},
		{"builder retired before", signed, builder, evidence.KeyRetired, 2, "provenance of x86/fp32"},
		{"builder revoked", signed, builder, evidence.KeyRevoked, 0, "signature of release"},
		{"builder in no state", signed, builder, "", 0, "signature of release"},
		{"builder in an unknown state", signed, builder, "suspended", 0, "signature of release"},
		{"verifier retired after", signed, verifier, evidence.KeyRetired, 4, ""},
		{"verifier retired before", signed, verifier, evidence.KeyRetired, 2, "parity of x86/fp32: no report of a trusted verifier"},
		{"verifier revoked", signed, verifier, evidence.KeyRevoked, 0, "parity of x86/fp32: no report of a trusted verifier"},
		{"failure of a verifier retired before", fails, verifier, evidence.KeyRetired, 2, `verdict is "fail"`},
		{"failure of a revoked verifier", fails, verifier, evidence.KeyRevoked, 0, `verdict is "fail"`},
		{"failure of a verifier in no state", fails, verifier, "", 0, `verdict is "fail"`},
		{"quarantine of a retired approver", held, approver, evidence.KeyRetired, 1, "in quarantine"},
		{"quarantine of a revoked approver", held, approver, evidence.KeyRevoked, 0, "in quarantine"},
		// Without a history, the time in the statement decides; a signature has none.
		{"no history, verifier retired after", passing(withoutHistory(parity(r, e, 1, evidence.VerdictPass, nil))), verifier, evidence.KeyRetired, 4, ""},
		{"a history that does not name the pass, verifier retired after", passing(parity(r, e, 1, evidence.VerdictPass, nil)),
			verifier, evidence.KeyRetired, 4, "parity of x86/fp32"},
		{"lift that the history does not name, by a retired approver", append(slices.Clone(held), lift), approver, evidence.KeyRetired, 4, "in quarantine"},
		{"lift in time, by an approver retired after", append(slices.Clone(held), recorded(6, lift)), approver, evidence.KeyRetired, 23, ""},
		{"no history, verifier retired before", passing(withoutHistory(parity(r, e, 6, evidence.VerdictPass, nil))),
			verifier, evidence.KeyRetired, 4, "parity of x86/fp32"},
		{"no history, builder retired", enough(r), builder, evidence.KeyRetired, 23, "signature of release"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := strictest().Check(r, inState(c.claims, c.signer, c.state, c.hour))
			if got := unmet(d); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
		})
	}
}

// Claims of a retired key without the time of its retirement do not count.
func TestRetiredWithoutTime(t *testing.T) {
	t.Parallel()
	r := sample()
	claims := inState(all(enough(r)), builder, evidence.KeyRetired, 9)
	for i := range claims {
		claims[i].RetiredAt = time.Time{}
	}
	if d := strictest().Check(r, claims); d.Allowed() {
		t.Error("a release is allowed with a retired builder key without a time")
	}
}

// A pass by a revoked key heals nothing, not even a failure reported by the same key.
func TestRevokedKeysHealNothing(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	healed := append(all(enough(r)),
		recorded(5, parity(r, e, 5, evidence.VerdictFail, nil)), recorded(7, parity(r, e, 7, evidence.VerdictPass, nil)))
	if got := unmet(strictest().Check(r, healed)); got != "" {
		t.Fatalf("healed: unmet is %q", got)
	}
	if got := unmet(strictest().Check(r, inState(healed, verifier, evidence.KeyRevoked, 0))); !strings.Contains(got, `verdict is "fail"`) {
		t.Errorf("unmet is %q, want the failure", got)
	}
}
