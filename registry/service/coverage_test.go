package service_test

import (
	"context"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// covered is a world whose prod asks for an engine that was shown on the node type box, the machine of
// the reports of tests.
func covered(t *testing.T, edits ...func(*backend.Backend)) *world {
	t.Helper()
	w := setup(t, append(edits, func(c *backend.Backend) {
		c.Environments.List[1].Coverage = policy.CoverageRule{NodeTypes: []string{"*"}}
	})...)
	w.config.NodeTypes = w.db.NodeTypes()
	w.serve(t)
	must(t, w.db.NodeTypes().Put(t.Context(), "box", registrytest.Node("v4")))
	return w
}

// brokenTypes are node types that cannot be read.
type brokenTypes struct{ storage.NodeTypes }

func (brokenTypes) List(context.Context, string, int) ([]registry.Named[artifact.Node], error) {
	return nil, registry.Errorf(registry.CodeInvalid, "node-types/box.json: not JSON")
}

// A promotion says which engine each node type would get in the destination, also where it is refused. No decision rests on that.
func TestPromotionSaysWhatNodesGet(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.config.NodeTypes = w.db.NodeTypes()
	w.serve(t)
	must(t, w.db.NodeTypes().Put(t.Context(), "box", registrytest.Node("v4")))
	must(t, w.db.NodeTypes().Put(t.Context(), "old", registrytest.Node("v1")))
	gets := func(when, want string, allowed, dryRun bool) {
		t.Helper()
		p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, DryRun: dryRun})
		var got []string
		for _, n := range p.NodesGet {
			got = append(got, n.String())
		}
		if strings.Join(got, ", ") != want || (err == nil) != allowed {
			t.Errorf("%s: nodes get %q, error %v; want %q", when, got, err, want)
		}
	}
	release := w.Build(t, registrytest.Build{})
	gets("signed by nobody", "box -> no engine, old -> no engine", false, true)
	w.Prove(t, release)
	gets("proven", "box -> linux-amd64-v3/int8, old -> linux-amd64-v1/fp32", true, true)
	gets("promoted", "box -> linux-amd64-v3/int8, old -> linux-amd64-v1/fp32", true, false)
	gets("there already", "box -> linux-amd64-v3/int8, old -> linux-amd64-v1/fp32", true, false)
	best := release.Ranked()[0]
	w.AttachTo(t, "staging", release, best.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "x"})
	gets("with the best engine in quarantine", "box -> linux-amd64-v3/fp32, old -> linux-amd64-v1/fp32", false, true)

	w.config.NodeTypes = brokenTypes{w.db.NodeTypes()}
	w.serve(t)
	next := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	w.Prove(t, next)
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if err != nil || p.NodesGet != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "node-types/box.json") {
		t.Errorf("node types that cannot be read: got %+v, error %v; want a promotion with a warning", p, err)
	}
}

// What node types are when the head moves counts, whatever they were when the promotion was decided.
func TestNodeTypesMoveWhileItIsPromoted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(w *world) error
		says      string // of the refusal; empty: it is promoted
	}{
		"nothing":             {func(*world) error { return nil }, ""},
		"the same again":      {func(w *world) error { return w.db.NodeTypes().Put(t.Context(), "box", registrytest.Node("v4")) }, ""},
		"a type not shown":    {func(w *world) error { return w.db.NodeTypes().Put(t.Context(), "new", registrytest.Node("v3")) }, "coverage of node type new: it gets"},
		"another machine now": {func(w *world) error { return w.db.NodeTypes().Put(t.Context(), "box", registrytest.Node("v3")) }, "a report was made on another machine"},
		"the type is gone":    {func(w *world) error { return w.db.NodeTypes().Delete(t.Context(), "box") }, "coverage of node type *: no such node type is registered"},
	} {
		for when, hook := range map[string]func(*backend.Backend, func()){
			"while it copies": func(c *backend.Backend, then func()) {
				c.Content = &meanwhile{Content: c.Content, then: then}
			},
			"just before the head moves": func(c *backend.Backend, then func()) {
				c.Catalog = &busy{Catalog: c.Catalog, kind: history.EventPromote, times: 1, then: then}
			},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				var w *world
				w = covered(t, func(config *backend.Backend) { hook(config, func() { must(t, c.meanwhile(w)) }) })
				next := w.proven(t, registrytest.Build{})
				_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
				if c.says == "" {
					if err != nil || w.head(t).Release != next.Digest {
						t.Errorf("got %v, head %s; want it promoted", err, w.head(t).Release)
					}
					return
				}
				if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), c.says) || w.head(t).Release != "" {
					t.Errorf("got %v, head %q; want a refusal that says %q", err, w.head(t).Release, c.says)
				}
			})
		}
	}
}

// layered is a table of which a part is in files, that no transaction of the catalog has.
type layered struct {
	storage.NodeTypes
	files *mem.Table[artifact.Node]
}

func (l layered) List(ctx context.Context, after string, limit int) ([]registry.Named[artifact.Node], error) {
	page, err := l.files.List(ctx, after, limit)
	return page, err
}

// Node types in files are read again before the head moves.
func TestNodeTypesInFiles(t *testing.T) {
	t.Parallel()
	files := mem.NewTable[artifact.Node]()
	var m *meanwhile
	w := covered(t, func(c *backend.Backend) {
		m = &meanwhile{Content: c.Content}
		c.Content = m
	})
	must(t, files.Put(t.Context(), "box", registrytest.Node("v4")))
	w.config.NodeTypes = layered{w.db.NodeTypes(), files}
	w.serve(t)
	w.proven(t, registrytest.Build{})
	m.then = func() { must(t, files.Put(t.Context(), "box", registrytest.Node("v3"))) }
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "a report was made on another machine") || w.head(t).Release != "" {
		t.Errorf("got %v, head %q; want a refusal", err, w.head(t).Release)
	}
}

// Coverage names the engine that resolve then gives to the node type, and a service that knows no node
// types promotes nothing.
func TestCoverageIsWhatResolveGives(t *testing.T) {
	t.Parallel()
	w := covered(t)
	w.proven(t, registrytest.Build{})
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, DryRun: true})
	must(t, err)
	said := ""
	for _, req := range p.Decision.Requirements {
		if req.Name == "coverage" {
			said = req.Detail
		}
	}
	w.config.NodeTypes = nil
	blind, err := service.New(w.config)
	must(t, err)
	if _, err := blind.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.ExitCode(err) != 4 ||
		!strings.Contains(err.Error(), "is not known here") {
		t.Errorf("without a table of node types: got %v, want a refusal", err)
	}
	_, err = w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	must(t, err)
	answer, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Node: registrytest.Node("v4")})
	if err != nil || !strings.Contains(said, "it gets "+answer.Engine.Label()+", shown by 1 verifier") {
		t.Errorf("resolve gives %+v (%v), and the decision said %q", answer.Engine, err, said)
	}
	// A type that comes later changes nothing that is promoted, and the next promotion is refused.
	must(t, w.db.NodeTypes().Put(t.Context(), "new", registrytest.Node("v3")))
	if _, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod",
		Model: registrytest.Model, Node: registrytest.Node("v4")}); err != nil {
		t.Errorf("resolve after a new node type: %v", err)
	}
	w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.ExitCode(err) != 4 {
		t.Errorf("a node type that was not shown: got %v, want a refusal", err)
	}
}
