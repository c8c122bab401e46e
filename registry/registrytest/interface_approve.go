package registrytest

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

// An approval for prod is given in staging, comes with the promotion, and is read with the name of
// its key and its place in the history. Its signer's withdrawal stands beside it.
func testApproval(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	r.Prove(t, release)
	a := evidence.Approval{ResourceURI: "oci://local/prod/" + Model, Comment: "tried it", ApprovedOn: measured(), Accepts: []string{"a line"}}
	stored := r.AttachTo(t, "staging", release, release.Digest, evidence.PredicateApproval, a)
	state := func(environment string, want evidence.ApprovalState) {
		t.Helper()
		claims, _, err := r.Claims(t.Context(), environment, release)
		must(t, err)
		given := evidence.Approvals(release, claims, measured())
		if len(given) != 1 || given[0].State != want || given[0].Bundle != stored || given[0].Comment != "tried it" ||
			!slices.Equal(given[0].Keys, []string{"approver"}) || !slices.Equal(given[0].Accepts, a.Accepts) {
			t.Errorf("%s: approvals %+v, want one that is %s", environment, given, want)
		}
	}
	state("staging", evidence.ApprovalStands)
	_, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	state("prod", evidence.ApprovalStands)
	r.AttachTo(t, "staging", release, release.Digest, evidence.PredicateApproval,
		evidence.Approval{ResourceURI: a.ResourceURI, Comment: "found something", ApprovedOn: measured(), Withdrawn: true})
	state("staging", evidence.ApprovalWithdrawn)
	got := events(t, r, history.EventAttach)
	if last := got[len(got)-1]; last.Reason != "withdrawn for prod/"+Model+": found something" || last.PredicateType != evidence.PredicateApproval {
		t.Errorf("the last event is %+v, want the withdrawal with its reason", last)
	}
	_, err = r.Attach(t.Context(), api.Attachment{Environment: "staging", Model: Model, Release: release.Digest, Subject: release.Digest,
		Bundle: r.Bundle(t, "verifier", evidence.PredicateApproval, a, release.Digest)})
	refused(t, err, registry.CodeTrust, "is not trusted as approver for oci://local/prod/"+Model)
}
