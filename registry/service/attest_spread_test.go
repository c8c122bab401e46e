package service_test

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A quarantine that the service signs for somebody in staging holds in prod only if that caller may
// attest there too, or prod lists the person. The key is the service's, which prod trusts in any case.
func TestAttestedQuarantineSpreads(t *testing.T) {
	t.Parallel()
	in := func(environments ...string) (grants []storage.Grant) {
		for _, e := range environments {
			grants = append(grants, storage.Grant{Permissions: []storage.Permission{storage.PermissionRead, storage.PermissionAttest},
				Environment: e, Model: "**"})
		}
		return grants
	}
	for name, c := range map[string]struct {
		token   string
		grants  []storage.Grant
		reaches bool
	}{
		"may attest in both":               {"eve", in("staging", "prod"), true},
		"may attest in staging":            {"eve", in("staging"), false},
		"may attest in staging, is listed": {"ana", in("staging"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, attestedOf(1))
			r := w.proven(t, registrytest.Build{})
			must(t, w.attest(t, "ana", evidence.AttestApproval, r, nil))
			_, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model})
			must(t, err)
			who := evidence.Person{Principal: "token:" + c.token, Token: c.token}
			caller := storage.WithPrincipal(t.Context(), storage.Principal{Name: who.Principal, Grants: c.grants, Person: who})
			done, err := w.Attest(caller, evidence.AttestRequest{Kind: evidence.AttestQuarantine,
				Environment: "staging", Model: r.Model, Release: r.Digest, Comment: "bad"})
			must(t, err)
			if got := slices.Equal(done.NotIn, []string{"prod"}); got == c.reaches {
				t.Errorf("it does not hold in %q, want prod there: %t", done.NotIn, !c.reaches)
			}
			taken, err := w.service.Bundle(t.Context(), "staging", r.Model, done.Evidence)
			must(t, err)
			_, err = w.Attach(caller, api.Attachment{Environment: "prod", Model: r.Model, Release: r.Digest, Subject: r.Digest, Bundle: taken.Data})
			if (err == nil) != c.reaches || err != nil && !registry.HasCode(err, registry.CodeForbidden) {
				t.Errorf("attached in prod by its person: %v, want that it may: %t", err, c.reaches)
			}
			// Somebody who may promote, and nothing more, brings evidence of staging to prod.
			promoter := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:ci"})
			_, err = w.Promote(promoter, api.PromoteRequest{Model: r.Model})
			t.Logf("promoted again: %v", err)
			claims, _, err := w.Claims(t.Context(), "prod", r)
			must(t, err)
			if got := len(evidence.Quarantines(r, claims, r.Digest)) > 0; got != c.reaches {
				t.Errorf("quarantined in prod: %t, want %t", got, c.reaches)
			}
		})
	}
}
