package approver_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// asking is prod that asks for an approval, and lets two requirements be skipped.
func asking(prod *policy.Environment) {
	prod.Approvals.Count = 1
	prod.BreakGlass = []string{policy.RequireParity, policy.RequireNoLooser}
}

func approve(release string) approver.Request {
	return approver.Request{Environment: "prod", Model: registrytest.Model, Release: release, Comment: "tried it"}
}

// An approval for prod is attached in staging and says at once what the rule of prod has.
func TestGive(t *testing.T) {
	t.Parallel()
	w := setup(t, asking)
	release := w.Build(t, registrytest.Build{})
	req := approve("")
	req.Expires, req.Accepts = time.Hour, []string{"a line"}
	given := must[approver.Given](t)(w.approvals().Give(t.Context(), req))
	a := given.Approval
	if given.Environment != "prod" || given.From != "staging" || given.Version != "1.0.0" || given.Release != release.Digest || given.Evidence == "" {
		t.Errorf("given %+v, want the head of staging, approved for prod", given)
	}
	if a.ResourceURI != "oci://local/prod/"+registrytest.Model || a.Comment != "tried it" || !slices.Equal(a.Accepts, req.Accepts) ||
		a.ExpiresOn.Sub(a.ApprovedOn) != time.Hour || a.Withdrawn {
		t.Errorf("approval %+v, want what the request says", a)
	}
	if given.Requirement == nil || !given.Requirement.Met {
		t.Errorf("requirement %+v, want one that is met by this approval", given.Requirement)
	}
	w.approved(t, release, evidence.ApprovalStands)

	req = approve(string(release.Digest))
	req.Withdraw = true
	back := must[approver.Given](t)(w.approvals().Give(t.Context(), req))
	if !back.Approval.ExpiresOn.IsZero() || back.Requirement == nil || back.Requirement.Met {
		t.Errorf("after the withdrawal: %+v, want no expiry and a requirement that is not met", back)
	}
	w.approved(t, release, evidence.ApprovalWithdrawn)
	_, err := w.approvals().Give(t.Context(), req)
	wantError(t, "a second withdrawal", err, registry.CodeNotFound, "no approval of vision/digits 1.0.0 for prod stands")
}

// approved wants one approval of a release in staging, in a state.
func (w *world) approved(t *testing.T, r artifact.Release, want evidence.ApprovalState) {
	t.Helper()
	claims, _, err := w.Claims(t.Context(), "staging", r)
	if err != nil {
		t.Fatal(err)
	}
	if all := evidence.Approvals(r, claims, time.Now()); len(all) != 1 || all[0].State != want {
		t.Errorf("approvals %+v, want one that is %s", all, want)
	}
}

// An environment that asks for no approvals takes them, and has no requirement to show.
func TestGiveWhereNoneIsAsked(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	w.Build(t, registrytest.Build{})
	given := must[approver.Given](t)(w.approvals().Give(t.Context(), approve("")))
	if given.Requirement != nil || given.Evidence == "" {
		t.Errorf("given %+v, want evidence without a requirement", given)
	}
}

// An approval of another model's promotion, or of one that expired, cannot be withdrawn.
func TestWithdrawWhatDoesNotStand(t *testing.T) {
	t.Parallel()
	w := setup(t, asking)
	w.Build(t, registrytest.Build{})
	req := approve("")
	req.Expires = time.Hour
	must[approver.Given](t)(w.approvals().Give(t.Context(), req))
	late := w.approvals()
	late.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	_, err := late.Give(t.Context(), approver.Request{Environment: "prod", Model: registrytest.Model, Comment: "found something", Withdraw: true})
	wantError(t, "an expired approval", err, registry.CodeNotFound, "nothing to withdraw")

	other := w.approvals()
	other.Environments.Registry = "other" // the approval that stands is for another resource
	_, err = other.Give(t.Context(), approver.Request{Environment: "prod", Model: registrytest.Model, Comment: "found something", Withdraw: true})
	wantError(t, "an approval for another resource", err, registry.CodeNotFound, "nothing to withdraw")
}

