package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// keyState changes the state of the key of a role. A retired key is retired before
// anything of a world happened.
func keyState(role evidence.Role, state evidence.KeyState) func(c *backend.Backend) {
	return func(c *backend.Backend) {
		verify := c.Verify
		c.Verify = func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
			claim, err := verify(ctx, bundle, resource)
			if err == nil && len(claim.Roles) == 1 && claim.Roles[0] == role {
				claim.Key = state
				if state == evidence.KeyRetired {
					claim.RetiredAt = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
				}
			}
			return claim, err
		}
	}
}

// after is the service of a world after its operator changed something.
func (w *world) after(t *testing.T, edits ...func(c *backend.Backend)) *service.Service {
	t.Helper()
	config := w.config
	config.Environments.List = append([]policy.Environment{}, config.Environments.List...)
	for _, edit := range edits {
		edit(&config)
	}
	s, err := service.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// require adds to what prod asks for.
func require(names ...string) func(c *backend.Backend) {
	return func(c *backend.Backend) {
		c.Environments.List[1].Require = append(policy.DefaultRequire(), names...)
	}
}

// What an operator asks of the next promotion empties no environment.
func TestAdmissionEmptiesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	for name, edit := range map[string]func(c *backend.Backend){
		"a requirement was added": require(policy.RequireReproducibleBytes, policy.RequireRecordedCases),
		"verifier's key retired":  keyState(evidence.RoleVerifier, evidence.KeyRetired),
		"verifier's key revoked":  keyState(evidence.RoleVerifier, evidence.KeyRevoked),
		"builder's key retired":   keyState(evidence.RoleBuilder, evidence.KeyRetired),
		"approver's key revoked":  keyState(evidence.RoleApprover, evidence.KeyRevoked),
	} {
		s := w.after(t, edit)
		for _, version := range []string{"", "1.0.0"} {
			if _, err := s.Resolve(t.Context(), prod(version)); err != nil {
				t.Errorf("%s: resolve of version %q: %v", name, version, err)
			}
		}
		if p, err := s.Rollback(t.Context(), api.RollbackRequest{Environment: "prod",
			Model: registrytest.Model, Reason: "x", DryRun: true}); err != nil || p.Release != first.Digest {
			t.Errorf("%s: rollback to %s, error %v; want %s", name, p.Release, err, first.Digest)
		}
		if p, err := s.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.1.0"}); err != nil || !p.Unchanged {
			t.Errorf("%s: promote what is there: %+v, error %v", name, p, err)
		}
	}
	w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	if _, err := w.after(t, require(policy.RequireReproducibleBytes)).Promote(t.Context(),
		api.PromoteRequest{Model: registrytest.Model}); registry.CodeOf(err) != registry.CodePolicy {
		t.Errorf("promote what lacks the new requirement: %v, want CodePolicy", err)
	}
}

// Keys that were revoked take what they allowed with them, and nothing that they refused.
func TestRevocation(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	for role, says := range map[evidence.Role]string{evidence.RoleBuilder: "signature of", evidence.RolePromoter: "no verification summary"} {
		s := w.after(t, keyState(role, evidence.KeyRevoked))
		if _, err := s.Resolve(t.Context(), prod("")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("resolve after the %s's key was revoked: %v, want %q", role, err, says)
		}
	}
	w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, struct{}{})
	for _, state := range []evidence.KeyState{evidence.KeyTrusted, evidence.KeyRetired, evidence.KeyRevoked} {
		s := w.after(t, keyState(evidence.RoleApprover, state))
		if _, err := s.Resolve(t.Context(), prod("")); err == nil || !strings.Contains(err.Error(), "in quarantine") {
			t.Errorf("resolve of what an approver put into quarantine, whose key is %s: %v", state, err)
		}
		if _, err := s.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.CodeOf(err) != registry.CodePolicy ||
			!strings.Contains(err.Error(), "in quarantine") {
			t.Errorf("promote what an approver put into quarantine, whose key is %s: %v", state, err)
		}
	}
}

// An engine that failed since does not keep an operator from the others.
func TestRollbackToAnEngineThatFailed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	e := first.Engines[0]
	w.AttachTo(t, "prod", first, e.Digest, evidence.PredicateParity, registrytest.Report(first, e, evidence.VerdictFail))
	p, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"})
	if err != nil || p.Release != first.Digest || len(p.Warnings) == 0 || !strings.Contains(p.Warnings[0], e.Label()) {
		t.Errorf("rollback: %+v, error %v; want a warning about %s", p, err, e.Label())
	}
}
