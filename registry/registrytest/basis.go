package registrytest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// HeadAlone is the basis of a decision that rests on nothing but where the head is; no
// release: that there is none.
func HeadAlone(environment, model string, release registry.Digest) *history.DecisionBasis {
	return &history.DecisionBasis{ModelState: history.ModelState{
		Environment: environment, Model: model, Head: history.Head{Release: release}, Seq: math.MaxInt64,
	}}
}

func standing(t *testing.T, catalog storage.Catalog, environment, model string) history.ModelState {
	t.Helper()
	s, err := catalog.ModelState(t.Context(), environment, model)
	must(t, err)
	return s
}

// attached is an event about a subject in staging.
func attached(model, predicateType string, subject registry.Digest) history.Event {
	e := event(model, "1.0.0")
	e.Kind, e.Environment, e.PredicateType, e.Subject = history.EventAttach, "staging", predicateType, subject
	return e
}

func testStanding(t *testing.T, catalog storage.Catalog) {
	wantEqual(t, standing(t, catalog, "prod", "a"), history.ModelState{Environment: "prod", Model: "a"})
	held := move("a", "", "1.0.0")
	held.Move.Hold = "bad answers"
	apply(t, catalog, held)
	apply(t, catalog, storage.Change{Event: attached("b", evidence.PredicateQuarantine, d("engine"))})
	apply(t, catalog, storage.Change{Event: attached("b", evidence.PredicateParity, d("engine"))})
	head, err := catalog.Head(t.Context(), "prod", "a")
	must(t, err)
	wantEqual(t, standing(t, catalog, "prod", "a"), history.ModelState{Environment: "prod", Model: "a", Head: head, Seq: 3, Restrictions: 1})
	wantEqual(t, standing(t, catalog, "staging", "a"), history.ModelState{Environment: "staging", Model: "a", Seq: 3, Restrictions: 1})
}

// What happens between a decision and its change, and whether the change may still be made.
func testBasis(t *testing.T, catalog storage.Catalog) {
	release, engine := d("2.0.0"), d("engine")
	to := func(model, version, hold string) { // whatever the basis is now
		c := move(model, "", version)
		c.DecisionBasis, c.Move.Hold = &history.DecisionBasis{ModelState: standing(t, catalog, "prod", model)}, hold
		apply(t, catalog, c)
	}
	for name, c := range map[string]struct {
		meanwhile func(model string)
		moved     bool
	}{
		"nothing":       {func(string) {}, false},
		"another model": {func(string) { to("other", "1.0.0", "") }, false},
		"another environment": {func(model string) {
			e := attached(model, "", "")
			e.Kind = history.EventPublish
			apply(t, catalog, storage.Change{Event: e})
		}, false},
		"about something else": {func(model string) {
			apply(t, catalog, storage.Change{Event: attached(model, evidence.PredicateParity, d("x"))})
		}, false},
		"about the release": {func(model string) {
			apply(t, catalog, storage.Change{Event: attached(model, evidence.PredicateApproval, release)})
		}, true},
		"about the engine": {func(model string) {
			apply(t, catalog, storage.Change{Event: attached(model, evidence.PredicateParity, engine)})
		}, true},
		"a restriction": {func(string) {
			apply(t, catalog, storage.Change{Event: attached("other2", evidence.PredicateQuarantine, d("x"))})
		}, true},
		"a hold": {func(model string) { to(model, "1.0.0", "wait") }, true},
		"a move": {func(model string) { to(model, "3.0.0", "") }, true},
		"a move and back": {func(model string) {
			to(model, "3.0.0", "")
			to(model, "1.0.0", "")
		}, true},
		"a hold and its release": {func(model string) {
			to(model, "1.0.0", "wait")
			to(model, "1.0.0", "")
		}, true},
	} {
		model := "model " + name
		to(model, "1.0.0", "")
		decided := move(model, "1.0.0", "2.0.0")
		decided.DecisionBasis = &history.DecisionBasis{ModelState: standing(t, catalog, "prod", model), About: []registry.Digest{release, engine}}
		c.meanwhile(model)
		before := standing(t, catalog, "prod", model)
		_, err := catalog.Apply(t.Context(), decided)
		if !c.moved {
			if err != nil {
				t.Errorf("%s meanwhile: got %v, want the change to be made", name, err)
			}
			continue
		}
		if !history.BasisOutdated(err) || registry.CodeOf(err) != registry.CodeConflict {
			t.Errorf("%s meanwhile: got %v (%s), want a conflict that says that the basis has moved", name, err, registry.CodeOf(err))
		}
		wantEqual(t, standing(t, catalog, "prod", model), before)
	}
}

// testNodeTypesOfBasis checks that a decision that used the stored node types outlives no change of them,
// and that others do.
func testNodeTypesOfBasis(t *testing.T, db Store) {
	put := func(name, level string) { must(t, db.NodeTypes().Put(t.Context(), name, Node(level))) }
	wantEqual(t, standing(t, db, "prod", "a").NodeTypes, registry.Digest(""))
	for i := range storage.MaxPage { // so that the one that changes is on another page
		put(fmt.Sprintf("a%04d", i), "v1")
	}
	put("box", "v2")
	for i, c := range []struct {
		name      string
		meanwhile func()
		used      registry.Digest
		moved     bool
	}{
		{"nothing", func() {}, d("used"), false},
		{"the same again", func() { put("box", "v2") }, d("used"), false},
		{"another document", func() { put("box", "v3") }, d("used"), true},
		{"another document, and node types were not used", func() { put("box", "v4") }, "", false},
		{"a new one", func() { put("new", "v2") }, d("used"), true},
		{"one less", func() { must(t, db.NodeTypes().Delete(t.Context(), "box")) }, d("used"), true},
	} {
		change := move(fmt.Sprintf("model %d", i), "", "1.0.0")
		change.DecisionBasis = &history.DecisionBasis{ModelState: standing(t, db, "prod", change.Event.Model), OnNodeTypes: c.used}
		c.meanwhile()
		if _, err := db.Apply(t.Context(), change); history.BasisOutdated(err) != c.moved || !c.moved && err != nil {
			t.Errorf("%s meanwhile: got %v, want it outdated: %t", c.name, err, c.moved)
		}
	}
}

// testTimeOfMove checks that a change is made only in the time for which it was decided.
func testTimeOfMove(t *testing.T, catalog storage.Catalog) {
	noon := event("a", "1.0.0").Time.Truncate(time.Microsecond)
	for _, c := range []struct {
		name        string
		from, until time.Time
		outdated    bool
	}{
		{"from that instant on", noon, time.Time{}, false},
		{"from a part of a microsecond later", noon.Add(time.Microsecond - 1), time.Time{}, false},
		{"from later", noon.Add(time.Microsecond), time.Time{}, true},
		{"until later", noon.Add(-time.Hour), noon.Add(time.Microsecond), false},
		{"until that instant", noon.Add(-time.Hour), noon, true},
	} {
		change := move("model "+c.name, "", "1.0.0")
		change.DecisionBasis.From, change.DecisionBasis.Until = c.from, c.until
		if _, err := catalog.Apply(t.Context(), change); history.BasisOutdated(err) != c.outdated || !c.outdated && err != nil {
			t.Errorf("decided %s: got %v, want it outdated: %t", c.name, err, c.outdated)
		}
	}
}

func testMoveOnNothing(t *testing.T, catalog storage.Catalog) {
	c := move("a", "", "1.0.0")
	c.DecisionBasis = nil
	_, err := catalog.Apply(t.Context(), c)
	wantCode(t, err, registry.CodeInvalid)
	wantChain(t, catalog, 0)
}
