package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// hour is a time of the fixture's day.
func hour(h int) time.Time { return time.Date(2026, 1, 1, h, 0, 0, 0, time.UTC) }

func TestWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		window evidence.Window
		at     time.Time
		want   bool
	}{
		"no bound, no time":   {evidence.Window{}, time.Time{}, true},
		"a bound, no time":    {evidence.Window{Until: hour(5)}, time.Time{}, false},
		"from, no time":       {evidence.Window{From: hour(5)}, time.Time{}, false},
		"before from":         {evidence.Window{From: hour(5)}, hour(4), false},
		"at from":             {evidence.Window{From: hour(5)}, hour(5), true},
		"before until":        {evidence.Window{Until: hour(5)}, hour(4), true},
		"at until":            {evidence.Window{Until: hour(5)}, hour(5), false},
		"between":             {evidence.Window{From: hour(3), Until: hour(5)}, hour(4), true},
		"two that are apart":  {evidence.Window{Until: hour(3)}.Intersect(evidence.Window{From: hour(5)}), hour(4), false},
		"the narrower of two": {evidence.Window{From: hour(1), Until: hour(9)}.Intersect(evidence.Window{From: hour(3), Until: hour(5)}), hour(6), false},
		"one without bounds":  {evidence.Window{}.Intersect(evidence.Window{Until: hour(5)}), hour(6), false},
		"the other without":   {evidence.Window{Until: hour(5)}.Intersect(evidence.Window{}), hour(6), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.window.Contains(c.at); got != c.want {
				t.Errorf("%q contains %v: got %t, want %t", c.window, c.at, got, c.want)
			}
		})
	}
}

// in gives every claim of a signer a window, and perhaps a timestamp.
func in(claims []evidence.Claim, signer string, w evidence.Window, stamped time.Time) []evidence.Claim {
	out := slices.Clone(claims)
	for i, c := range out {
		if c.Signer == signer {
			out[i].Window, out[i].Stamped = w, stamped
		}
	}
	return out
}

// What a key signed outside its window does not count, whatever time it claims, and what it signed
// against a release always does. The fixture's claims are recorded in hour 3.
func TestWindows(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	signed := all(enough(r))
	passing := func(pass evidence.Claim) []evidence.Claim {
		return append(all(without(enough(r), is(evidence.PredicateParity, e.Digest))), pass)
	}
	early := parity(r, e, 1, evidence.VerdictPass, nil) // claims hour 1
	late := recorded(6, early)                          // and was recorded in hour 6
	until5, from5 := evidence.Window{Until: hour(5)}, evidence.Window{From: hour(5)}
	for name, c := range map[string]struct {
		claims  []evidence.Claim
		signer  string
		window  evidence.Window
		stamped time.Time
		want    string // part of the unmet requirement; empty: all are met
	}{
		"recorded in the window":                       {signed, verifier, until5, time.Time{}, ""},
		"recorded after it":                            {signed, builder, evidence.Window{Until: hour(2)}, time.Time{}, "signature of release"},
		"recorded before it":                           {signed, builder, from5, time.Time{}, "signature of release"},
		"recorded after it, claims a time in it":       {passing(late), verifier, until5, time.Time{}, "parity of x86/fp32"},
		"recorded after it, stamped in it":             {passing(late), verifier, until5, hour(4), ""},
		"recorded in it, stamped after it":             {signed, verifier, until5, hour(6), "parity of x86/fp32"},
		"not recorded beside a history, claims a time": {passing(early), verifier, until5, time.Time{}, "parity of x86/fp32"},
		"not recorded, stamped":                        {passing(early), verifier, until5, hour(1), ""},
		"no history, claims a time in it":              {passing(withoutHistory(early)), verifier, until5, time.Time{}, ""},
		"no history, claims a time after it":           {passing(withoutHistory(parity(r, e, 6, evidence.VerdictPass, nil))), verifier, until5, time.Time{}, "parity of x86/fp32"},
		"failure after it": {append(slices.Clone(signed), recorded(9, parity(r, e, 9, evidence.VerdictFail, nil))),
			verifier, until5, time.Time{}, `verdict is "fail"`},
		"quarantine after it": {append(slices.Clone(signed), recorded(9, quarantine(r.Digest))), approver, until5, time.Time{}, "in quarantine"},
		"a window of no time": {signed, builder, evidence.Window{From: hour(5), Until: hour(2)}, time.Time{}, "signature of release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := strictest().Check(r, in(c.claims, c.signer, c.window, c.stamped))
			if got := unmet(d); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
		})
	}
}

// A retired key counts for what was stamped before, also where that was recorded later.
func TestRetiredAndStamped(t *testing.T) {
	t.Parallel()
	r := sample()
	for stamped, want := range map[int]bool{1: true, 2: false} {
		claims := in(inState(all(enough(r)), verifier, evidence.KeyRetired, 2), verifier, evidence.Window{}, hour(stamped))
		if got := strictest().Check(r, claims).Allowed(); got != want {
			t.Errorf("retired in hour 2, stamped in hour %d: got %t, want %t", stamped, got, want)
		}
	}
}

// What says the time is said.
func TestTimeSource(t *testing.T) {
	t.Parallel()
	r := sample()
	pass := parity(r, r.Engines[0], 1, evidence.VerdictPass, nil)
	stamped := recorded(6, pass)
	stamped.Stamped = hour(4)
	both := withoutHistory(pass)
	both.Stamped = hour(4)
	nothing := withoutHistory(pass)
	nothing.Statement.PredicateType = evidence.PredicateSign
	for name, c := range map[string]struct {
		claim evidence.Claim
		at    time.Time
		by    evidence.TimeSource
	}{
		"stamped":            {stamped, hour(4), evidence.TimeStamped},
		"recorded":           {recorded(6, pass), hour(6), evidence.TimeRecorded},
		"claimed":            {withoutHistory(pass), hour(1), evidence.TimeClaimed},
		"stamped, claimed":   {both, hour(4), evidence.TimeStamped},
		"not in the history": {pass, time.Time{}, ""},
		"claims nothing":     {nothing, time.Time{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if at, by := c.claim.Time(); !at.Equal(c.at) || by != c.by {
				t.Errorf("got %v by %q, want %v by %q", at, by, c.at, c.by)
			}
		})
	}
}

// Where nothing says when a claim was made, its key must be in its window when it is read.
func TestSignedNowInAWindow(t *testing.T) {
	t.Parallel()
	claim := evidence.Claim{Key: evidence.KeyTrusted, Roles: []evidence.Role{evidence.RoleBuilder}, Window: evidence.Window{Until: hour(2)}}
	if claim.SignedNowAs(evidence.RoleBuilder) {
		t.Error("a key with a window counts now although nothing says when now is")
	}
	claim.RecordedAt = hour(1)
	if !claim.SignedNowAs(evidence.RoleBuilder) {
		t.Error("a key in its window does not count")
	}
	claim.RecordedAt = hour(2)
	if claim.SignedNowAs(evidence.RoleBuilder) {
		t.Error("a key counts at the end of its window")
	}
}
