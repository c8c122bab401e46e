package storage

import (
	"context"
	"maps"
	"regexp"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// MaxNodeReports is about how many nodes one caller may report for a model in an environment.
const MaxNodeReports = 10_000

// NodeReport is what a node says: that it has an engine of an environment. Nothing is decided by reports. They
// tell people where an engine is that must not be used any more.
type NodeReport struct {
	Node        string          `json:"node"`               // as the node calls itself
	NodeType    string          `json:"nodeType,omitempty"` // the same
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Release     registry.Digest `json:"release"`
	Engine      registry.Digest `json:"engine"`
	// Machine tells machines apart that report by one name and one token. A node sends what only that machine has, as 64 hexadecimal
	// digits; the registry keeps a digest of it, see [NodeReport.Bound]. Empty: the node has no identity of its own.
	Machine string `json:"machine,omitempty"`
	// Version and Label are those of the release and the engine. The registry sets them and what follows.
	Version    string    `json:"version"`
	Label      string    `json:"label"`
	Reporter   string    `json:"reporter"` // principal that said so
	ReportedOn time.Time `json:"reportedOn"`
	ExpiresOn  time.Time `json:"expiresOn"`
	Silent     bool      `json:"silent,omitempty"` // it has expired; set in lists
}

// NodeReports stores reports by [NodeReport.Name].
type NodeReports interface {
	registry.Table[NodeReport]
	// CountNames counts the documents whose names begin with prefix, up to most.
	CountNames(ctx context.Context, prefix string, most int) (int, error)
	// DeleteSame deletes a document if it is still the one that was read, and reports whether it did.
	DeleteSame(ctx context.Context, read registry.Named[NodeReport]) (bool, error)
}

// NodeReporter takes and lists what nodes report.
type NodeReporter interface {
	// ReportNode stores a report and returns it as stored. It replaces an earlier one of the same caller and machine about
	// the same node, environment and model, and no other. Errors: CodeInvalid for a malformed report; CodeNotFound
	// if the environment has no such release, or the release no such engine; CodeFull if the caller reported
	// [MaxNodeReports] other nodes; CodeUnavailable if this registry takes no reports.
	ReportNode(ctx context.Context, r NodeReport) (NodeReport, error)
	// NodeReports lists the reports of an environment that have not expired. An empty model means all. The page begins
	// after the Next of the page before: here the name of a report ([NodeReport.Name]), over the network a cursor.
	// Errors: CodeInvalid without an environment.
	NodeReports(ctx context.Context, environment, model, after string, limit int) (Page[NodeReport], error)
	// SilentNodes lists the reports that have expired, in pages as NodeReports: what nodes had that say nothing any more. They
	// are kept for as long again as they counted. Errors: as NodeReports.
	SilentNodes(ctx context.Context, environment, model, after string, limit int) (Page[NodeReport], error)
}

// AllNodeReports lists every page. A nil reporter has none.
func AllNodeReports(ctx context.Context, from NodeReporter, environment, model string) ([]NodeReport, error) {
	if from == nil {
		return nil, nil
	}
	return allReports(ctx, from.NodeReports, environment, model)
}

// AllSilentNodes is the same of the nodes that fell silent.
func AllSilentNodes(ctx context.Context, from NodeReporter, environment, model string) ([]NodeReport, error) {
	if from == nil {
		return nil, nil
	}
	return allReports(ctx, from.SilentNodes, environment, model)
}

func allReports(ctx context.Context, list func(ctx context.Context, environment, model, after string, limit int) (Page[NodeReport], error),
	environment, model string) (all []NodeReport, err error) {
	for after := ""; ; {
		page, err := list(ctx, environment, model, after, MaxPage)
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Items...); page.Next == "" {
			return all, nil
		}
		after = page.Next
	}
}

// nodeName matches the names of nodes in Kubernetes, and host names.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

