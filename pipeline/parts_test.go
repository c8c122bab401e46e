//go:build cgo

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// twoTargets has an engine for each of two machines, and the label of the runners of one.
const twoTargets = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
variants: [fp32]
targets: [linux/amd64/v1, {name: wide, os: linux, cpu: {arch: amd64, level: v3}, runner: gpu-l4}]
`

const narrow, wide = "linux-amd64-v1", "wide"

func of(targets ...string) build.Options { return build.Options{Targets: targets} }

// at says that the world's files are of a commit.
func (w *world) at(commit string) {
	w.p.Origin = func(context.Context, string, []string) (*evidence.Origin, error) {
		return &evidence.Origin{Git: evidence.GitOrigin{Commit: commit, State: evidence.GitClean}}, nil
	}
}

func (w *world) assembled(t *testing.T) build.AssembleResult {
	t.Helper()
	result, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
	if err != nil {
		t.Fatalf("assemble: %v", err)
	}
	return result
}

// missing wants an assembly that lacks the engines of targets, and returns its error.
func (w *world) missing(t *testing.T, labels ...string) error {
	t.Helper()
	result, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
	var got []string
	for _, m := range result.Missing {
		got = append(got, m.Label)
	}
	if registry.ExitCode(err) != registry.ExitAgain || !slices.Equal(got, labels) {
		t.Fatalf("missing %q, error %v; want %q and exit code 9", got, err, labels)
	}
	if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
		t.Fatalf("heads %v, error %v; want none", heads, err)
	}
	return err
}

// Parts that two machines build make the release that one machine builds of the same sources: each engine once, signed,
// with one run of the reference.
func TestAssemble(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.at("c0ffee")
	first := w.built(t, twoTargets, of(narrow))
	if first.Release.Part == "" || len(first.Release.Engines) != 1 || first.Ref.Tag != "" {
		t.Fatalf("part %+v; want one engine and no tag", first.Release)
	}
	if err := w.missing(t, "wide/fp32"); !strings.Contains(err.Error(), "wide/fp32 (runner gpu-l4)") {
		t.Errorf("error %v, want the label of the runner", err)
	}
	w.steps = nil
	second := w.built(t, twoTargets, of(wide))
	if slices.Contains(w.done(progress.Done), "run the reference") || second.Release.Sources != first.Release.Sources {
		t.Errorf("the second part has sources %s, the first %s; want the same, without a second run", second.Release.Sources, first.Release.Sources)
	}
	made := w.assembled(t)
	if len(made.Release.Engines) != 2 || made.Release.Part != "" || made.Unchanged || len(made.Parts) != 2 || made.Aside != nil {
		t.Fatalf("assembled %+v; want a release of 2 engines from 2 parts", made)
	}
	for name, again := range map[string]func() (registry.Digest, bool){
		"assemble": func() (registry.Digest, bool) { r := w.assembled(t); return r.Release.Digest, r.Unchanged },
		"build": func() (registry.Digest, bool) {
			r := w.built(t, twoTargets, of(wide))
			return r.Release.Digest, r.Unchanged
		},
		"all": func() (registry.Digest, bool) {
			r := w.built(t, twoTargets, build.Options{})
			return r.Release.Digest, r.Unchanged
		},
	} {
		if d, unchanged := again(); d != made.Release.Digest || !unchanged {
			t.Errorf("%s again: %s, unchanged %v; want %s and nothing done", name, d, unchanged, made.Release.Digest)
		}
	}
	w.p.Targets = []string{narrow}
	found, err := verify.Verify(t.Context(), w.p, made.Ref)
	if err != nil || len(found.Engines) != 1 || found.Engines[0].Label != narrow+"/fp32" || found.Skipped != nil {
		t.Errorf("verified %+v, error %v; want the engine of %s alone", found.Engines, err, narrow)
	}
	w.p.Targets = []string{"other"}
	if _, err := verify.Verify(t.Context(), w.p, made.Ref); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("verify of a target that is not there: error %v, want CodeInvalid", err)
	}
}

// filtered is a registry whose history has some of its events alone.
type filtered struct {
	api.Interface
	keep func(history.Event) bool
}

func (f filtered) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	events, err := f.Interface.History(ctx, q)
	return slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool { return !f.keep(e) }), err
}

// Provenance of a release says that it is a part. That of an engine, which other releases may have too, says nothing.
func TestPartsByProvenanceOfTheirReleases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keep  func(history.Event) bool
		found bool
	}{
		"of releases": {func(e history.Event) bool { return e.Subject == e.Release }, true},
		"of engines":  {func(e history.Event) bool { return e.Subject != e.Release }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			for _, target := range []string{narrow, wide} {
				w.built(t, twoTargets, of(target))
			}
			w.p.Registry = filtered{w.Interface, c.keep}
			made, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
			if found := err == nil && len(made.Parts) == 2; found != c.found {
				t.Errorf("assembled %+v, error %v; want parts found: %t", made.Parts, err, c.found)
			}
		})
	}
}

// unanswered is a registry that does not say the first time which release an environment has.
type unanswered struct {
	api.Interface
	asked *bool
}

func (u unanswered) Release(ctx context.Context, environment, model, tag string) (artifact.Release, error) {
	if !*u.asked {
		*u.asked = true
		return artifact.Release{}, registry.Errorf(registry.CodeUnavailable, "the registry does not answer")
	}
	return u.Interface.Release(ctx, environment, model, tag)
}

// Where it is not known which parts are there, no part is built: it could be another release than theirs.
func TestPartsOfARegistryThatFails(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.p.Registry = unanswered{w.Interface, new(bool)}
	_, err := build.Build(t.Context(), w.p, w.spec(t, twoTargets), of(narrow))
	if !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "does not answer") || len(w.done(progress.Done)) != 0 {
		t.Errorf("error %v after %q, want that of the registry before anything is made", err, w.done(progress.Done))
	}
}

// A part is neither published nor promoted, whoever asks.
func TestPartIsNoRelease(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	part := w.built(t, twoTargets, of(narrow))
	_, published := w.Publish(t.Context(), api.Publication{Model: part.Release.Model, Release: part.Release.Digest})
	_, promoted := w.Promote(t.Context(), api.PromoteRequest{Model: part.Release.Model,
		Ref: string(part.Release.Digest), From: "staging", To: "prod"})
	for what, err := range map[string]error{"publish": published, "promote": promoted} {
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "is a part of a release") {
			t.Errorf("%s: error %v, want that it is a part", what, err)
		}
	}
}

// What is not of this spec, of these files and of this commit, built by a trusted builder, is in no release.
func TestAssembleRefusesOtherParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does  func(t *testing.T, w *world) // before the other part is built
		after func(t *testing.T, w *world, part artifact.Release)
		text  string // of the spec that the part is built by
		says  string
	}{
		"another model file": {does: func(t *testing.T, w *world) { w.model(t, 2.5) },
			after: func(t *testing.T, w *world, _ artifact.Release) { w.model(t, 1.5) }, says: "of other files or by another spec"},
		"other limits": {text: twoTargets + "limits: {preset: strict}\n", says: "of other files or by another spec"},
		"another commit": {does: func(_ *testing.T, w *world) { w.at("0ld") },
			after: func(_ *testing.T, w *world, _ artifact.Release) { w.at("c0ffee") }, says: "it was built from commit 0ld"},
		"a builder who is no longer trusted": {after: func(_ *testing.T, w *world, _ artifact.Release) {
			w.Keys.Retrust(slices.DeleteFunc(registrytest.RoleKeys(), func(e trust.TrustEntry) bool { return e.Key == string(evidence.RoleBuilder) }))
		}, says: "no trusted builder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.at("c0ffee")
			if c.does != nil {
				c.does(t, w)
			}
			text := c.text
			if text == "" {
				text = twoTargets
			}
			part := w.built(t, text, of(narrow, wide))
			if c.after != nil {
				c.after(t, w, part.Release)
			}
			if err := w.missing(t, "wide/fp32", narrow+"/fp32"); !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}

// An index that claims to be a part counts only with what a builder says: a verifier's word for it does not, nor does the
// word of a builder about another index.
func TestAssembleRefusesForgedParts(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(t *testing.T, w *world, genuine artifact.Release, engine storage.PartRef) registry.Digest{
		"without a statement": func(t *testing.T, w *world, genuine artifact.Release, engine storage.PartRef) registry.Digest {
			return w.index(t, genuine, genuine.Plan, engine)
		},
		"with another engine and the statement of the genuine one": func(t *testing.T, w *world, genuine artifact.Release, engine storage.PartRef) registry.Digest {
			d := w.index(t, genuine, genuine.Plan, engine)
			if err := w.say(t, evidence.RoleBuilder, genuine, d, w.statementAbout(t, genuine)); !registry.HasCode(err, registry.CodeTrust) {
				t.Errorf("attached with error %v, want CodeTrust", err)
			}
			return d
		},
		"said by a verifier": func(t *testing.T, w *world, genuine artifact.Release, engine storage.PartRef) registry.Digest {
			d := w.index(t, genuine, genuine.Plan, engine)
			if err := w.say(t, evidence.RoleVerifier, genuine, d, w.about(t, w.statementAbout(t, genuine), d)); !registry.HasCode(err, registry.CodeTrust) {
				t.Errorf("attached with error %v, want CodeTrust", err)
			}
			return d
		},
		"said by a builder, with an engine that nobody signed": func(t *testing.T, w *world, genuine artifact.Release, engine storage.PartRef) registry.Digest {
			d := w.index(t, genuine, genuine.Plan, engine)
			if err := w.say(t, evidence.RoleBuilder, genuine, d, w.about(t, w.statementAbout(t, genuine), d)); err != nil {
				t.Fatal(err)
			}
			return d
		},
		"said by a builder, with another plan": func(t *testing.T, w *world, genuine artifact.Release, engine storage.PartRef) registry.Digest {
			d := w.index(t, genuine, genuine.Sources, engine)
			if err := w.say(t, evidence.RoleBuilder, genuine, d, w.about(t, w.statementAbout(t, genuine), d)); err != nil {
				t.Fatal(err)
			}
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			genuine := w.built(t, twoTargets, of(narrow)).Release
			// The same engine with an asset of somebody.
			engine := genuine.Engines[0]
			engine.Target.Name = wide
			other, err := w.Parts.PutPart(t.Context(), "staging/vision/digits",
				storage.Part{Role: artifact.PartEngine, Engine: engine, Model: genuine.Model, Format: "onnx",
					Files: []storage.PartFile{w.modelFile(t)}})
			if err != nil {
				t.Fatal(err)
			}
			forge(t, w, genuine, other)
			w.missing(t, "wide/fp32")
		})
	}
}

// What a builder signed and pushed past every check of its own is looked at before it becomes a release.
func TestAssembleRefusesUnsafeParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inspected bool
		role      artifact.PartKind // that has a pickle more than its files
		code      registry.Code
		says      string
	}{
		"a registry that looks at nothing":              {false, artifact.PartEngine, registry.CodeUnsafe, "weights.bin"},
		"a registry that looks at nothing, in an image": {false, artifact.PartImage, registry.CodeTrust, "is not the image form of engine"},
		"a registry that looked":                        {true, artifact.PartEngine, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.built(t, twoTargets, of(narrow))
			honest := w.p.Parts
			w.p.Parts = tampering{PartStore: honest, roles: make(map[registry.Digest]artifact.PartKind), part: func(p *storage.Part) {
				if p.Role == c.role || c.role == artifact.PartEngine && p.Role == artifact.PartImage {
					p.Files = append(p.Files, fileOf("weights.bin", pickle))
				}
			}}
			w.built(t, twoTargets, of(wide))
			w.p.Parts, w.p.Inspected = honest, c.inspected
			opened := false
			w.p.OpenKey = func(context.Context, evidence.Role, string, string) error { opened = true; return nil }
			_, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
			if c.inspected {
				if err != nil || !opened {
					t.Errorf("got %v, key opened: %t, want the release, since the registry looked", err, opened)
				}
				return
			}
			if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), "wide/fp32") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s with the engine and %q", err, c.code, c.says)
			}
			if opened {
				t.Error("the builder's key was opened for a release that is refused")
			}
			if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
				t.Errorf("heads %v, error %v; want none", heads, err)
			}
		})
	}
}

// Of two engines for one label with different bytes, the first in the history counts, and the other is named.
func TestAssembleTakesTheFirst(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	bytes := "first"
	w.run = func(job toolchain.Job, dir string) error {
		if job.Verb != toolchain.VerbCompile {
			return nil
		}
		return os.WriteFile(filepath.Join(dir, "note.txt"), []byte(bytes), 0o600)
	}
	first := w.duringSign(t, func() (build.Result, error) {
		defer func(was string) { bytes = was }(bytes)
		bytes = "of the other machine"
		return build.Build(t.Context(), setupBeside(w), w.spec(t, twoTargets), of(narrow, wide))
	}, of(narrow))
	made := w.assembled(t)
	for _, e := range first.Release.Engines {
		if _, ok := made.Release.Engine(e.Digest); !ok {
			t.Errorf("the release has no %s %s, which was recorded first", e.Label(), e.Digest)
		}
	}
	late := func(a build.SetAside) bool {
		return a.Label == narrow+"/fp32" && strings.Contains(a.Reason, "built again with other bytes")
	}
	if !slices.ContainsFunc(made.Aside, late) {
		t.Errorf("set aside %+v, want the engine that came second", made.Aside)
	}
}

// A part about which its builder says the same once more is named once.
func TestAssembleNamesAPartOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.at("0ld")
	part := w.built(t, twoTargets, of(narrow)).Release
	if err := w.say(t, evidence.RoleBuilder, part, part.Digest, w.statementAbout(t, part)); err != nil {
		t.Fatal(err)
	}
	w.at("c0ffee")
	made, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
	if registry.ExitCode(err) != registry.ExitAgain || len(made.Aside) != 1 || made.Aside[0].Part != part.Digest {
		t.Errorf("set aside %+v, error %v; want %s once", made.Aside, err, part.Digest)
	}
}

// Machines that build at the same time store two runs of the reference. The first that the history has counts for both.
func TestPartsAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	var late build.Result
	between := w.duringSign(t, func() (build.Result, error) {
		return build.Build(t.Context(), setupBeside(w), w.spec(t, twoTargets), of(wide))
	}, of(narrow))
	late = w.built(t, twoTargets, of(narrow)) // nothing to do: gives what is there
	if between.Release.Sources == "" || !late.Unchanged || late.Release.Sources != between.Release.Sources {
		t.Errorf("sources %s and %s, unchanged %v; want those of the first in the history for both",
			late.Release.Sources, between.Release.Sources, late.Unchanged)
	}
	made := w.assembled(t)
	if made.Release.Sources != between.Release.Sources || len(made.Release.Engines) != 2 {
		t.Errorf("release %+v, want 2 engines and the sources of the first part", made.Release)
	}
}

// duringSign builds, and has another machine build when the first statement is to be signed. It gives what that one made.
func (w *world) duringSign(t *testing.T, other func() (build.Result, error), o build.Options) build.Result {
	t.Helper()
	var once sync.Once
	var made build.Result
	sign := w.p.Sign
	w.p.Sign = func(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
		once.Do(func() {
			w.p.Sign = sign
			var err error
			if made, err = other(); err != nil {
				t.Errorf("the other machine: %v", err)
			}
		})
		return sign(ctx, role, statement)
	}
	w.built(t, twoTargets, o)
	return made
}

// setupBeside is a pipeline of another kind of machine on the registry of a world.
func setupBeside(w *world) *run.Env {
	other := *w.p
	other.Progress = nil
	other.Node = func(ctx context.Context, runtimes map[string]string) (artifact.Node, error) {
		n, err := describedOnce(ctx, runtimes)
		n.CPU.Model = "another processor"
		return n, err
	}
	return &other
}

// Whoever assembles at the same time, the outcome is one release. The one who is late sees it.
func TestAssembleAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.built(t, twoTargets, of(narrow))
	w.built(t, twoTargets, of(wide))
	s := w.spec(t, twoTargets)
	w.p.Progress, w.p.OpenKey = nil, nil
	results := make([]build.AssembleResult, 4)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			var err error
			if results[i], err = build.Assemble(t.Context(), w.p, s); err != nil {
				t.Errorf("assembler %d: %v", i, err)
			}
		})
	}
	group.Wait()
	for i, r := range results {
		if r.Release.Digest != results[0].Release.Digest {
			t.Errorf("assembler %d made %s, and another one %s", i, r.Release.Digest, results[0].Release.Digest)
		}
	}
	events, err := w.History(t.Context(), history.HistoryQuery{Environment: "staging", Kind: history.EventPublish})
	if err != nil || len(events) != 1 {
		t.Errorf("%d publications, error %v; want one", len(events), err)
	}
}

// Jobs that are stopped anywhere and run again make the same release, and nothing is published before all is there.
func TestPartsSurviveStops(t *testing.T) {
	t.Parallel()
	calm := setup(t, 1.5)
	for _, target := range []string{narrow, wide} {
		calm.built(t, twoTargets, of(target))
	}
	want := calm.assembled(t).Release.Digest
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 49))
			w := setup(t, 1.5)
			calls := []func() error{
				func() error { _, err := build.Build(t.Context(), w.p, w.spec(t, twoTargets), of(narrow)); return err },
				func() error { _, err := build.Build(t.Context(), w.p, w.spec(t, twoTargets), of(wide)); return err },
				func() error { _, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets)); return err },
			}
			steady := *w.p
			for _, call := range calls {
				for range 3 {
					*w.p = steady
					f := &faults{at: 1 + random.IntN(40)}
					w.inject(f)
					if err := call(); err == nil {
						break
					} else if !errors.Is(err, errInjected) {
						t.Fatalf("call %d (%s) failed: got error %v, want that one", f.at, f.name, err)
					}
				}
				*w.p = steady
				if err := call(); err != nil {
					t.Fatalf("without a fault: %v", err)
				}
			}
			if r, err := w.Release(t.Context(), "staging", "vision/digits", ""); err != nil || r.Digest != want {
				t.Errorf("release %s, error %v; want %s, as without stops", r.Digest, err, want)
			}
		})
	}
}

// index stores an index that claims to be a part, with one engine.
func (w *world) index(t *testing.T, like artifact.Release, plan registry.Digest, engine storage.PartRef) registry.Digest {
	t.Helper()
	var parts []storage.PartRef
	for role, d := range map[artifact.PartKind]registry.Digest{artifact.PartLimits: like.Limits, artifact.PartInterface: like.Interface} {
		f, err := w.Parts.Fetch(t.Context(), "staging/vision/digits", d, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, storage.PartRef{Role: role, Digest: d, Size: int64(len(f.Manifest))})
	}
	d, err := w.Parts.Assemble(t.Context(), "staging/vision/digits", storage.Assembly{Model: like.Model, Version: like.Version, Revision: 1,
		Sources: like.Sources, Plan: plan, Part: like.Part, Parts: append(parts, engine)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// statementAbout is what the builder says of a part.
func (w *world) statementAbout(t *testing.T, r artifact.Release) evidence.Statement {
	t.Helper()
	claims, _, err := w.Claims(t.Context(), "staging", r)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(claims, func(c evidence.Claim) bool { return c.Subject == r.Digest })
	if at < 0 {
		t.Fatal("nothing is said about the part")
	}
	return claims[at].Statement
}

// about is the same statement about something else.
func (w *world) about(t *testing.T, s evidence.Statement, d registry.Digest) evidence.Statement {
	t.Helper()
	s.Subject = []evidence.StatementSubject{{Name: "vision/digits", Digest: evidence.NewDigestSet(d)}}
	return s
}

// say signs a statement in a role and attaches it to an index.
func (w *world) say(t *testing.T, role evidence.Role, r artifact.Release, d registry.Digest, s evidence.Statement) error {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := w.Keys.Sign(t.Context(), role, data)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: d, Subject: d, Bundle: bundle})
	return err
}

// modelFile is the model of the world as a file of a part.
func (w *world) modelFile(t *testing.T) storage.PartFile {
	t.Helper()
	in, err := toolchain.FileInput(toolchain.RoleModel, "model.onnx", filepath.Join(w.dir, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	return storage.PartFile{File: artifact.File{Path: "model.onnx", Digest: in.Digest, Size: in.Size},
		Open: func() (io.ReadCloser, error) { return in.Open() }}
}
