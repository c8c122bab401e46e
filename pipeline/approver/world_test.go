package approver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// world is the real service over content in memory. Fail is asked before each call, and may let it fail.
type world struct {
	registrytest.Registry
	envs      policy.Environments
	nodeTypes storage.NodeTypes
	nodes     []storage.NodeReport
	fail      func(call, environment, what string) error
}

// setup is staging -> prod, with changes of prod.
func setup(t *testing.T, change func(prod *policy.Environment)) *world {
	t.Helper()
	db, blobs := mem.New(), mem.NewBlobs()
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	keys, envs := registrytest.NewKeys(registrytest.RoleKeys()), registrytest.Chain()
	if change != nil {
		change(&envs.List[1])
	}
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       envs, Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Verify: keys.Verify, Sign: keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{envs: envs, nodeTypes: mem.NewTable[artifact.Node](), fail: func(string, string, string) error { return nil }}
	w.Registry = registrytest.Registry{Interface: faulty{svc, w}, Parts: content, Keys: keys}
	return w
}

func (w *world) quarantiner() approver.Quarantiner {
	return approver.Quarantiner{Registry: w.Interface, Environments: w.envs, Sign: w.Keys.Sign, Now: time.Now}
}

func (w *world) approvals() approver.Approvals {
	return approver.Approvals{Registry: w.Interface, Environments: w.envs, Sign: w.Keys.Sign, Now: time.Now}
}

func (w *world) restricter() approver.Restricter {
	return approver.Restricter{
		Registry: w.Interface, Environments: w.envs, NodeTypes: w.nodeTypes, Sign: w.Keys.Sign, Nodes: reports{w: w}, Now: time.Now,
		Key: func(context.Context) (string, error) { return w.Keys.KeyID("approver"), nil },
	}
}

// state attaches provenance to each engine of a release in staging, so that it is known what they were made with.
func (w *world) state(t *testing.T, r artifact.Release) {
	t.Helper()
	for _, e := range r.Engines {
		w.AttachTo(t, "staging", r, e.Digest, evidence.PredicateProvenance, map[string]any{"buildDefinition": map[string]any{
			"buildType": restriction.BuildType, "internalParameters": map[string]any{"toolchain": e.Toolchain},
		}})
	}
}

// promoted is a release in prod of which is known what it was made with.
func (w *world) promoted(t *testing.T, b registrytest.Build) artifact.Release {
	t.Helper()
	release := w.Build(t, b)
	w.Prove(t, release)
	w.state(t, release)
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: release.Model}); err != nil {
		t.Fatal(err)
	}
	return release
}

// failing lets one call fail, everywhere or where its environment or subject is named.
func (w *world) failing(call, where string, code registry.Code) {
	w.fail = func(c, environment, what string) error {
		if c == call && (where == "" || where == environment || where == what) {
			return registry.Errorf(code, "%s fails", call)
		}
		return nil
	}
}

// faulty is a registry of which calls may fail.
type faulty struct {
	api.Interface
	w *world
}

func (f faulty) Release(ctx context.Context, environment, model, tag string) (artifact.Release, error) {
	if err := f.w.fail("release", environment, tag); err != nil {
		return artifact.Release{}, err
	}
	return f.Interface.Release(ctx, environment, model, tag)
}

func (f faulty) Claims(ctx context.Context, environment string, r artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	if err := f.w.fail("claims", environment, string(r.Digest)); err != nil {
		return nil, evidence.IgnoredEvidence{}, err
	}
	return f.Interface.Claims(ctx, environment, r)
}

func (f faulty) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	if err := f.w.fail("heads", environment, model); err != nil {
		return nil, err
	}
	return f.Interface.Heads(ctx, environment, model)
}

func (f faulty) Models(ctx context.Context, environment, after string, _ int) (storage.Page[history.ModelHeads], error) {
	if err := f.w.fail("models", environment, after); err != nil {
		return storage.Page[history.ModelHeads]{}, err
	}
	return f.Interface.Models(ctx, environment, after, 1) // so that every list has several pages
}

func (f faulty) Releases(ctx context.Context, environment, model, after string, _ int) (storage.Page[storage.TaggedRelease], error) {
	if err := f.w.fail("releases", environment, after); err != nil {
		return storage.Page[storage.TaggedRelease]{}, err
	}
	return f.Interface.Releases(ctx, environment, model, after, 1)
}

func (f faulty) Attach(ctx context.Context, a api.Attachment) (registry.Digest, error) {
	if err := f.w.fail("attach", a.Environment, string(a.Subject)); err != nil {
		return "", err
	}
	return f.Interface.Attach(ctx, a)
}

func (f faulty) Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error) {
	if err := f.w.fail("restrictions", environment, ""); err != nil {
		return restriction.SignedRestrictions{}, err
	}
	return f.Interface.Restrictions(ctx, environment)
}

func (f faulty) Restrict(ctx context.Context, environment string, bundle []byte) (restriction.SignedRestrictions, error) {
	if err := f.w.fail("restrict", environment, ""); err != nil {
		return restriction.SignedRestrictions{}, err
	}
	return f.Interface.Restrict(ctx, environment, bundle)
}

// reports are those of the world's nodes, of which none is silent.
type reports struct {
	storage.NodeReporter
	w *world
}

func (r reports) NodeReports(_ context.Context, environment, model, _ string, _ int) (storage.Page[storage.NodeReport], error) {
	var page storage.Page[storage.NodeReport]
	if err := r.w.fail("nodes", environment, model); err != nil {
		return page, err
	}
	for _, n := range r.w.nodes {
		if n.Environment == environment {
			page.Items = append(page.Items, n)
		}
	}
	return page, nil
}

func (reports) SilentNodes(context.Context, string, string, string, int) (storage.Page[storage.NodeReport], error) {
	return storage.Page[storage.NodeReport]{}, nil
}

// wantError wants an error with a code, or with part of a text.
func wantError(t *testing.T, what string, err error, code registry.Code, says string) {
	t.Helper()
	if !registry.HasCode(err, code) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: error %v, want one with code %s that says %q", what, err, code, says)
	}
}

// must ends the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
