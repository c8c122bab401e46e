package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// host is the registry of external environments.
const host = "registry.example.com"

// external puts the content of environments into another registry.
func external(names ...string) func(c *backend.Backend) {
	return func(c *backend.Backend) {
		c.Inspect = func(context.Context, policy.Located) error { return nil }
		for i, e := range c.Environments.List {
			if slices.Contains(names, e.Name) {
				c.Environments.List[i].Registry = host
			}
		}
	}
}

// faultyMirror is a mirror of which a call may fail.
type faultyMirror struct {
	backend.Mirror
	*faults
}

// Tag counts as a call that changes something: what follows depends on it.
func (m faultyMirror) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	return call(m.faults, func() (registry.Digest, error) { return m.Mirror.Tag(ctx, repository, tag) })
}

func (m faultyMirror) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	return callErr(m.faults, func() error { return m.Mirror.SetTag(ctx, repository, tag, d) })
}

// mirrorMatches compares the tags of an environment's registry with the release.
func (w *world) mirrorMatches(t *testing.T, environment string, r artifact.Release) bool {
	t.Helper()
	for tag, want := range r.Tags() {
		if d, err := w.far.Tag(t.Context(), registry.Repository(environment, r.Model), tag); err != nil || d != want {
			return false
		}
	}
	return true
}

// pending lists the intents that are left.
func (w *world) pending(t *testing.T) []history.Intent {
	t.Helper()
	pending, err := w.db.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pending
}

// Whichever call fails, the head is the old or the new one; where its mirror is behind,
// an intent says so; and a re-run finishes.
func TestMirroredPromotionSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			t.Parallel()
			w, f := faulty(t, external("prod"))
			f.writes = true // that a read fails is no different here
			behind := 0
			old := w.Promoted(t, registrytest.Build{})
			for at, happened := 1, true; happened; at++ {
				next := w.next(t, at)
				f.reset(at, late)
				_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
				happened = err != nil
				f.reset(0, false)
				head := w.head(t).Release
				if head != old.Digest && head != next.Digest {
					t.Fatalf("call %d failed: the head is %s, neither the old nor the new one", at, head)
				}
				if head == next.Digest && !w.mirrorMatches(t, "prod", next) {
					behind++
					if left := w.pending(t); len(left) != 1 || left[0].Release != next.Digest {
						t.Fatalf("call %d failed: the mirror is behind and the intents are %v", at, left)
					}
				}
				p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
				if err != nil || w.head(t).Release != next.Digest || p.Release != next.Digest {
					t.Fatalf("call %d failed: the re-run gives %+v, error %v", at, p, err)
				}
				if left := w.pending(t); len(left) != 0 || !w.mirrorMatches(t, "prod", next) {
					t.Fatalf("call %d failed: after the re-run the intents are %v, and the mirror is whole: %v", at, left, w.mirrorMatches(t, "prod", next))
				}
				old = next
			}
			if behind == 0 {
				t.Error("the mirror was never behind: the test tests nothing")
			}
			w.chained(t)
		})
	}
}

// broken makes a world whose mirror fails from now on, until it is mended.
func broken(t *testing.T, edit func(c *backend.Backend)) (w *world, mend func(bool)) {
	t.Helper()
	m := &switchedMirror{}
	w = setup(t, edit, func(c *backend.Backend) { m.Mirror, c.Mirror = c.Mirror, m })
	return w, func(works bool) { m.off = !works }
}

type switchedMirror struct {
	backend.Mirror
	off bool
}

func (m *switchedMirror) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	if m.off {
		return registry.Errorf(registry.CodeUnavailable, "no route to %s", host)
	}
	return m.Mirror.SetTag(ctx, repository, tag, d)
}

func TestPromotionIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	w, mend := broken(t, external("prod"))
	r := w.proven(t, registrytest.Build{})
	mend(false)
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "prod is at 1.0.0") ||
		!strings.Contains(err.Error(), host) || len(registry.Hints(err)) == 0 {
		t.Errorf("error %v, hints %v, want CodeUnavailable that says where the head is", err, registry.Hints(err))
	}
	if w.head(t).Release != r.Digest || len(p.VSA) == 0 || len(w.pending(t)) != 1 {
		t.Errorf("head %+v, promotion %+v, intents %v", w.head(t), p, w.pending(t))
	}
	if dry, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, DryRun: true}); err != nil || len(w.pending(t)) != 1 {
		t.Errorf("a dry run gives %+v, error %v, and the intents %v: want it to change nothing", dry, err, w.pending(t))
	}
	if answer, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod",
		Model: registrytest.Model, Node: registrytest.Node("v3")}); err != nil || answer.Release != r.Digest {
		t.Errorf("resolve gives %+v, error %v: the head counts, not its mirror", answer, err)
	}
	mend(true)
	p, err = w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if err != nil || !p.Unchanged || !w.mirrorMatches(t, "prod", r) || len(w.pending(t)) != 0 {
		t.Errorf("the re-run gives %+v, error %v; intents %v", p, err, w.pending(t))
	}
	if events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote}); err != nil || len(events) != 1 {
		t.Errorf("there are %d promotions in history, error %v", len(events), err)
	}
}

func TestPublicationIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	w, mend := broken(t, external("staging"))
	built := registrytest.Build{}.Store(t, w.Parts)
	mend(false)
	if _, err := w.Publish(t.Context(), api.Publication{Model: registrytest.Model,
		Release: built}); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("error %v, want CodeUnavailable", err)
	}
	mend(true)
	head, err := w.Publish(t.Context(), api.Publication{Model: registrytest.Model, Release: built})
	r, _ := w.Release(t.Context(), "staging", registrytest.Model, "")
	if err != nil || head.Release != built || !w.mirrorMatches(t, "staging", r) || len(w.pending(t)) != 0 {
		t.Errorf("the head is %+v, error %v; intents %v", head, err, w.pending(t))
	}
}

// The same rollback again means the one that broke off, not one further back.
func TestRollbackIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	w, mend := broken(t, external("prod"))
	var releases []artifact.Release
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		releases = append(releases, w.Promoted(t, registrytest.Build{Version: version, Salt: version}))
	}
	back := api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "it is slow"}
	mend(false)
	if _, err := w.Rollback(t.Context(), back); registry.CodeOf(err) != registry.CodeUnavailable || w.head(t).Release != releases[1].Digest {
		t.Errorf("head %+v, error %v, want CodeUnavailable", w.head(t), err)
	}
	mend(true)
	p, err := w.Rollback(t.Context(), back)
	if err != nil || !p.Unchanged || p.Release != releases[1].Digest || !w.mirrorMatches(t, "prod", releases[1]) {
		t.Errorf("the re-run gives %+v, error %v", p, err)
	}
	if head := w.head(t); head.Release != releases[1].Digest || head.Hold != "it is slow" {
		t.Errorf("the head is %+v", head)
	}
	p, err = w.Rollback(t.Context(), back)
	if err != nil || p.Unchanged || p.Release != releases[0].Digest || !w.mirrorMatches(t, "prod", releases[0]) {
		t.Errorf("the next rollback gives %+v, error %v", p, err)
	}
}

// A version stays what it is, whatever others do to tags of the registry.
func TestTagsOfOthers(t *testing.T) {
	t.Parallel()
	const repository = "prod/" + registrytest.Model
	for name, c := range map[string]struct {
		tag  string
		says string
	}{
		"version": {"1.1.0", "version 1.1.0 of vision/digits exists in prod with another digest"},
		"engine":  {"1.1.0.linux-amd64-v3.int8", "tag 1.1.0.linux-amd64-v3.int8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, external("prod"))
			first := w.Promoted(t, registrytest.Build{})
			w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			if err := w.far.SetTag(t.Context(), repository, c.tag, first.Engines[0].Digest); err != nil {
				t.Fatal(err)
			}
			_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
			if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), c.says) || w.head(t).Release != first.Digest || len(w.pending(t)) != 0 {
				t.Errorf("head %+v, intents %v, error %v, want CodePolicy that says %q", w.head(t), w.pending(t), err, c.says)
			}
		})
	}
}

