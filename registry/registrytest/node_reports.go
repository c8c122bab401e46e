package registrytest

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// NodeReporting is a registry that takes reports of nodes, which count for an hour.
type NodeReporting struct {
	Registry
	Nodes storage.NodeReporter
	// Pass moves the clock by which reports expire; nil if a test cannot.
	Pass func(time.Duration)
}

// TestNodeReporter is the contract of [storage.NodeReporter].
func TestNodeReporter(t *testing.T, open func(t *testing.T) NodeReporting) {
	for name, test := range map[string]func(*testing.T, NodeReporting){
		"report and list":         testNodeReported,
		"a later report replaces": testNodeReportReplaced,
		"pages":                   testNodeReportPages,
		"refused":                 testNodeReportRefused,
		"expire":                  testNodeReportExpires,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// nodeReport says that a node has the first engine of a release in prod.
func nodeReport(r artifact.Release, node string) storage.NodeReport {
	return storage.NodeReport{Node: node, NodeType: "g6.xlarge", Environment: "prod", Model: r.Model, Release: r.Digest, Engine: r.Engines[0].Digest}
}

// reported lists the nodes of an environment, each with the version that it has.
func (n NodeReporting) reported(t *testing.T, environment, model string) (names []string) {
	t.Helper()
	all, err := storage.AllNodeReports(t.Context(), n.Nodes, environment, model)
	must(t, err)
	for _, r := range all {
		names = append(names, r.Node+" "+r.Version)
	}
	return names
}

func testNodeReported(t *testing.T, n NodeReporting) {
	t.Helper()
	r := n.Promoted(t, Build{})
	if got := n.reported(t, "prod", ""); len(got) > 0 {
		t.Errorf("before any report: %v", got)
	}
	stored, err := n.Nodes.ReportNode(t.Context(), nodeReport(r, "edge-7"))
	must(t, err)
	if stored.Version != "1.0.0" || stored.Label != r.Engines[0].Label() || stored.ExpiresOn.Sub(stored.ReportedOn) != time.Hour || stored.NodeType != "g6.xlarge" {
		t.Errorf("stored %+v, want version and label of the release, and an hour", stored)
	}
	_, err = n.Nodes.ReportNode(t.Context(), nodeReport(r, "edge-8"))
	must(t, err)
	wantEqual(t, n.reported(t, "prod", ""), []string{"edge-7 1.0.0", "edge-8 1.0.0"})
	wantEqual(t, n.reported(t, "prod", r.Model), []string{"edge-7 1.0.0", "edge-8 1.0.0"})
	wantEqual(t, len(n.reported(t, "staging", "")), 0)
	wantEqual(t, len(n.reported(t, "prod", "vision")), 0) // a name that is the beginning of another one
}

func testNodeReportReplaced(t *testing.T, n NodeReporting) {
	t.Helper()
	first, second := n.Promoted(t, Build{}), n.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
	for _, r := range []artifact.Release{first, second, second} {
		_, err := n.Nodes.ReportNode(t.Context(), nodeReport(r, "edge-7"))
		must(t, err)
	}
	wantEqual(t, n.reported(t, "prod", ""), []string{"edge-7 1.1.0"})
}

func testNodeReportPages(t *testing.T, n NodeReporting) {
	t.Helper()
	r := n.Promoted(t, Build{})
	for _, node := range []string{"a", "b", "c"} {
		_, err := n.Nodes.ReportNode(t.Context(), nodeReport(r, node))
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
}

func testNodeReportRefused(t *testing.T, n NodeReporting) {
	t.Helper()
	r := n.Promoted(t, Build{})
	for name, c := range map[string]struct {
		edit func(*storage.NodeReport)
		code registry.Code
	}{
		"no name":                  {func(x *storage.NodeReport) { x.Node = "" }, registry.CodeInvalid},
		"a name of another line":   {func(x *storage.NodeReport) { x.Node = "a\nb" }, registry.CodeInvalid},
		"a name with a slash":      {func(x *storage.NodeReport) { x.Node = "a/b" }, registry.CodeInvalid},
		"a name that is too long":  {func(x *storage.NodeReport) { x.Node = strings.Repeat("a", 254) }, registry.CodeInvalid},
		"a node type with a space": {func(x *storage.NodeReport) { x.NodeType = "g6 xlarge" }, registry.CodeInvalid},
		"a machine of spaces":      {func(x *storage.NodeReport) { x.Machine = strings.Repeat(" ", 64) }, registry.CodeInvalid},
		"a short machine":          {func(x *storage.NodeReport) { x.Machine = "ab" }, registry.CodeInvalid},
		"no engine":                {func(x *storage.NodeReport) { x.Engine = "" }, registry.CodeInvalid},
		"another engine":           {func(x *storage.NodeReport) { x.Engine = r.Digest }, registry.CodeNotFound},
		"an unknown release":       {func(x *storage.NodeReport) { x.Release = "sha256:" + registry.Digest(strings.Repeat("0", 64)) }, registry.CodeNotFound},
		"an unknown environment":   {func(x *storage.NodeReport) { x.Environment = "nowhere" }, registry.CodeNotFound},
	} {
		x := nodeReport(r, "edge-7")
		c.edit(&x)
		_, err := n.Nodes.ReportNode(t.Context(), x)
		if registry.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want the code %s", name, err, c.code)
		}
	}
	wantEqual(t, len(n.reported(t, "prod", "")), 0)
	_, err := n.Nodes.NodeReports(t.Context(), "", "", "", 0)
	wantCode(t, err, registry.CodeInvalid)
}

func testNodeReportExpires(t *testing.T, n NodeReporting) {
	t.Helper()
	if n.Pass == nil {
		t.Skip("this registry has a clock that a test cannot move")
	}
	r := n.Promoted(t, Build{})
	for _, node := range []string{"a", "b"} {
		_, err := n.Nodes.ReportNode(t.Context(), nodeReport(r, node))
		must(t, err)
		n.Pass(30 * time.Minute)
	}
	wantEqual(t, n.reported(t, "prod", ""), []string{"b 1.0.0"}) // after an hour, to the microsecond
	wantEqual(t, n.silent(t), []string{"a 1.0.0"})
	_, err := n.Nodes.ReportNode(t.Context(), nodeReport(r, "a"))
	must(t, err)
	wantEqual(t, n.reported(t, "prod", ""), []string{"a 1.0.0", "b 1.0.0"})
	wantEqual(t, len(n.silent(t)), 0)
	n.Pass(time.Hour)
	wantEqual(t, n.silent(t), []string{"a 1.0.0", "b 1.0.0"})
	n.Pass(30 * time.Minute)
	wantEqual(t, n.silent(t), []string{"a 1.0.0"}) // the other one has been silent for as long as it counted
}

// silent lists the nodes of prod that say nothing any more, each with the version that it had.
func (n NodeReporting) silent(t *testing.T) (names []string) {
	t.Helper()
	page, err := n.Nodes.SilentNodes(t.Context(), "prod", "", "", 0)
	must(t, err)
	for _, r := range page.Items {
		if !r.Silent {
			t.Errorf("the silent node %s is not said to be silent", r.Node)
		}
		names = append(names, r.Node+" "+r.Version)
	}
	return names
}
