//go:build cgo

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

var errInjected = errors.New("injected")

// faults fails one call of a registry and its parts.
type faults struct {
	calls int    // made so far
	at    int    // the call that fails; 0: none
	name  string // of the call that failed
}

func (f *faults) next(name string) error {
	f.calls++
	if f.calls != f.at {
		return nil
	}
	f.name = name
	return errInjected
}

// faultyRegistry fails the calls that builds and verifications make.
type faultyRegistry struct {
	api.Interface
	*faults
}

func (r faultyRegistry) Environments(ctx context.Context) (policy.Environments, error) {
	if err := r.next("Environments"); err != nil {
		return policy.Environments{}, err
	}
	return r.Interface.Environments(ctx)
}

func (r faultyRegistry) Release(ctx context.Context, environment, model, ref string) (artifact.Release, error) {
	if err := r.next("Release"); err != nil {
		return artifact.Release{}, err
	}
	return r.Interface.Release(ctx, environment, model, ref)
}

func (r faultyRegistry) Claims(ctx context.Context, environment string,
	release artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	if err := r.next("Claims"); err != nil {
		return nil, evidence.IgnoredEvidence{}, err
	}
	return r.Interface.Claims(ctx, environment, release)
}

func (r faultyRegistry) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	if err := r.next("History"); err != nil {
		return nil, err
	}
	return r.Interface.History(ctx, q)
}

func (r faultyRegistry) Publish(ctx context.Context, p api.Publication) (history.Head, error) {
	if err := r.next("Publish"); err != nil {
		return history.Head{}, err
	}
	return r.Interface.Publish(ctx, p)
}

// faultyParts fails the calls that store and fetch parts.
type faultyParts struct {
	storage.PartStore
	*faults
}

func (p faultyParts) PutPart(ctx context.Context, repository string, part storage.Part) (storage.PartRef, error) {
	if err := p.next("PutPart " + string(part.Role)); err != nil {
		return storage.PartRef{}, err
	}
	return p.PartStore.PutPart(ctx, repository, part)
}

func (p faultyParts) Assemble(ctx context.Context, repository string, a storage.Assembly) (registry.Digest, error) {
	if err := p.next("Assemble"); err != nil {
		return "", err
	}
	return p.PartStore.Assemble(ctx, repository, a)
}

func (p faultyParts) Sources(ctx context.Context, repository string, d registry.Digest) (storage.Sources, error) {
	if err := p.next("Sources"); err != nil {
		return storage.Sources{}, err
	}
	return p.PartStore.Sources(ctx, repository, d)
}

func (p faultyParts) Fetch(ctx context.Context, repository string, part registry.Digest, dir string) (storage.FetchedPart, error) {
	if err := p.next("Fetch"); err != nil {
		return storage.FetchedPart{}, err
	}
	return p.PartStore.Fetch(ctx, repository, part, dir)
}

// inject puts faults between a pipeline and what it works with.
func (w *world) inject(f *faults) {
	w.p.Registry = faultyRegistry{w.p.Registry, f}
	w.p.Parts = faultyParts{w.p.Parts, f}
	sign, node, describe := w.p.Sign, w.p.Node, w.p.Toolchain
	w.p.Sign = func(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
		if err := f.next("Sign"); err != nil {
			return nil, err
		}
		return sign(ctx, role, statement)
	}
	w.p.Node = func(ctx context.Context, runtimes map[string]string) (artifact.Node, error) {
		if err := f.next("Node"); err != nil {
			return artifact.Node{}, err
		}
		return node(ctx, runtimes)
	}
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		if err := f.next("Toolchain"); err != nil {
			return run.Toolchain{}, err
		}
		return describe(ctx, name)
	}
}

// Whichever call fails, a build and a verification end with its error: none is taken for success.
func TestEveryFaultIsAnError(t *testing.T) {
	t.Parallel()
	again := strings.Replace(digits, "1.0.0", "1.1.0", 1)
	for name, do := range map[string]func(w *world, t *testing.T, built build.Result, f *faults) error{
		"build": func(w *world, t *testing.T, _ build.Result, f *faults) error {
			w.inject(f)
			_, err := build.Build(t.Context(), w.p, w.spec(t, again), build.Options{})
			return err
		},
		"verify": func(w *world, t *testing.T, built build.Result, f *faults) error {
			w.inject(f)
			_, err := verify.Verify(t.Context(), w.p, built.Ref)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				w, f := setup(t, 1.5), &faults{at: at}
				built := w.built(t, digits, build.Options{})
				err := do(w, t, built, f)
				switch {
				case at == 0 && (err != nil || f.calls < 10):
					t.Fatalf("%d calls, error %v; want at least 10 and none", f.calls, err)
				case at > f.calls:
					return // every call has failed once
				case at > 0 && !errors.Is(err, errInjected):
					t.Errorf("call %d, %s, failed: got error %v, want that one", at, f.name, err)
				}
			}
		})
	}
}

// Two assets of one name, or an asset with the name of a file of the model, are refused.
func TestAssetsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for assets, want := range map[string]string{
		"labels.txt":           "",
		"labels.txt, more.txt": "",
		"more/model.onnx":      "two files of the engine would be called model.onnx",
	} {
		t.Run(assets, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			if err := os.Mkdir(filepath.Join(w.dir, "more"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"labels.txt", "more.txt", "more/labels.txt", "more/model.onnx"} {
				if err := os.WriteFile(filepath.Join(w.dir, name), []byte("cat\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := build.Plan(t.Context(), w.p, w.spec(t, fmt.Sprintf("%sassets: [%s]\n", digits, assets)))
			if (err == nil) != (want == "") || err != nil && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), want)) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}
