package registrytest

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

func testRollback(t *testing.T, r Registry) {
	var releases []artifact.Release
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		releases = append(releases, r.Promoted(t, Build{Version: version, Salt: version}))
	}
	back := func(version string, from, to int) {
		t.Helper()
		p, err := r.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: Model, Version: version, Reason: "it is slow"})
		must(t, err)
		if p.Release != releases[to].Digest || p.Previous != releases[from].Digest || p.Version != releases[to].Version || !p.Decision.Allowed() {
			t.Errorf("the rollback is %+v", p)
		}
		if h := headIs(t, r, "prod", releases[to].Digest); h.Hold != "it is slow" || h.Version != releases[to].Version {
			t.Errorf("the head is %+v", h)
		}
		current, err := r.Release(t.Context(), "prod", Model, "current")
		if err != nil || current.Digest != releases[to].Digest {
			t.Errorf("the mirror of the head is %s, error %v", current.Digest, err)
		}
	}
	back("", 2, 1)
	back("", 1, 0) // goes on from where it is
	_, err := r.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: Model, Reason: "x"})
	refused(t, err, registry.CodeNotFound, "no earlier head")
	back("1.2.0", 0, 2)
	back("1.0.0", 2, 0)
	got := events(t, r, history.EventRollback)
	if len(got) != 4 || got[0].Reason != "it is slow" || got[0].Previous != releases[2].Digest || got[0].Release != releases[1].Digest {
		t.Errorf("history has %+v", got)
	}
	if answer, err := r.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")}); err != nil ||
		answer.Version != "1.0.0" {
		t.Errorf("resolve after the rollback gives %+v, error %v", answer, err)
	}
	chained(t, r)
}

func testRollbackRefuses(t *testing.T, r Registry) {
	first := r.Promoted(t, Build{})
	second := r.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
	built := r.Build(t, Build{Version: "1.2.0", Salt: "c"})
	good := api.RollbackRequest{Environment: "prod", Model: Model, Reason: "it is slow"}
	for name, c := range map[string]struct {
		code registry.Code
		edit func(q *api.RollbackRequest)
	}{
		"never promoted": {registry.CodeNotFound, func(q *api.RollbackRequest) { q.Version = built.Version }},
		"never built":    {registry.CodeNotFound, func(q *api.RollbackRequest) { q.Version = "9.9.9" }},
		"already there":  {registry.CodeInvalid, func(q *api.RollbackRequest) { q.Version = "1.1.0" }},
		"no reason":      {registry.CodeInvalid, func(q *api.RollbackRequest) { q.Reason = " " }},
		"unprotected":    {registry.CodeInvalid, func(q *api.RollbackRequest) { q.Environment = "staging" }},
		"no environment": {registry.CodeNotFound, func(q *api.RollbackRequest) { q.Environment = "moon" }},
		"no model":       {registry.CodeNotFound, func(q *api.RollbackRequest) { q.Model = "vision/letters" }},
	} {
		q := good
		c.edit(&q)
		if _, err := r.Rollback(t.Context(), q); err == nil || registry.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want %s", name, err, c.code)
		}
	}
	r.AttachTo(t, "prod", first, first.Engines[0].Digest, evidence.PredicateQuarantine, struct{}{})
	_, err := r.Rollback(t.Context(), good)
	refused(t, err, registry.CodePolicy, "quarantine")
	if h := headIs(t, r, "prod", second.Digest); h.Hold != "" {
		t.Errorf("the head is held: %+v", h)
	}
}

func testHoldOfRollback(t *testing.T, r Registry) {
	r.Promoted(t, Build{})
	second := r.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
	refused(t, r.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: Model, Reason: "mended"}), registry.CodeNotFound, "not held")
	_, err := r.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: Model, Reason: "it is slow"})
	must(t, err)
	_, err = r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	refused(t, err, registry.CodePolicy, "held at 1.0.0: it is slow")
	refused(t, r.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: Model, Reason: " "}), registry.CodeInvalid, "reason")
	refused(t, r.ReleaseHold(t.Context(), api.HoldRelease{Environment: "moon", Model: Model, Reason: "mended"}), registry.CodeNotFound)
	refused(t, r.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: "vision/letters", Reason: "mended"}), registry.CodeNotFound)
	release := api.HoldRelease{Environment: "prod", Model: Model, Reason: "mended", Seen: new(string)}
	refused(t, r.ReleaseHold(t.Context(), release), registry.CodeConflict, "held for another reason than you saw: it is slow")
	*release.Seen = "it is slow"
	must(t, r.ReleaseHold(t.Context(), release))
	if got := events(t, r, history.EventHoldRelease); len(got) != 1 || got[0].Reason != "mended" {
		t.Errorf("history has %+v", got)
	}
	_, err = r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	headIs(t, r, "prod", second.Digest)
	chained(t, r)
}

