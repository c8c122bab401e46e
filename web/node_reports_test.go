package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

const digitsOnNodes = "/nodes?model=vision/digits&environment=prod"

// catalogClock is a clock of a catalog that a test moves.
type catalogClock struct{ *registrytest.Clock }

func (c catalogClock) CatalogTime(context.Context) (time.Time, error) { return c.Now(), nil }

// fleet is nodes that report to a world.
type fleet struct {
	*world
	nodes storage.NodeReporter
	clock *registrytest.Clock
}

// withFleet is a world whose service takes reports for an hour.
func withFleet(t *testing.T, edits ...func(*page.Config)) fleet {
	t.Helper()
	f := fleet{clock: registrytest.NewClock()}
	f.world = setup(t, append(edits, func(c *page.Config) {
		f.nodes = service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: c.Registry, Clock: catalogClock{f.clock}, Life: time.Hour}
		c.Nodes, c.Now = &page.NodeReports{From: access.GuardNodes(f.nodes), Life: time.Hour}, f.clock.Now
	})...)
	return f
}

// report says that a node has the first engine of a release in prod.
func (f fleet) report(t *testing.T, node, nodeType string, r artifact.Release) {
	t.Helper()
	ctx := storage.WithPrincipal(t.Context(), *everything())
	_, err := f.nodes.ReportNode(ctx, storage.NodeReport{Node: node, NodeType: nodeType, Environment: "prod", Model: r.Model, Release: r.Digest, Engine: r.Engines[0].Digest})
	if err != nil {
		t.Fatal(err)
	}
}

// Pages say which nodes have the head, which have another release, which have what is in quarantine, and which are silent.
func TestNodeReports(t *testing.T) {
	t.Parallel()
	f := withFleet(t)
	first := f.Promoted(t, registrytest.Build{})
	wantPage(t, "before any report", f.get(everything(), digitsOnNodes), http.StatusOK, "No node has reported an engine in the last 1 h", "0 nodes")
	f.report(t, "lost-1", "box", first)
	f.clock.Pass(50 * time.Minute)
	f.report(t, "late-1", "box", first)
	second := f.Promoted(t, registrytest.Build{Version: "2.0.0", Salt: "2"})
	f.report(t, "new-1", "box", second)
	f.report(t, "new-2", "other", second)
	f.clock.Pass(20 * time.Minute)
	for _, page := range []string{digitsOnNodes, modelPage + "?environment=prod"} {
		wantPage(t, page, f.get(everything(), page), http.StatusOK,
			`<span class="num">1 node</span>`, "not the head", "late-1", "silent", "lost-1", `<span class="num">2 nodes</span>`, "new-1", "new-2", "20 min ago", "by jane",
			"/api/v1/node-reports?environment=prod&amp;model=vision%2Fdigits", "silent=true")
	}
	wantPage(t, "by node type", f.get(everything(), digitsOnNodes), http.StatusOK, `<td data-label="That report" class="whole num">2 nodes</td>`)
	wantPage(t, "all models", f.get(everything(), "/nodes"), http.StatusOK, "vision/digits", "late-1")

	f.AttachTo(t, "prod", first, first.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	wantPage(t, "in quarantine", f.get(everything(), digitsOnNodes), http.StatusOK, "in quarantine", "wrong labels", "late-1")
	wantWithout(t, "in quarantine", f.get(everything(), digitsOnNodes), "not the head")

	f.clock.Pass(time.Hour)
	wantWithout(t, "after twice the time", f.get(everything(), digitsOnNodes), "lost-1")
	wantPage(t, "after the time", f.get(everything(), digitsOnNodes), http.StatusOK, "late-1", "new-2", "silent")
}

// Who may not read an environment is told so, and a service that takes no reports says what turns them on.
func TestNodeReportsThatAreNotShown(t *testing.T) {
	t.Parallel()
	f := withFleet(t)
	f.report(t, "secret-1", "", f.Promoted(t, registrytest.Build{}))
	other := may("staging", "**", storage.PermissionRead)
	wantPage(t, "a reader of staging", f.get(other, digitsOnNodes), http.StatusOK, "You may not read prod, so what its nodes report is not shown")
	wantWithout(t, "a reader of staging", f.get(other, digitsOnNodes), "secret-1")
	wantWithout(t, "a reader of another model", f.get(may("**", "text/**", storage.PermissionRead), "/nodes?environment=prod"), "secret-1")

	off := setup(t, func(c *page.Config) { c.Nodes = &page.NodeReports{} })
	off.Promoted(t, registrytest.Build{})
	wantPage(t, "no reports are taken", off.get(everything(), "/nodes"), http.StatusOK, "This service takes no reports of nodes", "--node-reports 24h")
	wantWithout(t, "the page of a model", off.get(everything(), modelPage), "What nodes have")
}

// A page names some nodes of a large fleet, and counts them all.
func TestNodeReportsOfManyNodes(t *testing.T) {
	t.Parallel()
	f := withFleet(t)
	r := f.Promoted(t, registrytest.Build{})
	for i := range 120 {
		f.report(t, fmt.Sprintf("edge-%03d", i), "box", r)
	}
	got := f.get(everything(), digitsOnNodes)
	wantPage(t, "many", got, http.StatusOK, "120 nodes", "edge-049", "and 70 more")
	wantWithout(t, "many", got, "edge-050")
	if got.Body.Len() > largest {
		t.Errorf("the page has %d bytes, want at most %d", got.Body.Len(), largest)
	}
}

// Reports of many releases do not make one that is in quarantine look as if it were not.
func TestNodeReportsOfManyReleases(t *testing.T) {
	t.Parallel()
	f := withFleet(t)
	bad := f.Promoted(t, registrytest.Build{})
	f.AttachTo(t, "prod", bad, bad.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	f.report(t, "bad-1", "box", bad)
	for i := range 20 {
		f.clock.Pass(time.Second)
		f.report(t, fmt.Sprintf("edge-%d", i), "box", f.Promoted(t, registrytest.Build{Version: fmt.Sprintf("2.0.%d", i), Salt: fmt.Sprint(i)}))
	}
	got := f.get(everything(), digitsOnNodes)
	wantPage(t, "many releases", got, http.StatusOK, "bad-1", "not looked at: it may be in quarantine")
	if n := strings.Count(got.Body.String(), "not looked at"); n != 1 {
		t.Errorf("%d groups were not looked at, want the oldest alone", n)
	}
}
