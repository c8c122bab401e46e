package service_test

import (
	"bytes"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// start is a state from which operations begin, as the arena and the model have it.
type start struct {
	*arena
	model *model
}

// do does operations one after the other, to both.
func (s *start) do(t testing.TB, operations ...operation) {
	t.Helper()
	for _, o := range operations {
		got := o.run(t, t.Context(), s.arena, s.replica(t, 0))
		if want := o.model(s.model, got.said); want != got.said {
			t.Fatalf("%s alone: %s (%v), want %s", o.name, got.said, got.err, want)
		}
	}
	if wrong := s.model.differs(s.observe(), false); wrong != "" {
		t.Fatalf("alone: %s", wrong)
	}
}

// open is a registry with 1.2.0 in staging and 1.1.0 in prod, and what was there before. With
// canary between them, that is at 1.1.0 too.
func open(t testing.TB, elsewhere string, chain ...string) *start {
	t.Helper()
	s := &start{arena: newArena(elsewhere, chain...)}
	s.model = newModel(s.names.facts, chain)
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		s.build(t, version)
		s.model.publish(version)
		for _, environment := range chain[1:] {
			if version != "1.2.0" {
				s.do(t, promote(environment, ""))
			}
		}
	}
	for name, f := range map[string]fact{
		"quarantine of 1.1.0": {kind: factQuarantine, version: "1.1.0"},
		"quarantine of 1.2.0": {kind: factQuarantine, version: "1.2.0"},
		"failure of 1.1.0":    {kind: factFail, version: "1.1.0"},
		"failure of 1.2.0":    {kind: factFail, version: "1.2.0"},
	} {
		s.sign(t, name, f)
	}
	return s
}

// scene is a start, and operations to interleave from it.
type scene struct {
	start      func(t *testing.T) *start
	operations []operation
}

// scenes are where operations meet. In one of them calls of the storage are steps, in the
// others those of releases and evidence are: there, none of the operations deletes anything,
// so that what one of them stores is there for the others in whatever order it was stored.
func scenes() map[string]scene {
	two := []string{"staging", "prod"}
	return map[string]scene{
		"open": {func(t *testing.T) *start { return open(t, "", two...) }, []operation{
			promote("prod", ""), promote("prod", "1.1.0"), promote("prod", "1.0.0"),
			attach("staging", "quarantine of 1.2.0"), attach("prod", "quarantine of 1.1.0"), attach("prod", "quarantine of 1.2.0"),
			attach("staging", "failure of 1.2.0"), attach("prod", "failure of 1.1.0"),
			setHold("prod", "the fair"), rollback("prod", "", "slow"), rollback("prod", "1.0.0", "wrong"),
			publish("1.1.0"), backup(),
		}},
		"three": {func(t *testing.T) *start { return open(t, "", "staging", "canary", "prod") }, []operation{
			promote("canary", ""), promote("canary", "1.0.0"), promote("prod", ""), promote("prod", "1.0.0"),
			setHold("canary", "the fair"), rollback("prod", "", "slow"), rollback("canary", "", "hot"), attach("staging", "quarantine of 1.1.0"),
		}},
		"held": {func(t *testing.T) *start {
			s := open(t, "", two...)
			s.do(t, setHold("prod", "the fair"))
			return s
		}, []operation{
			liftHold("prod"), promote("prod", ""), promote("prod", "1.1.0"), setHold("prod", "the trial"), rollback("prod", "", "slow"),
			attach("prod", "quarantine of 1.1.0"),
		}},
		"in quarantine": {func(t *testing.T) *start {
			s := open(t, "", two...)
			s.do(t, attach("staging", "quarantine of 1.2.0"))
			s.sign(t, "lift of 1.2.0", fact{kind: factLift, version: "1.2.0", ends: "quarantine of 1.2.0"})
			return s
		}, []operation{
			attach("staging", "lift of 1.2.0"), promote("prod", ""), rollback("prod", "", "hot"), attach("staging", "failure of 1.2.0"),
		}},
		"failed": {func(t *testing.T) *start {
			s := open(t, "", two...)
			s.do(t, attach("prod", "failure of 1.1.0"))
			s.sign(t, "pass of 1.1.0", fact{kind: factPass, version: "1.1.0", ends: "failure of 1.1.0"})
			return s
		}, []operation{
			attach("staging", "pass of 1.1.0"), promote("prod", "1.1.0"), promote("prod", "1.0.0"), attach("staging", "quarantine of 1.1.0"),
			rollback("prod", "", "slow"),
		}},
		"elsewhere": {func(t *testing.T) *start { return open(t, "prod", two...) }, []operation{
			promote("prod", ""), promote("prod", "1.1.0"), promote("prod", "1.0.0"), setHold("prod", "the fair"), liftHold("prod"),
			rollback("prod", "", "slow"), rollback("prod", "1.0.0", "wrong"), attach("staging", "quarantine of 1.2.0"), attach("prod", "quarantine of 1.1.0"),
		}},
		"garbage": {func(t *testing.T) *start { return littered(t, two...) }, []operation{
			collectGarbage(), upload("staging/other", "left"), upload("prod/other", "stray"), promote("prod", ""), attach("staging", "quarantine of 1.2.0"),
			rollback("prod", "", "slow"), backup(),
		}},
	}
}

// littered is a registry with what nothing needs, which the next collection takes away: a
// manifest and its blob, bytes without a name, and what a promotion of 1.2.0 to prod left that
// broke off.
func littered(t *testing.T, chain ...string) *start {
	t.Helper()
	s := open(t, "", chain...)
	s.do(t, upload("staging/other", "left"))
	stray, _ := contentOf(t, "stray")
	if err := s.blobs.Put(t.Context(), blobOf(stray).Digest, int64(len(stray)), bytes.NewReader(stray)); err != nil {
		t.Fatal(err)
	}
	r := s.names.releases["1.2.0"]
	if err := s.store().Copy(t.Context(), registry.Repository("staging", r.Model), registry.Repository("prod", r.Model), r, nil); err != nil {
		t.Fatal(err)
	}
	s.tomorrow()
	s.do(t, collectGarbage())
	s.tomorrow()
	s.fine = true
	return s
}