// A break-glass statement names the head that it lets be replaced, and what may be skipped. It can be taken back while it counts.
func TestBreakGlass(t *testing.T) {
	t.Parallel()
	w := setup(t, asking)
	release := w.Build(t, registrytest.Build{})
	req := approve("")
	req.Expires, req.BreakGlass = time.Hour, []string{policy.RequireParity}
	given := must[approver.Given](t)(w.approvals().Give(t.Context(), req))
	b := given.BreakGlass
	if b == nil || given.Requirement != nil || given.Evidence == "" {
		t.Fatalf("given %+v, want a break-glass statement without a requirement", given)
	}
	if len(b.Replaces) > 0 || !slices.Equal(b.Skips, req.BreakGlass) || b.Comment != "tried it" || b.ExpiresOn.Sub(b.ApprovedOn) != time.Hour {
		t.Errorf("statement %+v, want what the request says, and no head", b)
	}
	w.Prove(t, release)
	approval := must[approver.Given](t)(w.approvals().Give(t.Context(), approve("")))
	if approval.BreakGlass != nil {
		t.Errorf("an approval without requirements to skip has the statement %+v", approval.BreakGlass)
	}
	withdraw := approver.Request{Environment: "prod", Model: registrytest.Model, Comment: "not needed", Withdraw: true}
	must[approver.Given](t)(w.approvals().Give(t.Context(), withdraw)) // of the approval
	must[approver.Given](t)(w.approvals().Give(t.Context(), withdraw)) // of the break-glass statement, which still counts
	late := w.approvals()
	late.Now = func() time.Time { return b.ExpiresOn }
	_, err := late.Give(t.Context(), withdraw)
	wantError(t, "when both have ended", err, registry.CodeNotFound, "nothing to withdraw")
	other := w.approvals()
	other.Environments.Registry = "other"
	_, err = other.Give(t.Context(), withdraw)
	wantError(t, "of another resource", err, registry.CodeNotFound, "nothing to withdraw")
}

// A break-glass statement names the head of the destination, if there is one.
func TestBreakGlassReplacesTheHead(t *testing.T) {
	t.Parallel()
	w := setup(t, func(prod *policy.Environment) { prod.BreakGlass = []string{policy.RequireParity} })
	head := w.Promoted(t, registrytest.Build{})
	w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "second"})
	req := approve("1.1.0")
	req.Expires, req.BreakGlass = time.Hour, []string{policy.RequireParity}
	given := must[approver.Given](t)(w.approvals().Give(t.Context(), req))
	if got := given.BreakGlass.Replaces.SHA256(); got != head.Digest {
		t.Errorf("the statement replaces %s, want the head %s", got, head.Digest)
	}
}

// What an environment does not let be skipped is refused, with what it does.
func TestBreakGlassRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed []string
		skip    string
		says    string
	}{
		"nothing may be skipped": {nil, policy.RequireParity, `prod does not let "parity" be skipped: none`},
		"another may be skipped": {[]string{policy.RequireNoLooser, policy.RequireParity}, "approvals", `"approvals" be skipped: no-looser, parity`},
	} {
		w := setup(t, func(prod *policy.Environment) { prod.BreakGlass = c.allowed })
		w.Build(t, registrytest.Build{})
		req := approve("")
		req.Expires, req.BreakGlass = time.Hour, []string{c.skip}
		_, err := w.approvals().Give(t.Context(), req)
		wantError(t, name, err, registry.CodeInvalid, c.says)
	}
	w := setup(t, asking)
	w.Build(t, registrytest.Build{})
	req := approve("")
	req.BreakGlass = []string{policy.RequireParity}
	_, err := w.approvals().Give(t.Context(), req)
	wantError(t, "without an expiry", err, registry.CodeInvalid, "want it to expire")
	req.Expires = time.Hour
	byService := w.approvals()
	byService.Attest = func(context.Context, evidence.AttestRequest) (evidence.Attested, error) {
		return evidence.Attested{}, nil
	}
	_, err = byService.Give(t.Context(), req)
	wantError(t, "by the service", err, registry.CodeInvalid, "break-glass needs the key of an approver")
	w.failing("heads", "prod", registry.CodeUnavailable)
	_, err = w.approvals().Give(t.Context(), req)
	wantError(t, "where heads cannot be read", err, registry.CodeUnavailable, "heads fails")
}

