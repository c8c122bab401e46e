package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// unlisted is a table that cannot be read.
type unlisted struct{ storage.NodeTypes }

func (unlisted) List(context.Context, string, int) ([]registry.Named[artifact.Node], error) {
	return nil, errors.New("a file is damaged")
}

// A rollback warns of node types that it leaves without an engine, and goes on whatever it
// cannot find out.
func TestRollbackWarnsOfNodeTypes(t *testing.T) {
	t.Parallel()
	types := mem.NewTable[artifact.Node]()
	for name, level := range map[string]string{"old": "v2", "new": "v4", "bare": "v4"} {
		node := registrytest.Node(level)
		if name == "bare" { // no engine was ever for it
			node.Runtimes = nil
		}
		must(t, types.Put(t.Context(), name, node))
	}
	w := setup(t, func(c *backend.Backend) { c.NodeTypes = types })
	w.Promoted(t, registrytest.Build{Engines: []artifact.Engine{registrytest.MakeEngine("v3", "fp32")}})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	back := api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "it is slow", DryRun: true}
	p, err := w.Rollback(t.Context(), back)
	if err != nil || len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "node type old has an engine in 1.1.0, but not in 1.0.0") {
		t.Errorf("warnings %q, error %v, want one about node type old", p.Warnings, err)
	}
	w.config.NodeTypes = unlisted{}
	w.serve(t)
	if p, err = w.Rollback(t.Context(), back); err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "a file is damaged") {
		t.Errorf("without node types: warnings %q, error %v, want one that says so", p.Warnings, err)
	}
	w.blobs.flipped = second.Engines[0].Digest
	back.DryRun = false
	if p, err = w.Rollback(t.Context(), back); err != nil || len(p.Warnings) != 1 ||
		!strings.Contains(p.Warnings[0], "1.1.0, the current head, cannot be read") {
		t.Errorf("from a damaged head: warnings %q, error %v, want one that says so", p.Warnings, err)
	}
}