func testSetHold(t *testing.T, r Registry) {
	hold := func(environment, reason string) error {
		return r.SetHold(t.Context(), environment, Model, reason)
	}
	refused(t, hold("prod", "wait"), registry.CodeNotFound, "no head")
	release := r.Promoted(t, Build{})
	r.Prove(t, r.Build(t, Build{Version: "1.1.0", Salt: "b"}))
	refused(t, hold("prod", " "), registry.CodeInvalid, "reason")
	refused(t, hold("staging", "wait"), registry.CodeInvalid, "builds write to staging")
	refused(t, hold("moon", "wait"), registry.CodeNotFound)
	must(t, hold("prod", "wait"))
	must(t, hold("prod", "wait for night"))
	if h := headIs(t, r, "prod", release.Digest); h.Hold != "wait for night" || h.Version != "1.0.0" {
		t.Errorf("the head is %+v, want it held with the last reason", h)
	}
	for _, dry := range []bool{true, false} {
		_, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model, DryRun: dry})
		refused(t, err, registry.CodePolicy, "held at 1.0.0: wait for night")
	}
	if p, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model, Ref: "1.0.0"}); err != nil || !p.Unchanged {
		t.Errorf("promoting the head again gives %+v, error %v; want it to be there already", p, err)
	}
	if answer, err := r.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")}); err != nil ||
		answer.Version != "1.0.0" {
		t.Errorf("resolve of a held head gives %+v, error %v", answer, err)
	}
	must(t, r.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: Model, Reason: "it is night"}))
	if got := events(t, r, history.EventHoldSet); len(got) != 2 || got[0].Reason != "wait" || got[0].Release != release.Digest {
		t.Errorf("history has %+v, want both holds", got)
	}
	_, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	chained(t, r)
}

// A rollback says what it takes away, and a dry run says so and changes nothing.
func testRollbackWarns(t *testing.T, r Registry) {
	first := r.Promoted(t, Build{Engines: []artifact.Engine{MakeEngine("v3", "fp32"), MakeEngine("v3", "int8")}})
	second := r.Promoted(t, Build{Version: "1.1.0", Salt: "b"}) // with an engine for v1
	quantized := first.Engines[1]
	r.AttachTo(t, "prod", first, quantized.Digest, evidence.PredicateParity, Report(first, quantized, evidence.VerdictFail))
	node := Node("v2")
	q := api.RollbackRequest{Environment: "prod", Model: Model, Reason: "it is slow", Node: &node, DryRun: true}
	for _, dry := range []bool{true, false} {
		q.DryRun = dry
		before, rows := headIs(t, r, "prod", second.Digest), len(events(t, r, ""))
		p, err := r.Rollback(t.Context(), q)
		must(t, err)
		all := strings.Join(p.Warnings, "\n")
		if p.Release != first.Digest || len(p.Warnings) != 2 || !strings.Contains(all, `resolve refuses linux-amd64-v3/int8 of 1.0.0`) ||
			!strings.Contains(all, "this node has an engine in 1.1.0, but not in 1.0.0") {
			t.Errorf("dry run %v: %+v warns of\n%s", dry, p, all)
		}
		was := second.Engines[0]
		wantEqual(t, p.Nodes, []api.NodeChange{{Node: "this node", From: was.Label(), FromEngine: was.Digest}})
		if dry {
			wantEqual(t, headIs(t, r, "prod", second.Digest), before)
			wantEqual(t, len(events(t, r, "")), rows)
		}
	}
	headIs(t, r, "prod", first.Digest)
	if _, err := r.Resolve(t.Context(), api.ResolveQuery{Environment: "prod",
		Model: Model, Node: node}); registry.CodeOf(err) != registry.CodeNoEngine {
		t.Errorf("resolve after the rollback: error %v, want CodeNoEngine as it was warned of", err)
	}
	q.Node = nil // and nothing is taken away on the way up
	q.Version = "1.1.0"
	p, err := r.Rollback(t.Context(), q)
	if err != nil || len(p.Warnings) != 0 {
		t.Errorf("back to 1.1.0: warnings %v, error %v, want none", p.Warnings, err)
	}
}
