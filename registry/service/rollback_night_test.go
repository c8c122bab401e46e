package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// What must not stop one person who rolls back in the night, and what must. Each case happens after both releases
// were promoted. Nothing but the registry is asked.
func TestRollbackAtNight(t *testing.T) {
	t.Parallel()
	inProd := func(edit func(e *policy.Environment)) func(c *backend.Backend) {
		return func(c *backend.Backend) {
			c.Environments.List = slices.Clone(c.Environments.List)
			edit(&c.Environments.List[1])
		}
	}
	late := time.Date(2099, 1, 1, 3, 0, 0, 0, time.UTC)
	oldReports := func(c *backend.Backend) {
		inProd(func(e *policy.Environment) { e.Reports = policy.ReportRule{MaxAge: time.Hour} })(c)
		c.Now = func() time.Time { return late }
	}
	frozen := inProd(func(e *policy.Environment) {
		e.Freeze = []policy.Freeze{{Name: "fair", From: time.Unix(0, 0), Until: late.Add(time.Hour)}}
	})
	approvals := inProd(func(e *policy.Environment) { e.Approvals = policy.ApprovalRule{Count: 2} })
	coverage := inProd(func(e *policy.Environment) {
		e.Coverage = policy.CoverageRule{NodeTypes: []string{"nowhere"}, Witnesses: 2}
	})
	stricter := require(policy.RequireReproducibleBytes, policy.RequireSeparateRoles)
	rotated := []func(*backend.Backend){keyState(evidence.RoleBuilder, evidence.KeyRetired), keyState(evidence.RoleVerifier, evidence.KeyRetired),
		keyState(evidence.RoleApprover, evidence.KeyRetired)}
	for name, c := range map[string]struct {
		edits    []func(*backend.Backend)
		evidence string // predicate that an approver or verifier attached to the earlier release
		refused  string // part of the error; empty: it goes back
	}{
		"reports that have expired":           {edits: []func(*backend.Backend){oldReports}},
		"a freeze":                            {edits: []func(*backend.Backend){frozen}},
		"approvals that are missing":          {edits: []func(*backend.Backend){approvals}},
		"node types that were never proven":   {edits: []func(*backend.Backend){coverage}},
		"stricter requirements":               {edits: []func(*backend.Backend){stricter}},
		"keys that were replaced":             {edits: rotated},
		"a verifier's key that was revoked":   {edits: []func(*backend.Backend){keyState(evidence.RoleVerifier, evidence.KeyRevoked)}},
		"all of that at once":                 {edits: append(slices.Clone(rotated), oldReports, frozen, approvals, coverage)},
		"a quarantine":                        {evidence: evidence.PredicateQuarantine, refused: "in quarantine"},
		"a builder's key that was revoked":    {edits: []func(*backend.Backend){keyState(evidence.RoleBuilder, evidence.KeyRevoked)}, refused: "signature"},
		"the promoter's key that was revoked": {edits: []func(*backend.Backend){keyState(evidence.RolePromoter, evidence.KeyRevoked)}, refused: "summary"},
		"a quarantine, and all of that":       {edits: append(slices.Clone(rotated), oldReports, frozen), evidence: evidence.PredicateQuarantine, refused: "in quarantine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			first := w.Promoted(t, registrytest.Build{})
			second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			if c.evidence != "" {
				w.AttachTo(t, "prod", first, first.Digest, c.evidence, evidence.Quarantine{Reason: "wrong labels", IssuedOn: time.Unix(1, 0).UTC()})
			}
			_, err := w.after(t, c.edits...).Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "p99 doubled"})
			switch {
			case c.refused == "" && (err != nil || w.head(t).Release != first.Digest):
				t.Errorf("error %v, head %s, want %s", err, w.head(t).Release, first.Digest)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || w.head(t).Release != second.Digest):
				t.Errorf("error %v, head %s, want a refusal with %q, and %s", err, w.head(t).Release, c.refused, second.Digest)
			}
		})
	}
}
