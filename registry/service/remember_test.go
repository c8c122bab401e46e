package service_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// counted is a verifier that counts what it is asked.
func counted(verify storage.VerifyEvidence, n *atomic.Int64) storage.VerifyEvidence {
	return func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
		n.Add(1)
		return verify(ctx, bundle, resource)
	}
}

// replica is another service on the same database and content, which remembers so many
// bytes and counts what it verifies.
func (w *world) replica(t *testing.T, bytes int, verified *atomic.Int64) *service.Remembering {
	t.Helper()
	config := w.config
	config.Verify = counted(config.Verify, verified)
	s, err := service.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return service.Remember(s, w.db, bytes)
}

func prod(version string) api.ResolveQuery {
	return api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Version: version, Node: registrytest.Node("v3")}
}

// A remembering service passes for one.
func TestRememberingIsAService(t *testing.T) {
	t.Parallel()
	registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry {
		w := setup(t)
		w.Interface = service.Remember(w.service, w.db, 1<<20)
		return w.Registry
	})
}

// An answer that is known is the answer again until something happens to the model, whatever a caller
// makes of what it was told.
func TestRememberGivesKnownAnswers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	s := w.replica(t, 1<<20, new(atomic.Int64))
	ask := func(known *api.Resolution) api.Resolution {
		t.Helper()
		q := prod("")
		q.Known = known
		got, err := s.Resolve(t.Context(), q)
		if err != nil || got.Ground == nil {
			t.Fatalf("got ground %v, error %v; want a ground", got.Ground, err)
		}
		return got
	}
	known := ask(nil)
	if ask(nil).Ground != known.Ground {
		t.Error("without a change, the ground is another")
	}
	known.Version = "as known"
	if got := ask(&known); got.Version != known.Version {
		t.Errorf("without a change: got version %q, want the known answer", got.Version)
	}
	w.AttachTo(t, "prod", r, r.Engines[0].Digest, evidence.PredicateParity, registrytest.Report(r, r.Engines[0], evidence.VerdictPass))
	if got := ask(&known); got.Version == known.Version || got.Ground == known.Ground {
		t.Errorf("after a report: got version %q, want an answer from another ground", got.Version)
	}
	other := ask(nil)
	unlike := api.Resolution{Version: "as known"}
	if got := ask(&unlike); got.Version != other.Version {
		t.Errorf("with an answer of no ground: got version %q, want %q", got.Version, other.Version)
	}
}

// As long as nothing happens, signatures are verified once, whoever asks for what node.
func TestRememberVerifiesOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	var verified atomic.Int64
	s := w.replica(t, 1<<20, &verified)
	for _, version := range []string{"", "1.0.0"} {
		var first int64
		for i := range 3 {
			want, wantErr := w.Resolve(t.Context(), prod(version))
			got, err := s.Resolve(t.Context(), prod(version))
			if wantErr != nil || err != nil || got.Ref != want.Ref || len(got.Candidates) != len(want.Candidates) {
				t.Fatalf("resolve gives %+v, %v, want %+v, %v", got, err, want, wantErr)
			}
			if i == 0 {
				first = verified.Load()
			}
		}
		if n := verified.Load(); first == 0 || n != first {
			t.Errorf("version %q: %d signatures were verified at first, and %d in all: want no more", version, first, n)
		}
		verified.Store(0)
	}
	q := prod("")
	q.Node = artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "arm64", Level: "v8"}}
	if answer, err := s.Resolve(t.Context(), q); !registry.HasCode(err, registry.CodeNoEngine) || answer.Engine != nil || verified.Load() != 0 {
		t.Errorf("another node gets %+v, %v", answer, err)
	}
}