// machineProof matches what a node sends as its machine.
var machineProof = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Validate refuses a report that is malformed. It does not look at what the registry sets. Errors: CodeInvalid.
func (r NodeReport) Validate() error {
	if !nodeName.MatchString(r.Node) {
		return registry.Errorf(registry.CodeInvalid, "node report: node %.100q: want a name of letters, digits and . _ - of at most 253 characters, as Kubernetes and hosts have", r.Node)
	}
	if r.NodeType != "" {
		if err := registry.ValidateName(r.NodeType); err != nil {
			return registry.Errorf(registry.CodeInvalid, "node report: node type: %w", err)
		}
	}
	if r.Machine != "" && !machineProof.MatchString(r.Machine) {
		return registry.Errorf(registry.CodeInvalid, "node report: machine: want 64 hexadecimal digits, in lower case")
	}
	if err := registry.ValidateModel(r.Model); err != nil {
		return registry.Errorf(registry.CodeInvalid, "node report: %w", err)
	}
	for what, d := range map[string]registry.Digest{"release": r.Release, "engine": r.Engine} {
		if d.Validate() != nil {
			return registry.Errorf(registry.CodeInvalid, "node report: %s %.100q: want sha256 and 64 hexadecimal digits", what, d)
		}
	}
	return nil
}

// Bound is a report as it is stored: bound to the machine that sent it. Who lists reports does not learn what a machine sends, and so
// cannot report in its place.
func (r NodeReport) Bound() NodeReport {
	if r.Machine != "" {
		r.Machine = digest.FromString(r.Machine).Encoded()[:32]
	}
	return r
}

// Name is where a report is stored: the identity of who may replace it. Callers, and machines that share the token of one caller, have
// names of their own, so none can replace or hide what another one said. Names of one environment and model follow one another, and so
// do those of one reporter among them.
func (r NodeReport) Name() string {
	name := NodeReportsBy(r.Environment, r.Model, r.Reporter) + r.Node
	if r.Machine != "" {
		name += "/" + r.Machine // no name of a node has a slash
	}
	return name
}

// NodeReportsBy begins the names of the reports of one reporter among those of an environment and a model.
func NodeReportsBy(environment, model, reporter string) string {
	return NodeReportsOf(environment, model) + reporterKey(reporter)
}

// SharedNames are the names of nodes that several identities report for one environment and model, by how many: machines with one
// name, one machine that reports by several tokens or was set up again, or somebody who says what is not so.
func SharedNames(reports []NodeReport) map[NodeName]int {
	count := make(map[NodeName]int)
	for _, r := range reports {
		count[r.NodeName()]++
	}
	maps.DeleteFunc(count, func(_ NodeName, n int) bool { return n < 2 })
	return count
}

// NodeName is what a node calls itself where it has an engine of a model.
type NodeName struct{ Environment, Model, Node string }

// NodeName is the name of the node of a report.
func (r NodeReport) NodeName() NodeName { return NodeName{r.Environment, r.Model, r.Node} }

// NodeReportsOf begins the names of the reports of an environment and a model; an empty model means all. No name of a
// model has a component that begins with "@".
func NodeReportsOf(environment, model string) string {
	if model == "" {
		return environment + "/"
	}
	return environment + "/" + model + "/@"
}

// reporterKey is of one length for every name.
func reporterKey(reporter string) string { return digest.FromString(reporter).Encoded()[:32] + "/" }

// NodeStanding is how what a node has stands to the head of its environment.
type NodeStanding string

// The standings of a node.
const (
	NodeHasHead  NodeStanding = "head"   // it has the release that is the head
	NodeHasOther NodeStanding = "other"  // it has another release
	NodeSilent   NodeStanding = "silent" // its report has expired: what it has is not known
)

// Standing compares a report with the head of its environment.
func (r NodeReport) Standing(head registry.Digest, now time.Time) NodeStanding {
	switch {
	case r.Expired(now):
		return NodeSilent
	case r.Release == head:
		return NodeHasHead
	}
	return NodeHasOther
}

// Forgotten reports whether a report may be deleted: it expired, and has been kept for as long again as it counted.
func (r NodeReport) Forgotten(now time.Time) bool {
	return r.Expired(now.Add(-r.ExpiresOn.Sub(r.ReportedOn)))
}

// Expired reports whether a report no longer counts.
func (r NodeReport) Expired(now time.Time) bool { return !now.Before(r.ExpiresOn) }
