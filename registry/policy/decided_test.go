package policy_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/trust"
)

// A decision holds from its first instant until just before its last.
func TestDecisionHoldsForATime(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		from, until, at time.Time
		says            string // empty: it holds
	}{
		"no bounds":               {at: noon},
		"at its beginning":        {from: noon, at: noon},
		"before it":               {from: noon, at: noon.Add(-time.Microsecond), says: "the clock was turned back"},
		"within its microsecond":  {from: noon.Add(300 * time.Nanosecond), at: noon},
		"just before its end":     {until: noon, at: noon.Add(-time.Microsecond)},
		"at its end":              {until: noon, at: noon, says: "this was decided for the time before"},
		"after its end":           {from: noon, until: noon.Add(time.Hour), at: noon.Add(2 * time.Hour), says: "for the time before"},
		"between beginning, end":  {from: noon, until: noon.Add(time.Hour), at: noon.Add(time.Minute)},
		"before a decision's end": {from: noon, until: noon.Add(time.Hour), at: noon.Add(-time.Hour), says: "the clock was turned back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := history.DecisionBasis{From: c.from, Until: c.until}.Holds(c.at)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.says != "" && (!history.BasisOutdated(err) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v, want a conflict of the basis with %q", err, c.says)
			}
		})
	}
}

// A person's group must be one of the rule.
func TestGroupsOfListedPeople(t *testing.T) {
	t.Parallel()
	for group, says := range map[string]string{"": "", "security": "", "safety": `there is no group "safety"`} {
		rule := policy.ApprovalRule{Count: 2, Groups: []policy.ApproverGroup{{Name: "security", Count: 1, Keys: []string{"a.pub"}}},
			Attested: &policy.AttestedRule{Max: 1, People: []policy.ListedPerson{{Token: "ana", Group: group}}}}
		err := rule.Validate()
		if (err == nil) != (says == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), says)) {
			t.Errorf("group %q: error %v, want %q", group, err, says)
		}
	}
}

// A requirement on accuracy is described by what it asks for.
func TestAccuracyRequirementText(t *testing.T) {
	t.Parallel()
	figure := func(v float64) *evidence.Figure { f := evidence.Figure(v); return &f }
	for want, a := range map[string]policy.AccuracyRequirement{
		"top1":                 {Metric: "top1"},
		"top1 of at least 0.9": {Metric: "top1", Min: figure(0.9)},
		"mae of at most 2":     {Metric: "mae", Max: figure(2)},
		"top1 of at least 0.9, regression of at most 0.01": {Metric: "top1", Min: figure(0.9), Regression: figure(0.01)},
	} {
		if got := a.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// No list of no environment restricts nothing.
func TestZeroSignedRestrictions(t *testing.T) {
	t.Parallel()
	none := restriction.SignedRestrictions{}.Restrictions()
	if !reflect.DeepEqual(none, restriction.Restrictions{}) {
		t.Errorf("of no environment: %+v, want the zero Restrictions", none)
	}
	if some := (restriction.SignedRestrictions{Environment: "prod"}).Restrictions(); reflect.DeepEqual(some, none) {
		t.Errorf("of an environment: %+v, want that it is known to have none", some)
	}
}

// The number of events in a checkpoint is one that every reader of JSON reads exactly.
func TestMostEventsOfTrustBundle(t *testing.T) {
	t.Parallel()
	for size, says := range map[int64]string{1<<53 - 1: "", 1 << 53: "checkpoint"} {
		b := trustBundle(2)
		b.Checkpoint.Size = size
		code := registry.CodeInvalid
		if says == "" {
			code = ""
		}
		_, err := trust.NewTrustBundle(b)
		wantCode(t, err, code, says)
	}
}

// What a signed trust bundle says can be read before it is verified.
func TestPeekTrustBundle(t *testing.T) {
	t.Parallel()
	b := trustBundle(2)
	statement, err := trust.NewTrustBundle(b)
	if err != nil {
		t.Fatal(err)
	}
	wrapped := func(payload []byte) []byte {
		data, err := json.Marshal(map[string]any{"dsseEnvelope": map[string]any{"payload": base64.StdEncoding.EncodeToString(payload)}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if got, err := trust.PeekTrustBundle(wrapped(statement)); err != nil || got.Version != 2 || got.Registry != "local" {
		t.Errorf("version %d of %q, error %v; want version 2 of local", got.Version, got.Registry, err)
	}
	for name, data := range map[string][]byte{
		"no JSON":           []byte("x"),
		"no statement":      wrapped([]byte("x")),
		"another predicate": wrapped([]byte(strings.Replace(string(statement), trust.PredicateTrustBundle, evidence.PredicateParity, 1))),
		"too large":         append(wrapped(statement), strings.Repeat(" ", trust.MaxTrustBundle)...),
	} {
		if got, err := trust.PeekTrustBundle(data); !registry.HasCode(err, registry.CodeTrust) || got.Version != 0 {
			t.Errorf("%s: version %d, error %v; want CodeTrust", name, got.Version, err)
		}
	}
}

// Quarantines and restriction lists concern releases that their events do not name; other evidence does not.
func TestEventsThatRestrict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event history.Event
		want  bool
	}{
		"a restriction list":  {history.Event{Kind: history.EventRestrict}, true},
		"a quarantine":        {history.Event{Kind: history.EventAttach, PredicateType: evidence.PredicateQuarantine}, true},
		"a report":            {history.Event{Kind: history.EventAttach, PredicateType: evidence.PredicateParity}, false},
		"a promotion":         {history.Event{Kind: history.EventPromote}, false},
		"a promotion of such": {history.Event{Kind: history.EventPromote, PredicateType: evidence.PredicateQuarantine}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.event.Restricts(); got != c.want {
				t.Errorf("restricts: %t, want %t", got, c.want)
			}
		})
	}
}

// Both kinds of approvals name the resource that they are for.
func TestApprovedResource(t *testing.T) {
	t.Parallel()
	r := sample()
	const place = "oci://local/prod/vision/digits"
	for name, c := range map[string]struct {
		claim evidence.Claim
		uri   string
	}{
		"an approval":             {approval(r, "first", 9, nil), place},
		"a break-glass approval":  {breakGlass(r, "first", 9, nil), place},
		"a report":                {parity(r, r.Engines[0], 1, evidence.VerdictPass, nil), ""},
		"what nobody can read":    {claim(evidence.PredicateApproval, r.Digest, "first", evidence.RoleApprover, []int{1}), ""},
		"break-glass without end": {breakGlass(r, "first", 9, func(b *evidence.BreakGlass) { b.ExpiresOn = time.Time{} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if uri, ok := c.claim.ApprovedResource(); uri != c.uri || ok != (c.uri != "") {
				t.Errorf("got %q, %t; want %q", uri, ok, c.uri)
			}
		})
	}
}