// What one replica does, the very next resolve of another sees.
func TestRememberSeesOtherReplicas(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	var verified atomic.Int64
	s := w.replica(t, 1<<20, &verified)
	wantHead := func(what string, r artifact.Release) {
		t.Helper()
		if got, err := s.Resolve(t.Context(), prod("")); err != nil || got.Release != r.Digest {
			t.Fatalf("after %s: %s, %v, want %s", what, got.Release, err, r.Digest)
		}
	}
	wantHead("two promotions", second)
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	wantHead("a rollback", first)
	if err := w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	third := w.Promoted(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	wantHead("another promotion", third)
	if _, err := s.Resolve(t.Context(), prod("1.0.0")); err != nil {
		t.Fatal(err)
	}

	e := third.Engines[0]
	fail := registrytest.Report(third, e, evidence.VerdictFail)
	fail.FinishedOn = fail.FinishedOn.AddDate(0, 0, 1)
	w.AttachTo(t, "prod", third, e.Digest, evidence.PredicateParity, fail)
	answer, err := s.Resolve(t.Context(), prod(""))
	for _, c := range answer.Candidates {
		if c.Engine == e.Digest && (c.Chosen || !strings.Contains(strings.Join(c.Reasons, " "), `verdict is "fail"`)) {
			t.Errorf("after a report that failed: %+v, %v", c, err)
		}
	}
	w.AttachTo(t, "prod", third, third.Digest, evidence.PredicateQuarantine, struct{}{})
	if answer, err := s.Resolve(t.Context(), prod("")); !registry.HasCode(err, registry.CodeNoEngine) ||
		!strings.Contains(err.Error(), "in quarantine") {
		t.Errorf("after a quarantine: %+v, %v", answer.Ref, err)
	}
	w.AttachTo(t, "prod", first, first.Digest, evidence.PredicateQuarantine, struct{}{})
	if answer, err := s.Resolve(t.Context(), prod("1.0.0")); err == nil {
		t.Errorf("after a quarantine of version 1.0.0: %+v", answer.Ref)
	}
}

// A tag of an unprotected environment moves by a push, which no event tells of.
func TestRememberFollowsTags(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Build(t, registrytest.Build{})
	second := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	var verified atomic.Int64
	s := w.replica(t, 1<<20, &verified)
	q := prod("mine")
	q.Environment = "staging"
	for _, r := range []artifact.Release{first, second, first} {
		if err := w.db.SetTag(t.Context(), "staging/"+registrytest.Model, "mine", r.Digest); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Resolve(t.Context(), q); err != nil || got.Release != r.Digest {
			t.Fatalf("the tag names %s, and resolve gives %s, %v", r.Digest, got.Release, err)
		}
	}
}

// A service of another environments.yaml judges anew what the one before let through.
func TestRememberIsOfOneTrust(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	var verified atomic.Int64
	if _, err := w.replica(t, 1<<20, &verified).Resolve(t.Context(), prod("")); err != nil {
		t.Fatal(err)
	}
	trusting := w.config.Verify
	w.config.Verify = func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
		claim, err := trusting(ctx, bundle, resource)
		claim.Roles = slices.DeleteFunc(claim.Roles, func(r evidence.Role) bool { return r == evidence.RoleBuilder })
		return claim, err
	}
	if got, err := w.replica(t, 1<<20, &verified).Resolve(t.Context(), prod("")); !registry.HasCode(err, registry.CodeNoEngine) ||
		!strings.Contains(err.Error(), "signature") {
		t.Errorf("without trust in builders: %+v, %v", got.Ref, err)
	}
}

// What is remembered has a limit, and beyond it answers are as right.
func TestRememberIsBounded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	versions := []string{"1.0.0", "1.1.0", "1.2.0"}
	for i, v := range versions {
		w.Promoted(t, registrytest.Build{Version: v, Salt: string(rune('a' + i))})
	}
	ask := func(s *service.Remembering, rounds int) {
		t.Helper()
		for range rounds {
			for _, v := range versions {
				if got, err := s.Resolve(t.Context(), prod(v)); err != nil || got.Version != v {
					t.Fatalf("version %s: %+v, %v", v, got.Version, err)
				}
			}
		}
	}
	var once, roomy, tight, none atomic.Int64
	ask(w.replica(t, 1<<20, &once), 1)
	ask(w.replica(t, 1<<20, &roomy), 3)
	// Room for two: of three in turn, the one that is asked for next has just gone.
	s := w.replica(t, 1<<20, &tight)
	ask(s, 1)
	per := s.Bytes() / len(versions)
	tight.Store(0)
	ask(w.replica(t, 2*per+per/2, &tight), 3)
	ask(w.replica(t, 0, &none), 3)
	if roomy.Load() != once.Load() || tight.Load() != 3*once.Load() || none.Load() != 3*once.Load() {
		t.Errorf("verified %d with room, %d with little and %d without: want %d, %d and %d",
			roomy.Load(), tight.Load(), none.Load(), once.Load(), 3*once.Load(), 3*once.Load())
	}
}

// A head on another registry is remembered for a minute: evidence can be pushed there past the service.
func TestRememberAnotherRegistryForAWhile(t *testing.T) {
	t.Parallel()
	at := registrytest.NewClock()
	w := setup(t, external("prod"), func(c *backend.Backend) { c.Now = at.Now })
	r := w.Promoted(t, registrytest.Build{})
	var verified atomic.Int64
	s := w.replica(t, 1<<20, &verified)
	best := chosen(t, s, "at first")
	first := verified.Load()
	if chosen(t, s, "again"); first == 0 || verified.Load() != first {
		t.Errorf("%d signatures were verified at first, and %d in all: want no more", first, verified.Load())
	}
	bundle := evidence.Bundle{Data: w.Bundle(t, "approver", evidence.PredicateQuarantine, evidence.Quarantine{Reason: "pushed"}, best)}
	i := slices.IndexFunc(r.Subjects(), func(s artifact.Subject) bool { return s.Digest == best })
	_, err := w.config.Content.PutEvidence(t.Context(), "prod/"+r.Model, bundle, r.Subjects()[i:i+1])
	must(t, err)
	at.Pass(time.Minute)
	if chosen(t, s, "a minute later") == best {
		t.Error("a quarantine that was pushed past the service does not count after a minute")
	}
	at.Pass(time.Minute)
	w.lose(w.AttachTo(t, "staging", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "attached"}))
	if answer, err := s.Resolve(t.Context(), prod("")); answer.Engine != nil {
		t.Errorf("a quarantine that was attached does not count at once: %v", err)
	}
}
