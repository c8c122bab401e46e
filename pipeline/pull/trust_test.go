package pull_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// A folder has no history, so the time that a summary names decides whether its key counted then.
func TestCheckByARetiredKey(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	proof, err := w.Check(t.Context(), w.dir, pull.Expectation{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		state   evidence.KeyState
		retired time.Duration // after the promotion
		text    string        // of the error; empty for none
	}{
		"retired later":   {evidence.KeyRetired, time.Second, ""},
		"retired earlier": {evidence.KeyRetired, -time.Second, "no verification summary of a trusted promoter"},
		"revoked":         {evidence.KeyRevoked, 0, "no verification summary of a trusted promoter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker := w.Checker
			checker.Verify = func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
				claim, err := w.Verify(ctx, bundle, resource)
				if claim.Signer == proof.Promoter {
					claim.Key, claim.RetiredAt = c.state, proof.Promoted.Add(c.retired)
				}
				return claim, err
			}
			_, err := checker.Check(t.Context(), w.dir, pull.Expectation{})
			if (err == nil) != (c.text == "") || err != nil && (registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("error %v (%s), want %q", err, registry.CodeOf(err), c.text)
			}
		})
	}
}

// Evidence that reaches the folder after the pull can speak against the engine. That is not lack
// of trust: whoever loads the engine must tell a bad engine from a folder that somebody changed.
func TestCheckOfAnEngineThatEvidenceSpeaksAgainst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role      evidence.Role
		predicate string
		document  func(artifact.Release, artifact.Engine) any
		text      string
	}{
		"a quarantine": {evidence.RoleApprover, evidence.PredicateQuarantine, func(artifact.Release, artifact.Engine) any {
			return evidence.Quarantine{Reason: "it leaks"}
		}, "quarantine"},
		"a report of a failure": {evidence.RoleVerifier, evidence.PredicateParity, func(r artifact.Release, e artifact.Engine) any {
			return registrytest.Report(r, e, evidence.VerdictFail)
		}, "fail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			release := w.Promoted(t, registrytest.Build{})
			result, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
			if err != nil {
				t.Fatal(err)
			}
			engine, _ := release.Engine(result.Resolution.Engine.Digest)
			bundle := w.Bundle(t, string(c.role), c.predicate, c.document(release, engine), engine.Digest)
			path := w.at(pull.Dir, "bundles", digest.FromBytes(bundle).Encoded()+".sigstore.json")
			if err := os.WriteFile(path, bundle, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = w.Check(t.Context(), w.dir, pull.Expectation{})
			if registry.CodeOf(err) != registry.CodePolicy || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), engine.Label()) {
				t.Errorf("error %v (%s), want CodePolicy that names %s and %q", err, registry.CodeOf(err), engine.Label(), c.text)
			}
			if hints := strings.Join(registry.Hints(err), "\n"); strings.Contains(hints, "mlpromote resolve --explain") != (c.text == "fail") {
				t.Errorf("hints %q: want the way to another engine where a report speaks against this one", hints)
			}
		})
	}
}

// A report that did not pass keeps an engine from machines like the one of the report, and from those that do not say what they are.
func TestCheckOnTheMachineThatLoads(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	for _, e := range release.Engines {
		failed := registrytest.Report(release, e, evidence.VerdictFail)
		failed.Runtime.Version, failed.Node.Runtimes = "1.31.0", map[string]string{"onnxruntime": "1.31.0"}
		w.AttachTo(t, "prod", release, e.Digest, evidence.PredicateParity, failed)
	}
	if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err != nil {
		t.Fatal(err)
	}
	newer := registrytest.Node("v4")
	newer.Runtimes = map[string]string{"onnxruntime": "1.31.0"}
	for name, c := range map[string]struct {
		node artifact.Node
		code registry.Code
	}{
		"like where it passed":        {registrytest.Node("v4"), ""},
		"like where it failed":        {newer, registry.CodePolicy},
		"a machine that says nothing": {artifact.Node{}, registry.CodePolicy},
	} {
		if _, err := w.Check(t.Context(), w.dir, pull.Expectation{Node: c.node}); err == nil != (c.code == "") || err != nil && registry.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want %q", name, err, c.code)
		}
	}
}