func TestVersionWhoseTagIsGone(t *testing.T) {
	t.Parallel()
	w := setup(t, external("prod"))
	first := w.Promoted(t, registrytest.Build{})
	if err := w.far.DeleteTag(t.Context(), "prod/"+registrytest.Model, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	w.proven(t, registrytest.Build{Salt: "other bytes"})
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), string(first.Digest)) || w.head(t).Release != first.Digest {
		t.Errorf("head %+v, error %v, want CodePolicy", w.head(t), err)
	}
}

// A tag that a stranger moved in the registry leads nobody to another release.
func TestMovedTagsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := setup(t, external("prod"))
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	for _, tag := range []string{artifact.HeadTag, "1.1.0"} {
		if err := w.far.SetTag(t.Context(), "prod/"+registrytest.Model, tag, first.Digest); err != nil {
			t.Fatal(err)
		}
	}
	q := api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Node: registrytest.Node("v3")}
	for _, version := range []string{"", artifact.HeadTag, string(second.Digest)} {
		q.Version = version
		if answer, err := w.Resolve(t.Context(), q); err != nil || answer.Release != second.Digest || !strings.HasPrefix(answer.Ref, host+"/prod/") {
			t.Errorf("resolve %q gives %+v, error %v", version, answer, err)
		}
	}
	q.Version = "1.1.0"
	if answer, err := w.Resolve(t.Context(), q); registry.CodeOf(err) != registry.CodeTrust ||
		answer.Engine != nil || !strings.Contains(err.Error(), "the tag was moved") {
		t.Errorf("resolve 1.1.0 gives %+v, error %v, want CodeTrust", answer, err)
	}
}

// stubborn is a mirror that takes a tag and shows another.
type stubborn struct{ backend.Mirror }

func (m stubborn) SetTag(context.Context, string, string, registry.Digest) error { return nil }

func (m stubborn) Tag(context.Context, string, string) (registry.Digest, error) {
	return digest.FromString("something else"), nil
}

// A mirror is not believed: what it shows counts.
func TestMirrorIsReadAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, external("staging"), func(c *backend.Backend) { c.Mirror = stubborn{c.Mirror} })
	built := registrytest.Build{}.Store(t, w.Parts)
	_, err := w.Publish(t.Context(), api.Publication{Model: registrytest.Model, Release: built})
	if registry.CodeOf(err) != registry.CodeConflict || !strings.Contains(err.Error(), "another client writes it") || len(w.pending(t)) != 1 {
		t.Errorf("error %v, intents %v, want CodeConflict", err, w.pending(t))
	}
}

// passing is a mirror during the writing of which the head moves on.
type passing struct {
	backend.Mirror
	meanwhile func()
}

func (m *passing) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	if m.meanwhile != nil && tag == artifact.HeadTag {
		meanwhile := m.meanwhile
		m.meanwhile = nil
		meanwhile()
	}
	return m.Mirror.SetTag(ctx, repository, tag, d)
}

// Of two writers of a mirror, the one who writes last looks at the head again.
func TestHeadThatMovesWhileItIsMirrored(t *testing.T) {
	t.Parallel()
	m := &passing{}
	w := setup(t, external("prod"), func(c *backend.Backend) { m.Mirror, c.Mirror = c.Mirror, m })
	w.proven(t, registrytest.Build{})
	second := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	m.meanwhile = func() {
		if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.1.0"}); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.0.0"}); err != nil {
		t.Error(err)
	}
	if w.head(t).Release != second.Digest || !w.mirrorMatches(t, "prod", second) || len(w.pending(t)) != 0 {
		t.Errorf("head %+v, intents %v, mirror whole: %v", w.head(t), w.pending(t), w.mirrorMatches(t, "prod", second))
	}
}

