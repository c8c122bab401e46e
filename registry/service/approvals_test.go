package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/trust"
)

// approversOf makes prod ask for approvals, and trusts first and second there alone, carl in staging
// alone, and dora as builder and approver everywhere.
func approversOf(count int) func(c *backend.Backend) {
	return func(c *backend.Backend) {
		c.Environments.List[1].Approvals = policy.ApprovalRule{Count: count}
		for key, where := range map[string]string{"first": "prod/", "second": "prod/", "carl": "staging/"} {
			c.Environments.Trust = append(c.Environments.Trust, trust.TrustEntry{
				Key: key, Roles: []evidence.Role{evidence.RoleApprover}, Resources: []string{"oci://local/" + where}})
		}
		c.Environments.Trust = append(c.Environments.Trust, trust.TrustEntry{
			Key: "dora", Roles: []evidence.Role{evidence.RoleBuilder, evidence.RoleApprover}, Resources: []string{"oci://local/"}})
	}
}

// seen names the newest event.
func (w *world) seen(t *testing.T) evidence.DigestSet {
	t.Helper()
	hash, err := history.NewestHash(t.Context(), w, registrytest.Model)
	must(t, err)
	return evidence.NewDigestSet(hash)
}

// approve attaches an approval for prod, in staging, changed by edit.
func (w *world) approve(t *testing.T, r artifact.Release, key string, edit func(*evidence.Approval)) (registry.Digest, error) {
	t.Helper()
	a := evidence.Approval{ResourceURI: "oci://local/prod/" + r.Model, Comment: "tried it", ApprovedOn: w.config.Now(), History: w.seen(t)}
	if edit != nil {
		edit(&a)
	}
	return w.Attach(t.Context(), api.Attachment{
		Environment: "staging", Model: r.Model, Release: r.Digest, Subject: r.Digest,
		Bundle: w.Bundle(t, key, evidence.PredicateApproval, a, r.Digest),
	})
}

// promotion tries to promote a model's head of staging, and returns what the rule of approvals says.
func (w *world) promotion(t *testing.T, dry bool) (policy.Requirement, error) {
	t.Helper()
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, DryRun: dry})
	i := slices.IndexFunc(p.Decision.Requirements, func(r policy.Requirement) bool { return r.Name == "approvals" })
	if i < 0 {
		return policy.Requirement{}, err
	}
	return p.Decision.Requirements[i], err
}

// Two approvers of prod, whom staging does not trust, approve what is in staging. Their approvals
// come with the release, and the summary names them.
func TestApprovedPromotion(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*backend.Backend){
		"local": nil, "prod on another registry": {external("prod")}, "staging on another registry": {external("staging")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, append(edits, approversOf(2))...)
			r := w.proven(t, registrytest.Build{})
			if got, err := w.promotion(t, true); registry.ExitCode(err) != 4 || got.Met || !strings.Contains(got.Detail, "missing: 2 of 2 approvals") {
				t.Fatalf("without approvals: %+v, error %v", got, err)
			}
			first, err := w.approve(t, r, "first", nil)
			must(t, err)
			if got, err := w.promotion(t, false); registry.ExitCode(err) != 4 || got.Met ||
				!strings.Contains(got.Detail, "approved by first; missing: 1 of 2") || w.head(t).Release != "" {
				t.Fatalf("with one: %+v, error %v", got, err)
			}
			second, err := w.approve(t, r, "second", nil)
			must(t, err)
			got, err := w.promotion(t, false)
			if err != nil || !got.Met || got.Detail != "approved by first, second" || len(got.Evidence) != 2 || w.head(t).Release != r.Digest {
				t.Fatalf("with two: %+v, error %v, head %+v", got, err, w.head(t))
			}
			for _, environment := range []string{"staging", "prod"} {
				claims, ignored, err := w.Claims(t.Context(), environment, r)
				must(t, err)
				given := evidence.Approvals(r, claims, w.config.Now())
				if len(given) != 2 || ignored.IgnoredCount != 0 || !slices.ContainsFunc(given, func(g evidence.GivenApproval) bool { return g.Bundle == first }) {
					t.Errorf("%s has the approvals %+v, ignored %+v, want %s and %s", environment, given, ignored, first, second)
				}
				_, summary, ok := policy.FindVSA(claims, r, "oci://local/prod/"+r.Model)
				if environment == "prod" && (!ok || !slices.ContainsFunc(summary.InputAttestations,
					func(d evidence.VSADescriptor) bool { return d.Digest.Names(second) })) {
					t.Errorf("the summary names %+v, want %s among them", summary.InputAttestations, second)
				}
			}
		})
	}
}

// A rebuild has another digest, which has no approval.
func TestApprovalsAreOfOneRelease(t *testing.T) {
	t.Parallel()
	w := setup(t, approversOf(1))
	_, err := w.approve(t, w.proven(t, registrytest.Build{}), "first", nil)
	must(t, err)
	w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	if got, err := w.promotion(t, false); registry.ExitCode(err) != 4 || got.Met {
		t.Errorf("a later release: %+v, error %v", got, err)
	}
}