// Where the service signs for people, it gets the whole request, and the answer names the person.
func TestGiveByTheService(t *testing.T) {
	t.Parallel()
	w := setup(t, asking)
	release := w.Build(t, registrytest.Build{})
	var asked []evidence.AttestRequest
	person := evidence.Person{Issuer: "https://issuer.example", Subject: "1"}
	a := w.approvals()
	a.Attest = func(_ context.Context, r evidence.AttestRequest) (evidence.Attested, error) {
		asked = append(asked, r)
		return evidence.Attested{Evidence: release.Limits, Person: person}, nil
	}
	req := approve("")
	req.Expires, req.Accepts = time.Hour, []string{"a line"}
	given := must[approver.Given](t)(a.Give(t.Context(), req))
	if given.Evidence != release.Limits || given.Approval.Person == nil || *given.Approval.Person != person {
		t.Errorf("given %+v, want the evidence and the person of the answer", given)
	}
	want := evidence.AttestRequest{Kind: evidence.AttestApproval, Environment: "prod", Model: registrytest.Model, Release: release.Digest,
		Comment: "tried it", Expires: given.Approval.ExpiresOn, Accepts: req.Accepts}
	if len(asked) != 1 || !slices.Equal(asked[0].Accepts, want.Accepts) || !asked[0].Expires.Equal(want.Expires) || asked[0].Expires.IsZero() ||
		asked[0].Kind != want.Kind || asked[0].Environment != "prod" || asked[0].Release != want.Release || asked[0].Comment != want.Comment {
		t.Errorf("the service was asked %+v, want %+v", asked, want)
	}
	must[approver.Given](t)(w.approvals().Give(t.Context(), approve(""))) // with a key, so that there is something to withdraw
	must[approver.Given](t)(a.Give(t.Context(), approver.Request{Environment: "prod", Model: registrytest.Model, Comment: "x", Withdraw: true}))
	if asked[1].Kind != evidence.AttestWithdrawal {
		t.Errorf("the service was asked %+v, want a withdrawal", asked[1])
	}
	a.Attest = func(context.Context, evidence.AttestRequest) (evidence.Attested, error) {
		return evidence.Attested{}, registry.Errorf(registry.CodeForbidden, "you are not listed")
	}
	_, err := a.Give(t.Context(), req)
	wantError(t, "who may not", err, registry.CodeForbidden, "you are not listed")
}

// Where it is not known whether an approval stands, nothing is withdrawn.
func TestWithdrawWithoutClaims(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	w.Build(t, registrytest.Build{})
	must[approver.Given](t)(w.approvals().Give(t.Context(), approve("")))
	w.failing("claims", "staging", registry.CodeUnavailable)
	given, err := w.approvals().Give(t.Context(), approver.Request{Environment: "prod", Model: registrytest.Model, Comment: "x", Withdraw: true})
	wantError(t, "a withdrawal", err, registry.CodeUnavailable, "claims fails")
	if given.Evidence != "" {
		t.Errorf("given %+v, want nothing attached", given)
	}
}

// Errors keep their codes, and nothing is attached after one.
func TestGiveFails(t *testing.T) {
	t.Parallel()
	w := setup(t, asking)
	release := w.Build(t, registrytest.Build{})
	_, err := w.approvals().Give(t.Context(), approver.Request{Environment: "staging", Model: registrytest.Model, Comment: "x"})
	wantError(t, "the first environment", err, registry.CodeInvalid, "staging")
	_, err = w.approvals().Give(t.Context(), approve("9.9.9"))
	wantError(t, "no such release", err, registry.CodeNotFound, "9.9.9")
	bad := approve("")
	bad.Comment = ""
	_, err = w.approvals().Give(t.Context(), bad)
	wantError(t, "no comment", err, registry.CodeInvalid, "comment")
	locked := w.approvals()
	locked.Sign = registrytest.NewKeys(nil).Sign
	_, err = locked.Give(t.Context(), approve(""))
	wantError(t, "without a key", err, registry.CodeUnavailable, "there is no key approver")
	w.failing("attach", "staging", registry.CodeConflict)
	_, err = w.approvals().Give(t.Context(), approve(""))
	wantError(t, "attach fails", err, registry.CodeConflict, "attach fails")
	w.failing("claims", "staging", registry.CodeUnavailable)
	withdraw := approve("")
	withdraw.Withdraw = true
	_, err = w.approvals().Give(t.Context(), withdraw)
	wantError(t, "a withdrawal where claims fail", err, registry.CodeUnavailable, "claims fails")
	given, err := w.approvals().Give(t.Context(), approve(""))
	wantError(t, "an approval where claims fail", err, registry.CodeUnavailable, "claims fails")
	if given.Evidence == "" {
		t.Error("the approval was attached, and what was given does not name it")
	}
	w.failing("", "", "")
	claims, _, err := w.Claims(t.Context(), "staging", release)
	if err != nil || len(evidence.Approvals(release, claims, time.Now())) != 1 {
		t.Errorf("claims %+v, error %v, want the one approval that was attached", claims, err)
	}
}
