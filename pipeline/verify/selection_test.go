package verify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// enginesOf is a release with an engine for each target and variant.
func enginesOf(labels ...[2]string) artifact.Release {
	r := artifact.Release{Model: "a/b", Version: "1.0.0", Digest: digest.FromString("release")}
	for _, l := range labels {
		r.Engines = append(r.Engines, artifact.Engine{Digest: digest.FromString(l[0] + l[1]), Target: artifact.Target{Name: l[0]}, Variant: l[1]})
	}
	return r
}

// reported is a parity report of a trusted verifier, changed by edit.
func reported(t *testing.T, engine registry.Digest, verdict evidence.Verdict, minute int, edit func(*evidence.Claim)) evidence.Claim {
	t.Helper()
	predicate, err := json.Marshal(evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: verdict,
		FinishedOn: time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC)}})
	if err != nil {
		t.Fatal(err)
	}
	c := evidence.Claim{Bundle: digest.FromBytes(predicate), Subject: engine, Key: evidence.KeyTrusted, Roles: []evidence.Role{evidence.RoleVerifier},
		Statement: evidence.Statement{Type: evidence.StatementType, PredicateType: evidence.PredicateParity, Predicate: predicate,
			Subject: []evidence.StatementSubject{{Digest: evidence.NewDigestSet(engine)}}}}
	if edit != nil {
		edit(&c)
	}
	return c
}

// The newest report of a trusted verifier about the engine counts, and nothing else that was said.
func TestNewestParity(t *testing.T) {
	t.Parallel()
	r := enginesOf([2]string{"x", "fp32"}, [2]string{"x", "int8"})
	of, other := r.Engines[0].Digest, r.Engines[1].Digest
	pass := func(minute int) evidence.Claim { return reported(t, of, evidence.VerdictPass, minute, nil) }
	fail := func(minute int) evidence.Claim { return reported(t, of, evidence.VerdictFail, minute, nil) }
	for name, c := range map[string]struct {
		claims []evidence.Claim
		want   evidence.Verdict // empty: none
	}{
		"none":                   {nil, ""},
		"one":                    {[]evidence.Claim{fail(1)}, evidence.VerdictFail},
		"the newest is last":     {[]evidence.Claim{fail(1), pass(2)}, evidence.VerdictPass},
		"the newest is first":    {[]evidence.Claim{pass(2), fail(1)}, evidence.VerdictPass},
		"of another engine":      {[]evidence.Claim{reported(t, other, evidence.VerdictFail, 1, nil)}, ""},
		"another engine's later": {[]evidence.Claim{pass(1), reported(t, other, evidence.VerdictFail, 2, nil)}, evidence.VerdictPass},
		"another statement": {[]evidence.Claim{pass(1), reported(t, of, evidence.VerdictFail, 2, func(c *evidence.Claim) {
			c.Statement.PredicateType = evidence.PredicatePerformance
		})}, evidence.VerdictPass},
		"one that cannot be read": {[]evidence.Claim{pass(1), reported(t, of, evidence.VerdictFail, 2, func(c *evidence.Claim) {
			c.Statement.Predicate = json.RawMessage(`{"verdict": 7}`)
		})}, evidence.VerdictPass},
		"of somebody else": {[]evidence.Claim{pass(1), reported(t, of, evidence.VerdictFail, 2, func(c *evidence.Claim) { c.Roles = nil })}, evidence.VerdictPass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := NewestParity(r, c.claims, of)
			if ok != (c.want != "") || got.Verdict != c.want {
				t.Errorf("got %q, %t; want %q", got.Verdict, ok, c.want)
			}
		})
	}
}

// An engine is named by label, target, variant or digest. Without a name it is the only one, or the only one whose report is no pass.
func TestChooseEngine(t *testing.T) {
	t.Parallel()
	one := enginesOf([2]string{"x", "fp32"})
	two := enginesOf([2]string{"x", "fp32"}, [2]string{"x", "int8"})
	three := enginesOf([2]string{"x", "fp32"}, [2]string{"x", "int8"}, [2]string{"y", "int8"})
	of := func(r artifact.Release, verdicts ...evidence.Verdict) []evidence.Claim {
		var all []evidence.Claim
		for i, v := range verdicts {
			if v != "" {
				all = append(all, reported(t, r.Engines[i].Digest, v, 1, nil))
			}
		}
		return all
	}
	const pass, fail, undecided = evidence.VerdictPass, evidence.VerdictFail, evidence.VerdictUndecided
	for name, c := range map[string]struct {
		release artifact.Release
		claims  []evidence.Claim
		engine  string
		want    string // label
		says    string // part of the error
	}{
		"the only one":                  {one, nil, "", "x/fp32", ""},
		"the only one, though it fails": {one, of(one, fail), "", "x/fp32", ""},
		"by its label":                  {two, nil, "x/int8", "x/int8", ""},
		"by its variant":                {two, nil, "int8", "x/int8", ""},
		"by its target":                 {three, nil, "y", "y/int8", ""},
		"by its digest":                 {three, nil, three.Engines[1].Digest.String(), "x/int8", ""},
		"the only one that fails":       {two, of(two, pass, fail), "", "x/int8", ""},
		"the only undecided one":        {two, of(two, undecided, pass), "", "x/fp32", ""},
		"one has no report":             {two, of(two, "", fail), "", "x/int8", ""},
		"both pass":                     {two, of(two, pass, pass), "", "", "a/b 1.0.0 has 2 engines: choose one"},
		"both fail":                     {two, of(two, fail, fail), "", "", "choose one"},
		"no reports":                    {three, nil, "", "", "a/b 1.0.0 has 3 engines"},
		"one that is not there":         {two, nil, "int4", "", `no engine "int4": it has x/fp32, x/int8`},
		"several of a target":           {two, nil, "x", "", "x of a/b 1.0.0 means 2 engines: name one by its label or digest: x/fp32 sha256:"},
		"several of a variant":          {three, of(three, pass, pass, fail), "int8", "", "int8 of a/b 1.0.0 means 2 engines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chooseEngine(c.release, c.claims, c.engine)
			switch {
			case c.says != "":
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %s, error %v; want %q", got.Label(), err, c.says)
				}
			case err != nil || got.Label() != c.want:
				t.Errorf("got %s, error %v; want %s", got.Label(), err, c.want)
			}
		})
	}
}
