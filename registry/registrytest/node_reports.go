package registrytest

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// NodeReporting is a registry that takes reports of nodes, which count for an hour.
type NodeReporting struct {
	Registry
	Nodes registry.NodeReporter
	// Pass moves the clock by which reports expire; nil where a test cannot.
	Pass func(time.Duration)
}

// TestNodeReporter is the contract of [registry.NodeReporter].
func TestNodeReporter(t *testing.T, open func(t *testing.T) NodeReporting) {
	report := func(r registry.Release, node string) registry.NodeReport {
		return registry.NodeReport{Node: node, NodeType: "g6.xlarge", Environment: "prod", Model: r.Model, Release: r.Digest, Engine: r.Engines[0].Digest}
	}
	listed := func(t *testing.T, n NodeReporting, environment, model string) (names []string) {
		t.Helper()
		all, err := registry.AllNodeReports(t.Context(), n.Nodes, environment, model)
		must(t, err)
		for _, r := range all {
			names = append(names, r.Node+" "+r.Version)
		}
		return names
	}
	t.Run("report and list", func(t *testing.T) {
		t.Parallel()
		n := open(t)
		r := n.Promoted(t, Build{})
		if got := listed(t, n, "prod", ""); len(got) > 0 {
			t.Errorf("before any report: %v", got)
		}
		stored, err := n.Nodes.ReportNode(t.Context(), report(r, "edge-7"))
		must(t, err)
		if stored.Version != "1.0.0" || stored.Label != r.Engines[0].Label() || stored.ExpiresOn.Sub(stored.ReportedOn) != time.Hour || stored.NodeType != "g6.xlarge" {
			t.Errorf("stored %+v, want version and label of the release, and an hour", stored)
		}
		_, err = n.Nodes.ReportNode(t.Context(), report(r, "edge-8"))
		must(t, err)
		wantEqual(t, listed(t, n, "prod", ""), []string{"edge-7 1.0.0", "edge-8 1.0.0"})
		wantEqual(t, listed(t, n, "prod", r.Model), []string{"edge-7 1.0.0", "edge-8 1.0.0"})
		wantEqual(t, len(listed(t, n, "staging", "")), 0)
		wantEqual(t, len(listed(t, n, "prod", "vision")), 0) // a name that is the beginning of another one
	})
	t.Run("a later report replaces", func(t *testing.T) {
		t.Parallel()
		n := open(t)
		first, second := n.Promoted(t, Build{}), n.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
		for _, r := range []registry.Release{first, second, second} {
			_, err := n.Nodes.ReportNode(t.Context(), report(r, "edge-7"))
			must(t, err)
		}
		wantEqual(t, listed(t, n, "prod", ""), []string{"edge-7 1.1.0"})
	})
	t.Run("pages", func(t *testing.T) {
		t.Parallel()
		n := open(t)
		r := n.Promoted(t, Build{})
		for _, node := range []string{"a", "b", "c"} {
			_, err := n.Nodes.ReportNode(t.Context(), report(r, node))
			must(t, err)
		}
		var names []string
		pages := 0
		for after := ""; ; pages++ {
			page, err := n.Nodes.NodeReports(t.Context(), "prod", r.Model, after, 2)
			must(t, err)
			for _, one := range page.Items {
				names = append(names, one.Node)
			}
			if after = page.Next; after == "" {
				break
			}
		}
		wantEqual(t, names, []string{"a", "b", "c"})
		wantEqual(t, pages, 1) // and the first
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		n := open(t)
		r := n.Promoted(t, Build{})
		for name, c := range map[string]struct {
			edit func(*registry.NodeReport)
			code registry.Code
		}{
			"no name":                  {func(x *registry.NodeReport) { x.Node = "" }, registry.CodeInvalid},
			"a name of another line":   {func(x *registry.NodeReport) { x.Node = "a\nb" }, registry.CodeInvalid},
			"a name with a slash":      {func(x *registry.NodeReport) { x.Node = "a/b" }, registry.CodeInvalid},
			"a name that is too long":  {func(x *registry.NodeReport) { x.Node = strings.Repeat("a", 254) }, registry.CodeInvalid},
			"a node type with a space": {func(x *registry.NodeReport) { x.NodeType = "g6 xlarge" }, registry.CodeInvalid},
			"no engine":                {func(x *registry.NodeReport) { x.Engine = "" }, registry.CodeInvalid},
			"another engine":           {func(x *registry.NodeReport) { x.Engine = r.Digest }, registry.CodeNotFound},
			"an unknown release":       {func(x *registry.NodeReport) { x.Release = "sha256:" + registry.Digest(strings.Repeat("0", 64)) }, registry.CodeNotFound},
			"an unknown environment":   {func(x *registry.NodeReport) { x.Environment = "nowhere" }, registry.CodeNotFound},
		} {
			x := report(r, "edge-7")
			c.edit(&x)
			_, err := n.Nodes.ReportNode(t.Context(), x)
			if registry.CodeOf(err) != c.code {
				t.Errorf("%s: error %v, want the code %s", name, err, c.code)
			}
		}
		wantEqual(t, len(listed(t, n, "prod", "")), 0)
		_, err := n.Nodes.NodeReports(t.Context(), "", "", "", 0)
		wantCode(t, err, registry.CodeInvalid)
	})
	t.Run("expire", func(t *testing.T) {
		t.Parallel()
		n := open(t)
		if n.Pass == nil {
			t.Skip("this registry has a clock that a test cannot move")
		}
		r := n.Promoted(t, Build{})
		for _, node := range []string{"a", "b"} {
			_, err := n.Nodes.ReportNode(t.Context(), report(r, node))
			must(t, err)
			n.Pass(30 * time.Minute)
		}
		wantEqual(t, listed(t, n, "prod", ""), []string{"b 1.0.0"}) // after an hour, to the microsecond
		_, err := n.Nodes.ReportNode(t.Context(), report(r, "a"))
		must(t, err)
		wantEqual(t, listed(t, n, "prod", ""), []string{"a 1.0.0", "b 1.0.0"})
	})
}
