package service_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/trust"
)

// resources limits a role's key to resources with a prefix.
func resources(role evidence.Role, prefix string) func(c *backend.Backend) {
	return func(c *backend.Backend) {
		for i, e := range c.Environments.Trust {
			if e.Key == string(role) {
				c.Environments.Trust[i].Resources = []string{prefix}
			}
		}
	}
}

// promoter changes the trust entry of the promoter.
func promoter(change func(e *trust.TrustEntry)) func(c *backend.Backend) {
	return func(c *backend.Backend) {
		for i, e := range c.Environments.Trust {
			if e.Key == string(evidence.RolePromoter) {
				change(&c.Environments.Trust[i])
			}
		}
	}
}

// Evidence is judged by the trust of the environment that it is to count in.
func TestTrustIsThatOfTheDestination(t *testing.T) {
	t.Parallel()
	w := setup(t, resources(evidence.RoleVerifier, "oci://local/staging/"))
	r := w.proven(t, registrytest.Build{})
	claims, ignored, err := w.Claims(t.Context(), "staging", r)
	if err != nil || ignored.IgnoredCount != 0 || len(claims) != 13 {
		t.Fatalf("in staging: %d claims, ignored %v, error %v", len(claims), ignored, err)
	}
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "parity of") || p.Decision.IgnoredCount != len(r.Engines) {
		t.Errorf("error %v, ignored %v, want CodePolicy for reports that do not count in prod", err, p.Decision.Ignored)
	}
}

// A promoter that prod does not trust moves no head: nobody could resolve what it allows.
func TestPromoterMustBeTrusted(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(c *backend.Backend){
		"nowhere near":    resources(evidence.RolePromoter, "oci://local/staging/"),
		"in another role": promoter(func(e *trust.TrustEntry) { e.Roles = []evidence.Role{evidence.RoleApprover} }),
		"no more":         promoter(func(e *trust.TrustEntry) { e.State = evidence.KeyRevoked }),
		"for what was": promoter(func(e *trust.TrustEntry) {
			e.State, e.RetiredAt = evidence.KeyRetired, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
		}),
	} {
		w := setup(t, edit)
		w.proven(t, registrytest.Build{})
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
		if registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), "promoter") || w.head(t).Release != "" {
			t.Errorf("trusted %s: head %+v, error %v, want CodeTrust and no head", name, w.head(t), err)
		}
		if len(registry.Hints(err)) != 1 {
			t.Errorf("trusted %s: hints %q, want what to do", name, registry.Hints(err))
		}
	}
}

// What a stranger puts beside a release is counted, not copied, and blocks nothing.
func TestJunkIsCountedAndStaysBehind(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.proven(t, registrytest.Build{})
	for _, predicateType := range []string{evidence.PredicateQuarantine, evidence.PredicateParity, "https://example.com/x"} {
		for _, key := range []string{registrytest.Stranger, "builder"} {
			bundle := evidence.Bundle{Data: w.Bundle(t, key, predicateType, struct{}{}, r.Digest)}
			if _, err := w.config.Content.PutEvidence(t.Context(), "staging/"+r.Model, bundle, r.Subjects()[:1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if err != nil || p.Decision.IgnoredCount != 6 {
		t.Fatalf("ignored %+v, error %v, want 6", p.Decision.Ignored, err)
	}
	claims, ignored, err := w.Claims(t.Context(), "prod", r)
	if err != nil || ignored.IgnoredCount != 0 || len(claims) != 13+len(p.VSA) {
		t.Errorf("in prod there are %d claims and %d ignored, error %v", len(claims), ignored.IgnoredCount, err)
	}
}

// A release of one model in the repository of another is not taken for its own.
func TestReleaseOfAnotherModel(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.proven(t, registrytest.Build{Model: "vision/letters"})
	if err := w.config.Content.Copy(t.Context(), "staging/vision/letters", "staging/vision/digits", r, nil); err != nil {
		t.Fatal(err)
	}
	_, err := w.Publish(t.Context(), api.Publication{Model: "vision/digits", Release: r.Digest})
	if registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), "vision/letters") {
		t.Errorf("error %v, want CodeTrust", err)
	}
}

// In a longer chain each step asks for its own proof.
func TestChainOfThree(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *backend.Backend) {
		c.Environments.List = append(c.Environments.List, policy.Environment{Name: "edge", From: "prod", Require: []string{policy.RequireSignature}})
	})
	r := w.proven(t, registrytest.Build{})
	toEdge := api.PromoteRequest{Model: registrytest.Model, To: "edge"}
	if _, err := w.Promote(t.Context(), toEdge); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("before it is in prod: error %v, want CodeNotFound", err)
	}
	for _, to := range []string{"prod", "edge"} {
		p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, To: to})
		if err != nil || p.Release != r.Digest {
			t.Fatalf("to %s: %+v, error %v", to, p, err)
		}
		answer, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: to, Model: registrytest.Model, Node: registrytest.Node("v3")})
		if err != nil || answer.Engine.Label() != "linux-amd64-v3/int8" {
			t.Errorf("resolve in %s: %+v, error %v", to, answer, err)
		}
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("with two edges: error %v, want CodeInvalid", err)
	}
}
