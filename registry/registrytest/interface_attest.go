package registrytest

import (
	"context"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// caller is who calls, as a statement that the registry attests names them.
func (r Registry) caller(t *testing.T) (context.Context, evidence.Person) {
	t.Helper()
	if r.Caller.Principal != "" {
		return t.Context(), r.Caller
	}
	p := evidence.Person{Principal: "token:admin", Token: "admin"}
	everywhere := storage.Grant{Permissions: []storage.Permission{storage.PermissionAttest}, Environment: "**", Model: "**"}
	return storage.WithPrincipal(t.Context(), storage.Principal{Name: p.Principal, Person: p, Grants: []storage.Grant{everywhere}}), p
}

// A registry signs in the name of who is signed in, and of no one else: a quarantine counts wherever they may speak,
// an approval only where the person is listed.
func testAttest(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	ctx, who := r.caller(t)
	engine := release.Engines[0].Digest
	got, err := r.Attest(ctx, evidence.AttestRequest{Kind: evidence.AttestQuarantine, Environment: "staging", Model: Model, Release: release.Digest,
		Subject: engine, Comment: "wrong at night"})
	must(t, err)
	if got.Person != who || got.Subject != engine || got.Environment != "staging" ||
		got.From != "staging" || got.Version != release.Tag() || got.Release != release.Digest {
		t.Errorf("attested %+v, want a quarantine of %s by %s", got, engine, who)
	}
	for _, environment := range []string{"staging", "prod"} {
		claims, _, err := r.Claims(ctx, environment, release)
		must(t, err)
		quarantines := evidence.Quarantines(release, claims, engine)
		if len(quarantines) != 1 || quarantines[0].Attested() == nil || *quarantines[0].Attested() != who || quarantines[0].Bundle != got.Evidence {
			t.Errorf("%s has the quarantines %+v, want that of %s", environment, quarantines, who)
		}
	}
	recorded := events(t, r, history.EventAttach)
	if last := recorded[len(recorded)-1]; last.Principal != who.Principal || last.Signer != r.Keys.KeyID("attester") ||
		last.Reason != "token admin, according to the service: wrong at night" {
		t.Errorf("the last event is %+v, want one of %s by the attester", last, who.Principal)
	}
	_, err = r.Attest(ctx, evidence.AttestRequest{Kind: evidence.AttestApproval,
		Environment: "prod", Model: Model, Release: release.Digest, Comment: "tried it"})
	refused(t, err, registry.CodePolicy, "prod does not count approvals that the service signs for token admin")
	_, err = r.Attest(ctx, evidence.AttestRequest{Kind: evidence.AttestWithdrawal,
		Environment: "staging", Model: Model, Release: release.Digest, Comment: "x"})
	refused(t, err, registry.CodeInvalid, "want exactly one of: staging to prod")
	_, err = r.Attest(ctx, evidence.AttestRequest{Kind: evidence.AttestWithdrawal,
		Environment: "prod", Model: Model, Release: d("another"), Comment: "x"})
	refused(t, err, registry.CodeNotFound, "")
	_, err = r.Attest(ctx, evidence.AttestRequest{Kind: "lift", Environment: "prod", Model: Model, Release: release.Digest, Comment: "x"})
	refused(t, err, registry.CodeInvalid, "want one of")
	_, err = r.Attest(ctx, evidence.AttestRequest{Kind: evidence.AttestQuarantine,
		Environment: "prod", Model: Model, Release: release.Digest, Comment: strings.Repeat("x", 2000)})
	refused(t, err, registry.CodeInvalid, "want at most")
}

// Nobody else makes statements that name a person in favor of a release, whatever key they have.
func testAttestForged(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	who := evidence.Person{Principal: "token:admin", Token: "admin"}
	for key, says := range map[string]string{"attester": "only the service itself attaches",
		"approver": "is not trusted as attester for oci://local/prod/" + Model} {
		_, err := r.Attach(t.Context(), api.Attachment{Environment: "staging", Model: Model, Release: release.Digest, Subject: release.Digest,
			Bundle: r.Bundle(t, key, evidence.PredicateApproval, evidence.Approval{ResourceURI: "oci://local/prod/" + Model, Comment: "tried it",
				ApprovedOn: measured(), Person: &who}, release.Digest)})
		refused(t, err, registry.CodeTrust, says)
	}
	_, err := r.Attach(t.Context(), api.Attachment{Environment: "staging", Model: Model, Release: release.Digest, Subject: release.Digest,
		Bundle: r.Bundle(t, "attester", evidence.PredicateApproval, evidence.Approval{ResourceURI: "oci://local/prod/" + Model, Comment: "tried it",
			ApprovedOn: measured()}, release.Digest)})
	refused(t, err, registry.CodeTrust, "is not trusted as approver for oci://local/prod/"+Model)
}
