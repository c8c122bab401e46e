package service_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// errInjected is the failure of a part.
var errInjected = errors.New("injected failure")

// faults makes one call of many fail: before it does anything, or, when late, after it
// was done, as when the answer is lost.
type faults struct {
	at, calls int
	late      bool
	writes    bool // only calls that change something are counted
}

// read makes a call that changes nothing. Its answer cannot be lost to any effect, so
// that it is not counted when late.
func read[T any](f *faults, do func() (T, error)) (T, error) {
	if f.late || f.writes {
		return do()
	}
	return call(f, do)
}

// reset begins to count anew. No call fails when at is 0.
func (f *faults) reset(at int, late bool) { *f = faults{at: at, late: late, writes: f.writes} }

// call makes a call that may fail.
func call[T any](f *faults, do func() (T, error)) (T, error) {
	f.calls++
	mine := f.calls == f.at
	var zero T
	if mine && !f.late {
		return zero, errInjected
	}
	v, err := do()
	if mine {
		return zero, errInjected
	}
	return v, err
}

func callErr(f *faults, do func() error) error {
	_, err := call(f, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// faultyContent is content of which a call may fail.
type faultyContent struct {
	storage.Content
	*faults
}

func (c faultyContent) Release(ctx context.Context, repository, name string) (artifact.Release, error) {
	return read(c.faults, func() (artifact.Release, error) { return c.Content.Release(ctx, repository, name) })
}

func (c faultyContent) Rehash(ctx context.Context, repository string, r artifact.Release) error {
	_, err := read(c.faults, func() (struct{}, error) { return struct{}{}, c.Content.Rehash(ctx, repository, r) })
	return err
}

func (c faultyContent) Copy(ctx context.Context, from, to string, r artifact.Release, evidence []registry.Digest) error {
	return callErr(c.faults, func() error { return c.Content.Copy(ctx, from, to, r, evidence) })
}

func (c faultyContent) Evidence(ctx context.Context, repository string, subject registry.Digest) iter.Seq2[evidence.Bundle, error] {
	if _, err := read(c.faults, func() (struct{}, error) { return struct{}{}, nil }); err != nil {
		return func(yield func(evidence.Bundle, error) bool) { yield(evidence.Bundle{}, err) }
	}
	return c.Content.Evidence(ctx, repository, subject)
}

func (c faultyContent) PutEvidence(ctx context.Context, repository string,
	b evidence.Bundle, subjects []artifact.Subject) ([]registry.Digest, error) {
	return call(c.faults, func() ([]registry.Digest, error) { return c.Content.PutEvidence(ctx, repository, b, subjects) })
}

func (c faultyContent) StageEvidence(ctx context.Context, repository string,
	b evidence.Bundle, subjects []artifact.Subject) (storage.StagedEvidence, error) {
	return call(c.faults, func() (storage.StagedEvidence, error) {
		return c.Content.StageEvidence(ctx, repository, b, subjects)
	})
}

// faultyCatalog is a catalog of which a call may fail.
type faultyCatalog struct {
	storage.Catalog
	*faults
}

func (c faultyCatalog) Head(ctx context.Context, environment, model string) (history.Head, error) {
	return read(c.faults, func() (history.Head, error) { return c.Catalog.Head(ctx, environment, model) })
}

func (c faultyCatalog) Apply(ctx context.Context, change storage.Change) (history.Event, error) {
	return call(c.faults, func() (history.Event, error) { return c.Catalog.Apply(ctx, change) })
}

func (c faultyCatalog) History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	if _, err := read(c.faults, func() (struct{}, error) { return struct{}{}, nil }); err != nil {
		return func(yield func(history.Event, error) bool) { yield(history.Event{}, err) }
	}
	return c.Catalog.History(ctx, q)
}

// faultyIntents is intents of which a call may fail.
type faultyIntents struct {
	storage.Intents
	*faults
}

func (i faultyIntents) Begin(ctx context.Context, intent history.Intent) error {
	return callErr(i.faults, func() error { return i.Intents.Begin(ctx, intent) })
}

func (i faultyIntents) Abandon(ctx context.Context, intent history.Intent) error {
	return callErr(i.faults, func() error { return i.Intents.Abandon(ctx, intent) })
}

func (i faultyIntents) End(ctx context.Context, environment, model string, release registry.Digest) error {
	return callErr(i.faults, func() error { return i.Intents.End(ctx, environment, model, release) })
}

func (i faultyIntents) Pending(ctx context.Context) ([]history.Intent, error) {
	return read(i.faults, func() ([]history.Intent, error) { return i.Intents.Pending(ctx) })
}

// faulty is a world in which each call of a part may be made to fail.
func faulty(t *testing.T, edits ...func(c *backend.Backend)) (*world, *faults) {
	t.Helper()
	f := new(faults)
	w := setup(t, append(edits, func(c *backend.Backend) {
		c.Content, c.Catalog, c.Intents = faultyContent{c.Content, f}, faultyCatalog{c.Catalog, f}, faultyIntents{c.Intents, f}
		c.Mirror = faultyMirror{c.Mirror, f}
	})...)
	sign, verify := w.config.Sign, w.config.Verify
	w.config.Sign = func(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
		return call(f, func() ([]byte, error) { return sign(ctx, role, statement) })
	}
	w.config.Verify = func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
		return read(f, func() (evidence.Claim, error) { return verify(ctx, bundle, resource) })
	}
	w.serve(t)
	return w, f
}