// Evidence that another client pushed out of a list of referrers is put back, since
// history names it: where a promotion starts, and where it was before.
func TestLostReferrersArePutBack(t *testing.T) {
	t.Parallel()
	w := setup(t, external("staging", "prod"))
	r := w.proven(t, registrytest.Build{})
	lose := func(environment, predicateType string) {
		t.Helper()
		claims, _, err := w.Claims(t.Context(), environment, r)
		if err != nil {
			t.Fatal(err)
		}
		w.farRefs.lost = make(map[registry.Digest]bool)
		for _, c := range claims {
			if c.Statement.PredicateType == predicateType {
				w.farRefs.lost[c.Bundle] = true
			}
		}
		if len(w.farRefs.lost) == 0 {
			t.Fatalf("there is no %s in %s", predicateType, environment)
		}
	}
	lose("staging", evidence.PredicateParity)
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, DryRun: true})
	if registry.CodeOf(err) == "" || registry.ExitCode(err) != 4 || len(w.farRefs.lost) == 0 {
		t.Errorf("a dry run: error %v, and %d are lost: want CodePolicy, and nothing changed", err, len(w.farRefs.lost))
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
		t.Fatal(err)
	}
	q := api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Node: registrytest.Node("v3")}
	for _, predicateType := range []string{evidence.PredicateSign, evidence.PredicateVSA} {
		lose("prod", predicateType)
		if answer, err := w.Resolve(t.Context(), q); err == nil {
			t.Errorf("without %s in prod resolve gives %+v", predicateType, answer)
		}
		if p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || !p.Unchanged {
			t.Errorf("promoting again gives %+v, error %v", p, err)
		}
		if _, err := w.Resolve(t.Context(), q); err != nil {
			t.Errorf("after %s was lost and put back: %v", predicateType, err)
		}
	}
}

// What comes from a registry that looks at nothing, or goes to one, is looked at before, and only then.
func TestPromoteInspects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on      string // the environment that is on another registry
		inspect func(context.Context, policy.Located) error
		code    registry.Code // of the refusal; empty: it is promoted
	}{
		"another registry, a file that runs code": {"staging", func(_ context.Context, at policy.Located) error {
			return registry.Errorf(registry.CodeUnsafe, "engine %s of %s: weights.bin is a pickle", at.Release.Engines[0].Label(), at.Repository)
		}, registry.CodeUnsafe},
		"another registry, nothing that could look": {"staging", nil, registry.CodeUnavailable},
		"another registry, nothing wrong":           {"staging", func(context.Context, policy.Located) error { return nil }, ""},
		"to another registry, an image that is not that of its engine": {"prod", func(_ context.Context, at policy.Located) error {
			return registry.Errorf(registry.CodeTrust, "image %s of %s", at.Release.Engines[0].Image.Digest, at.Repository)
		}, registry.CodeTrust},
		"to another registry, nothing that could look": {"prod", nil, registry.CodeUnavailable},
		"what was pushed here was looked at then":      {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, external(c.on), func(config *backend.Backend) { config.Inspect = c.inspect })
			r := w.proven(t, registrytest.Build{})
			p, err := w.promotion(t, false)
			if c.code == "" {
				if err != nil {
					t.Errorf("got %v (%+v), want it promoted", err, p)
				}
				return
			}
			if !registry.HasCode(err, c.code) {
				t.Errorf("got %v, want code %s", err, c.code)
			}
			if heads, err := w.Heads(t.Context(), "prod", r.Model); err != nil || len(heads) > 0 {
				t.Errorf("prod has %v, error %v, want nothing", heads, err)
			}
		})
	}
}