// What could never count is refused at the door. What was pushed past it counts for nothing.
func TestApprovalsThatDoNotCount(t *testing.T) {
	t.Parallel()
	later := func(d time.Duration) func(*evidence.Approval) {
		return func(a *evidence.Approval) { a.ApprovedOn = a.ApprovedOn.Add(d) }
	}
	for name, c := range map[string]struct {
		key  string
		edit func(*evidence.Approval)
		code registry.Code
		want string
	}{
		"a stranger":             {registrytest.Stranger, nil, registry.CodeTrust, "no key that is trusted"},
		"an approver of staging": {"carl", nil, registry.CodeTrust, "is not trusted as approver for oci://local/prod/vision/digits"},
		"a builder":              {"dora", nil, registry.CodeTrust, "signed the build of this release, so it cannot approve it"},
		"a verifier":             {"verifier", nil, registry.CodeTrust, "is not trusted as approver for oci://local/prod/vision/digits"},
		"for no environment": {"first", func(a *evidence.Approval) { a.ResourceURI = "oci://local/moon/vision/digits" },
			registry.CodeTrust, "no key that is trusted"},
		"for another model": {"approver", func(a *evidence.Approval) { a.ResourceURI = "oci://local/prod/vision/letters" },
			registry.CodeTrust, "is not trusted as approver for oci://local/prod/vision/letters"},
		"for what builds go to": {"carl", func(a *evidence.Approval) { a.ResourceURI = "oci://local/staging/vision/digits" }, "", ""},
		"from the future":       {"first", later(time.Hour), registry.CodeTrust, "set the clock"},
		"expired": {"first", func(a *evidence.Approval) {
			a.ApprovedOn, a.ExpiresOn = a.ApprovedOn.Add(-2*time.Hour), a.ApprovedOn.Add(-time.Hour)
		}, registry.CodeTrust, "it expired on"},
		"no comment": {"first", func(a *evidence.Approval) { a.Comment = "" }, registry.CodeTrust, "no key that is trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, approversOf(1))
			r := w.Build(t, registrytest.Build{})
			w.Prove(t, r)
			if c.key == "dora" {
				_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: r.Engines[0].Digest,
					Bundle: w.Bundle(t, "dora", evidence.PredicateSign, struct{}{}, r.Engines[0].Digest)})
				must(t, err)
			}
			_, err := w.approve(t, r, c.key, c.edit)
			if c.code == "" && err != nil || c.code != "" && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("attach: error %v, want %s with %q", err, c.code, c.want)
			}
			a := evidence.Approval{ResourceURI: "oci://local/prod/" + r.Model, Comment: "tried it", ApprovedOn: w.config.Now()}
			if c.edit != nil {
				c.edit(&a)
			}
			if a.ApprovedOn.After(w.config.Now()) {
				return // the policy does not judge when an approval says that it was given
			}
			bundle := evidence.Bundle{PredicateType: evidence.PredicateApproval, Data: w.Bundle(t, c.key, evidence.PredicateApproval, a, r.Digest)}
			_, err = w.config.Content.PutEvidence(t.Context(), "staging/"+r.Model, bundle, r.Subjects()[:1])
			must(t, err)
			if got, err := w.promotion(t, false); registry.ExitCode(err) != 4 || got.Met {
				t.Errorf("pushed past the door: %+v, error %v", got, err)
			}
		})
	}
}

// An approval is about a release, and not about one engine of it.
func TestApprovalOfAnEngine(t *testing.T) {
	t.Parallel()
	w := setup(t, approversOf(1))
	r := w.proven(t, registrytest.Build{})
	e := r.Engines[0].Digest
	a := evidence.Approval{ResourceURI: "oci://local/prod/" + r.Model, Comment: "tried it", ApprovedOn: w.config.Now()}
	_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: e,
		Bundle: w.Bundle(t, "first", evidence.PredicateApproval, a, e)})
	if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "is about a release") {
		t.Errorf("error %v, want CodeInvalid", err)
	}
}

// The history orders what an approver says: withdrawn, and approved again.
func TestWithdrawnApproval(t *testing.T) {
	t.Parallel()
	w := setup(t, approversOf(1))
	r := w.proven(t, registrytest.Build{})
	says := func(withdrawn bool) {
		t.Helper()
		_, err := w.approve(t, r, "first", func(a *evidence.Approval) { a.Withdrawn = withdrawn })
		must(t, err)
	}
	for i, c := range []struct{ withdrawn, allowed bool }{{false, true}, {true, false}, {true, false}, {false, true}} {
		says(c.withdrawn)
		if got, _ := w.promotion(t, true); got.Met != c.allowed {
			t.Fatalf("after statement %d: %+v, want met %t", i+1, got, c.allowed)
		}
	}
	if _, err := w.promotion(t, false); err != nil {
		t.Fatal(err)
	}
	says(true) // too late: the release is in prod, where a quarantine would stop it
	if _, err := w.Resolve(t.Context(), prod("")); err != nil {
		t.Errorf("resolve after the withdrawal: %v", err)
	}
}