// whole wants the head of prod to be whole: mirrored by its tags, summarized, in history. The
// history has to explain everything that exists.
func (w *world) whole(t *testing.T) {
	t.Helper()
	w.faults(t)
	head := w.head(t)
	for _, tag := range []string{artifact.HeadTag, head.Version} {
		if d, err := w.db.Tag(t.Context(), "prod/"+registrytest.Model, tag); err != nil || d != head.Release {
			t.Errorf("tag %s is %s, error %v; the head is %s", tag, d, err, head.Release)
		}
	}
	r, err := w.Release(t.Context(), "prod", registrytest.Model, "")
	if err != nil {
		t.Fatal(err)
	}
	claims, _, err := w.Claims(t.Context(), "prod", r)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := policy.FindVSA(claims, r, "oci://local/prod/"+registrytest.Model); !ok {
		t.Errorf("the head %s has no summary", head.Version)
	}
	for e, err := range w.db.History(t.Context(), history.HistoryQuery{Environment: "prod", Descending: true}) {
		if err != nil || e.Release != head.Release {
			t.Errorf("history ends with %s of %s, error %v, and the head is %s", e.Kind, e.Release, err, head.Release)
		}
		break
	}
}

// chained wants the whole history to be intact.
func (w *world) chained(t *testing.T) {
	t.Helper()
	var before history.Event
	for e, err := range w.db.History(t.Context(), history.HistoryQuery{}) {
		if err == nil {
			err = e.VerifyChain(before)
		}
		if err != nil {
			t.Fatal(err)
		}
		before = e
	}
}

// Whichever call fails, the head is the old or the new one, and a re-run finishes.
func TestPromoteSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			t.Parallel()
			w, f := faulty(t)
			next := w.next(t, 0)
			if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
				t.Fatal(err)
			}
			at, old := 1, next
			for happened := true; happened; at, old = at+1, next {
				next = w.next(t, at)
				f.reset(at, late)
				happened = w.promoteWithFault(t, f, old, next)
			}
			if want := map[bool]int{false: 20, true: 5}[late]; at-2 < want {
				t.Errorf("only %d calls were made to fail, want at least %d", at-2, want)
			}
			w.chained(t)
		})
	}
}

// next is a proven release with one engine.
func (w *world) next(t *testing.T, minor int) artifact.Release {
	t.Helper()
	version := fmt.Sprintf("1.%d.0", minor)
	return w.proven(t, registrytest.Build{Version: version, Salt: version, Engines: []artifact.Engine{registrytest.MakeEngine("v3", "int8")}})
}

// promoteWithFault makes one call fail during a promotion, looks at what is left, and
// runs the promotion again. It reports whether there was such a call.
func (w *world) promoteWithFault(t *testing.T, f *faults, old, next artifact.Release) bool {
	t.Helper()
	ctx := t.Context()
	_, err := w.Promote(ctx, api.PromoteRequest{Model: registrytest.Model})
	at, happened := f.at, f.calls >= f.at
	f.reset(0, false)
	if happened != (err != nil) || err != nil && !errors.Is(err, errInjected) {
		t.Fatalf("call %d failed: %v; the promotion's error is %v", at, happened, err)
	}
	if head := w.head(t).Release; head != old.Digest && head != next.Digest || err == nil && head != next.Digest {
		t.Fatalf("call %d failed: the head is %s, neither the old nor the new one", at, head)
	}
	w.whole(t)
	p, err := w.Promote(ctx, api.PromoteRequest{Model: registrytest.Model})
	if err != nil || p.Release != next.Digest || w.head(t).Release != next.Digest {
		t.Fatalf("call %d failed: the re-run gives %+v, error %v", at, p, err)
	}
	w.whole(t)
	if pending, err := w.db.Pending(ctx); err != nil || len(pending) != 0 {
		t.Errorf("call %d failed: after the re-run there are the intents %v, error %v", at, pending, err)
	}
	if promotions, err := w.History(ctx, history.HistoryQuery{Kind: history.EventPromote}); err != nil || len(promotions) != at+1 {
		t.Errorf("call %d failed: there are %d promotions in history, want %d (error %v)", at, len(promotions), at+1, err)
	}
	return happened
}

