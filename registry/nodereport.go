package registry

import (
	"context"
	"regexp"
	"time"

	"github.com/opencontainers/go-digest"
)

// MaxNodeReports is about how many nodes one caller may report for a model in an environment.
const MaxNodeReports = 10_000

// NodeReport is what a node says: that it has an engine of an environment. Nothing is decided by reports. They
// tell people where an engine is that must not be used any more.
type NodeReport struct {
	Node        string `json:"node"`               // as the node calls itself
	NodeType    string `json:"nodeType,omitempty"` // the same
	Environment string `json:"environment"`
	Model       string `json:"model"`
	Release     Digest `json:"release"`
	Engine      Digest `json:"engine"`
	// Version and Label are those of the release and the engine. The registry sets them and what follows.
	Version    string    `json:"version"`
	Label      string    `json:"label"`
	Reporter   string    `json:"reporter"` // principal that said so
	ReportedOn time.Time `json:"reportedOn"`
	ExpiresOn  time.Time `json:"expiresOn"`
}

// NodeReports stores reports by [NodeReport.Name].
type NodeReports = Table[NodeReport]

// NodeReporter takes and lists what nodes report.
type NodeReporter interface {
	// ReportNode stores a report and returns it as stored. It replaces an earlier one of the same caller about
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
	var all []NodeReport
	if from == nil {
		return nil, nil
	}
	for after := ""; ; {
		page, err := from.NodeReports(ctx, environment, model, after, MaxPage)
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

// Validate refuses a report that is malformed. It does not look at what the registry sets. Errors: CodeInvalid.
func (r NodeReport) Validate() error {
	if !nodeName.MatchString(r.Node) {
		return Errorf(CodeInvalid, "node report: node %.100q: want a name of letters, digits and . _ - of at most 253 characters, as Kubernetes and hosts have", r.Node)
	}
	if r.NodeType != "" {
		if err := ValidateName(r.NodeType); err != nil {
			return Errorf(CodeInvalid, "node report: node type: %w", err)
		}
	}
	if err := ValidateModel(r.Model); err != nil {
		return Errorf(CodeInvalid, "node report: %w", err)
	}
	for what, d := range map[string]Digest{"release": r.Release, "engine": r.Engine} {
		if d.Validate() != nil {
			return Errorf(CodeInvalid, "node report: %s %.100q: want sha256 and 64 hexadecimal digits", what, d)
		}
	}
	return nil
}

// Name is where a report is stored. Names of one environment and model follow one another, and so do those of one
// reporter among them.
func (r NodeReport) Name() string {
	return NodeReportsOf(r.Environment, r.Model) + reporterKey(r.Reporter) + r.Node
}

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
func (r NodeReport) Standing(head Digest, now time.Time) NodeStanding {
	switch {
	case r.Expired(now):
		return NodeSilent
	case r.Release == head:
		return NodeHasHead
	}
	return NodeHasOther
}

// Forgotten reports whether a report of which the registry keeps each for life may be deleted.
func (r NodeReport) Forgotten(now time.Time, life time.Duration) bool {
	return r.Expired(now.Add(-life))
}

// Expired reports whether a report no longer counts.
func (r NodeReport) Expired(now time.Time) bool { return !now.Before(r.ExpiresOn) }