// The service's clock says when an approval has expired.
func TestExpiredApproval(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := setup(t, approversOf(1), func(c *backend.Backend) { c.Now = func() time.Time { return now } })
	r := w.proven(t, registrytest.Build{})
	_, err := w.approve(t, r, "first", func(a *evidence.Approval) { a.ExpiresOn = now.Add(time.Hour) })
	must(t, err)
	for _, c := range []struct {
		after time.Duration
		met   bool
	}{{0, true}, {time.Hour - 1, true}, {time.Hour, false}, {2 * time.Hour, false}} {
		now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.after)
		if got, _ := w.promotion(t, true); got.Met != c.met {
			t.Errorf("after %s: %+v, want met %t", c.after, got, c.met)
		}
	}
}

// What is found after the approvals denies all the same.
func TestApprovedAndQuarantined(t *testing.T) {
	t.Parallel()
	w := setup(t, approversOf(1))
	r := w.proven(t, registrytest.Build{})
	_, err := w.approve(t, r, "first", nil)
	must(t, err)
	w.AttachTo(t, "staging", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	if got, err := w.promotion(t, false); registry.ExitCode(err) != 4 || !got.Met || !strings.Contains(err.Error(), "wrong labels") {
		t.Errorf("approvals %+v, error %v, want the quarantine", got, err)
	}
}

// An approval for a later environment of the chain, given in the first, travels with the release.
func TestApprovalForALaterEnvironment(t *testing.T) {
	t.Parallel()
	w := setup(t, approversOf(1), func(c *backend.Backend) {
		c.Environments.List = append(c.Environments.List, policy.Environment{
			Name: "edge", From: "prod", Require: []string{policy.RequireSignature}, Approvals: policy.ApprovalRule{Count: 1}})
		c.Environments.Trust = append(c.Environments.Trust, trust.TrustEntry{
			Key: "emil", Roles: []evidence.Role{evidence.RoleApprover}, Resources: []string{"oci://local/edge/"}})
	})
	r := w.proven(t, registrytest.Build{})
	_, err := w.approve(t, r, "emil", func(a *evidence.Approval) { a.ResourceURI = "oci://local/edge/" + r.Model })
	must(t, err)
	toProd := api.PromoteRequest{Model: r.Model, To: "prod"}
	if _, err := w.Promote(t.Context(), toProd); registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "approvals of release") {
		t.Fatalf("an approval for edge counts in prod: error %v", err)
	}
	_, err = w.approve(t, r, "first", nil)
	must(t, err)
	_, err = w.Promote(t.Context(), toProd)
	must(t, err)
	if _, err = w.Promote(t.Context(), api.PromoteRequest{Model: r.Model, To: "edge"}); err != nil {
		t.Errorf("to edge: %v", err)
	}
}

// Replay says which heads would lack approvals.
func TestReplayAsksForApprovals(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	all, err := w.after(t, func(c *backend.Backend) { c.Environments.List[1].Approvals.Count = 1 }).Replay(t.Context(), w.service)
	if err != nil || len(all) != 1 || all[0].Refused() || !strings.Contains(strings.Join(all[0].Reasons(), "\n"),
		"would not be promoted: approvals of release: missing: 1 of 1 approval") {
		t.Errorf("replay gives %+v, error %v", all, err)
	}
}

// approved is an approval for prod that counts, with nothing that asks for it.
func approved() evidence.Approval {
	return evidence.Approval{ResourceURI: "oci://local/prod/" + registrytest.Model,
		Comment: "tried it", ApprovedOn: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// Who left a release by a rollback had a reason. What was approved before counts no more.
func TestApprovalFromBeforeARollback(t *testing.T) {
	t.Parallel()
	w := setup(t, approversOf(1))
	for _, b := range []registrytest.Build{{}, {Version: "1.1.0", Salt: "b"}} {
		r := w.proven(t, b)
		_, err := w.approve(t, r, "first", nil)
		must(t, err)
		_, err = w.promotion(t, false)
		must(t, err)
	}
	left := w.head(t).Release
	_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "it is slow"})
	must(t, err)
	must(t, w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "mended"}))
	if said, err := w.promotion(t, false); registry.ExitCode(err) != 4 ||
		!strings.Contains(said.Detail, "that of first is from before the environment was rolled back from this release") {
		t.Errorf("with the approval from before: %v, %q", err, said.Detail)
	}
	r, err := w.Release(t.Context(), "staging", registrytest.Model, string(left))
	must(t, err)
	_, err = w.approve(t, r, "first", func(a *evidence.Approval) { a.Comment = "tried it again" })
	must(t, err)
	if _, err := w.promotion(t, false); err != nil || w.head(t).Release != left {
		t.Errorf("with a new approval: %v, head %s", err, w.head(t).Release)
	}
}