// Whichever call fails, evidence exists with its event or not at all, and a second attach
// finishes.
func TestAttachSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for _, predicateType := range []string{evidence.PredicateParity, evidence.PredicateQuarantine} {
			t.Run(fmt.Sprintf("%s late %v", predicateType, late), func(t *testing.T) {
				t.Parallel()
				w, f := faulty(t)
				r := w.Promoted(t, registrytest.Build{})
				at := 1
				for ; ; at++ {
					var predicate any = evidence.Quarantine{Reason: fmt.Sprintf("crash %d", at)}
					if predicateType == evidence.PredicateParity {
						report := registrytest.Report(r, r.Engines[0], evidence.VerdictFail)
						report.FinishedOn = report.FinishedOn.Add(time.Duration(at))
						predicate = report
					}
					if f.reset(at, late); !w.attachWithFault(t, f, r, predicateType, predicate) {
						break
					}
				}
				if at < 4 {
					t.Errorf("only %d calls were made to fail", at-1)
				}
				w.chained(t)
			})
		}
	}
}

// Whichever call fails while evidence is brought to a release that is the head already, the
// history explains what was copied, and the next promotion brings the rest.
func TestPromoteAgainSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			t.Parallel()
			w, f := faulty(t)
			f.writes = true // what is read grows with the evidence
			r := w.Promoted(t, registrytest.Build{})
			e := r.Engines[0]
			w.refs.pushed = make(map[registry.Digest]bool)
			at := 1
			for happened := true; happened; at++ {
				report := registrytest.Report(r, e, evidence.VerdictPass)
				report.FinishedOn = report.FinishedOn.Add(time.Duration(at))
				pushed := evidence.Bundle{Data: w.Bundle(t, "verifier", evidence.PredicateParity, report, e.Digest)}
				stored, err := w.config.Content.PutEvidence(t.Context(), "staging/"+r.Model, pushed, r.Subjects()[1:2])
				must(t, err)
				w.refs.pushed[stored[0]] = true
				f.reset(at, late)
				_, err = w.Promote(t.Context(), api.PromoteRequest{Model: r.Model})
				happened = f.calls >= at
				f.reset(0, false)
				if happened != (err != nil) || err != nil && !errors.Is(err, errInjected) {
					t.Fatalf("call %d failed: %v; the error is %v", at, happened, err)
				}
				w.faults(t)
				_, err = w.Promote(t.Context(), api.PromoteRequest{Model: r.Model})
				must(t, err)
				w.whole(t)
				if pending, err := w.db.Pending(t.Context()); err != nil || len(pending) != 0 {
					t.Errorf("call %d failed: after the re-run there are the intents %v, error %v", at, pending, err)
				}
				records, err := w.db.Recorded(t.Context(), r.Model, stored)
				must(t, err)
				if records[stored[0]].Seq == 0 {
					t.Errorf("call %d failed: promoted again, no event names the evidence", at)
				}
			}
			w.chained(t)
		})
	}
}

// attachWithFault makes one call fail while evidence is attached in staging, looks at what is
// left, and attaches it again. It reports whether there was such a call.
func (w *world) attachWithFault(t *testing.T, f *faults, r artifact.Release, predicateType string, predicate any) bool {
	t.Helper()
	role, _ := evidence.RoleFor(predicateType)
	engine := r.Engines[0].Digest
	a := api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: engine,
		Bundle: w.Bundle(t, string(role), predicateType, predicate, engine)}
	_, err := w.Attach(t.Context(), a)
	at, happened := f.at, f.calls >= f.at
	f.reset(0, false)
	if happened != (err != nil) || err != nil && !errors.Is(err, errInjected) {
		t.Fatalf("call %d failed: %v; the error is %v", at, happened, err)
	}
	w.faults(t)
	d, err := w.Attach(t.Context(), a)
	must(t, err)
	records, err := w.db.Recorded(t.Context(), r.Model, []registry.Digest{d})
	must(t, err)
	if records[d].Seq == 0 {
		t.Errorf("call %d failed: attached again, no event names the evidence", at)
	}
	w.faults(t)
	return happened
}

// Evidence that cannot be checked might be a quarantine: it is not passed over.
func TestEvidenceThatCannotBeCheckedStops(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	next := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	for _, at := range []struct {
		environment string
		release     artifact.Release
	}{{"staging", next}, {"prod", r}} {
		w.AttachTo(t, at.environment, at.release, at.release.Digest, evidence.PredicateQuarantine, struct{}{})
	}
	verify := w.config.Verify
	w.config.Verify = func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
		claim, err := verify(ctx, bundle, resource)
		if claim.Statement.PredicateType == evidence.PredicateQuarantine {
			return evidence.Claim{}, registry.Errorf(registry.CodeUnavailable, "the approver's key cannot be read")
		}
		return claim, err
	}
	w.serve(t)
	before := w.head(t)
	_, promote := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	_, rollback := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"})
	_, resolve := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod",
		Model: registrytest.Model, Version: "1.0.0", Node: registrytest.Node("v3")})
	for name, err := range map[string]error{"promote": promote, "rollback": rollback, "resolve": resolve} {
		if registry.CodeOf(err) != registry.CodeUnavailable {
			t.Errorf("%s: error %v, want CodeUnavailable", name, err)
		}
	}
	if w.head(t) != before {
		t.Errorf("the head is %+v, was %+v", w.head(t), before)
	}
}
