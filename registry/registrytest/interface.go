package registrytest

import (
	"context"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Registry is a registry under test, with what stands behind it. Its environments come
// from [Chain].
type Registry struct {
	api.Interface
	Parts storage.PartStore // the content of the first environment, where builds write
	Keys  *Keys             // the keys of [RoleKeys], which the registry trusts
	// Caller is who sends all requests, over a network. Zero: a request is of the principal of its context.
	Caller evidence.Person
}

// Chain is staging -> prod with the requirements that are the default.
func Chain() policy.Environments {
	return policy.Environments{
		Registry: "local", Trust: RoleKeys(), Digest: d("environments.yaml"),
		List: []policy.Environment{{Name: "staging"}, {Name: "prod", From: "staging", Require: policy.DefaultRequire()}},
	}
}

// TestInterface is the contract of [api.Interface], as it is seen through one:
// in the same process or over a network.
func TestInterface(t *testing.T, open func(t *testing.T) Registry) {
	for name, test := range map[string]func(*testing.T, Registry){
		"environments":            testEnvironments,
		"publish":                 testPublish,
		"attach":                  testAttach,
		"attach to image":         testAttachToImage,
		"attach refuses":          testAttachRefuses,
		"attach figures":          testAttachFigures,
		"attach from the future":  testAttachFromTheFuture,
		"recorded claims":         testRecordedClaims,
		"inspect":                 testInspect,
		"promote":                 testPromote,
		"promote again":           testPromoteAgain,
		"replaces":                testReplaces,
		"promote dry run":         testPromoteDryRun,
		"promote without proof":   testPromoteWithoutProof,
		"promote what is unknown": testPromoteUnknown,
		"version is taken":        testVersionTaken,
		"approval":                testApproval,
		"attest":                  testAttest,
		"attest forged":           testAttestForged,
		"quarantine":              testQuarantine,
		"restrict":                testRestrict,
		"restrict refuses":        testRestrictRefuses,
		"rollback":                testRollback,
		"rollback warns":          testRollbackWarns,
		"rollback refuses":        testRollbackRefuses,
		"hold of a rollback":      testHoldOfRollback,
		"hold":                    testSetHold,
		"texts":                   testTexts,
		"models":                  testModels,
		"releases":                testReleases,
		"engine and bundle":       testSingles,
		"history pages":           testHistoryPages,
		"resolve":                 testResolve,
		"resolve in prod":         testResolveProtected,
		"resolve what failed":     testResolveWithheld,
		"resolve image":           testResolveImage,
		"resolve nothing":         testResolveNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// Build stores a release, publishes it and reads it.
func (r Registry) Build(t testing.TB, b Build) artifact.Release {
	t.Helper()
	b = b.withDefaults()
	built := b.Store(t, r.Parts)
	if _, err := r.Publish(t.Context(), api.Publication{Model: b.Model, Release: built}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	release, err := r.Release(t.Context(), "staging", b.Model, "")
	if err != nil {
		t.Fatalf("read the published release: %v", err)
	}
	return release
}

// Bundle is a signed statement about subjects.
func (r Registry) Bundle(t testing.TB, key, predicateType string, predicate any, subjects ...registry.Digest) []byte {
	t.Helper()
	var named []evidence.StatementSubject
	for _, subject := range subjects {
		named = append(named, evidence.StatementSubject{Digest: evidence.NewDigestSet(subject)})
	}
	statement, err := evidence.NewStatement(predicateType, predicate, named...)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := r.Keys.SignAs(context.WithoutCancel(t.Context()), key, statement)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// AttachTo signs a statement about one subject in the role for its predicate type and
// attaches it in an environment. It returns the digest of the bundle's manifest.
func (r Registry) AttachTo(t testing.TB, environment string, release artifact.Release,
	subject registry.Digest, predicateType string, predicate any) registry.Digest {
	t.Helper()
	role, _ := evidence.RoleFor(predicateType)
	stored, err := r.Attach(t.Context(), api.Attachment{
		Environment: environment, Model: release.Model, Release: release.Digest, Subject: subject,
		Bundle: r.Bundle(t, string(role), predicateType, predicate, subject),
	})
	if err != nil {
		t.Fatalf("attach %s in %s: %v", predicateType, environment, err)
	}
	return stored
}

// Report is a parity report of an engine that counts, with a verdict.
func Report(release artifact.Release, e artifact.Engine, v evidence.Verdict) evidence.ParityReport {
	return evidence.ParityReport{
		ReportHead: evidence.ReportHead{
			Verdict: v, StartedOn: measured(), FinishedOn: measured(), Node: Node("v4"),
			Limits: evidence.NewDigestSet(release.Limits), Sources: evidence.NewDigestSet(release.Sources), Reference: evidence.NewDigestSet(e.Reference),
			Runtime: evidence.RuntimeUsed{Name: "onnxruntime", Version: "1.30.0", Library: evidence.NewDigestSet(digest.FromString("library"))},
		},
		Cases: evidence.CasesRun{Count: 5, Ran: 5, Origin: artifact.OriginRecorded}, Rules: evidence.ReportRules,
	}
}

// Seeing makes a report record that its verifier saw all events of the model until
// now, so that it heals the failures until now if it passes.
func (r Registry) Seeing(t testing.TB, report evidence.ParityReport) evidence.ParityReport {
	t.Helper()
	last, err := r.History(t.Context(), history.HistoryQuery{Model: Model, Descending: true, Limit: 1})
	if err != nil || len(last) != 1 {
		t.Fatalf("the newest event of %s: %v, error %v", Model, last, err)
	}
	report.History = evidence.NewDigestSet(last[0].Hash)
	return report
}

// measured is when reports say that they were made: before any clock of a test.
func measured() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }

// Sign attaches signatures and provenance, like a build.
func (r Registry) Sign(t testing.TB, release artifact.Release) {
	t.Helper()
	for _, s := range release.Subjects() {
		r.AttachTo(t, "staging", release, s.Digest, evidence.PredicateSign, struct{}{})
	}
	for _, e := range release.Engines {
		r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateProvenance, struct{}{})
	}
}

// Prove attaches all that prod asks for.
func (r Registry) Prove(t testing.TB, release artifact.Release) {
	t.Helper()
	r.Sign(t, release)
	for _, e := range release.Engines {
		r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, Report(release, e, evidence.VerdictPass))
	}
}

// Promoted is a release that was built, proven and promoted to prod.
func (r Registry) Promoted(t testing.TB, b Build) artifact.Release {
	t.Helper()
	release := r.Build(t, b)
	r.Prove(t, release)
	if _, err := r.Promote(t.Context(), api.PromoteRequest{Model: release.Model}); err != nil {
		t.Fatalf("promote %s: %v", release.Tag(), err)
	}
	return release
}
