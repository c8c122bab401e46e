// Package cireport says on one page what a promotion would change and what it lacks, in the formats that CI systems show:
// Markdown, JUnit, SARIF and GitLab's code quality.
package cireport

import (
	"math"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/validators"
)

// Report is what is known about the promotion of a release.
type Report struct {
	Release     string `json:"release"`        // ref with its digest
	Page        string `json:"page,omitempty"` // of the release at the service; empty without one
	Model       string `json:"model"`
	Version     string `json:"version"`
	Destination string `json:"destination"` // environment
	// Run is the URL of the CI run that built the release, and RunClaimed is true if only the job says so.
	Run        string `json:"run,omitempty"`
	RunClaimed bool   `json:"runClaimed,omitempty"`
	// Current is the version that the destination has now; empty if it has none.
	Current      string             `json:"current,omitempty"`
	Unchanged    bool               `json:"unchanged"` // it is the release that is there
	Allowed      bool               `json:"allowed"`   // every requirement is met
	Requirements []Requirement      `json:"requirements"`
	Engines      []Engine           `json:"engines"`
	Gone         []string           `json:"gone,omitempty"`    // labels that only the release there now has
	LeftOut      []evidence.LeftOut `json:"leftOut,omitempty"` // engines of the spec that were not built
	Looser       []string           `json:"looser,omitempty"`  // limits that are looser than those there now
	Interface    []string           `json:"interface,omitempty"`
	Nodes        []api.NodeChange   `json:"nodes,omitempty"` // what node types have now and would get
	Steps        *Steps             `json:"steps,omitempty"`
	// Unknown says what could not be read, and is missing above for that reason.
	Unknown []string `json:"unknown,omitempty"`
}

// Requirement is a requirement of the destination, and how to meet it.
type Requirement struct {
	policy.Requirement
	Page    string `json:"page,omitempty"`    // of the subject at the service; empty without one
	Command string `json:"command,omitempty"` // that meets it; empty where no single one does, or it is met
}

// Engine is an engine beside the one with its label in the destination.
type Engine struct {
	Label   string           `json:"label"`
	Page    string           `json:"page,omitempty"` // at the service; empty without one
	Digest  registry.Digest  `json:"digest"`
	Bytes   int64            `json:"bytes"`
	Verdict evidence.Verdict `json:"verdict"` // empty: no report of a trusted verifier
	// Reasons are why it did not pass.
	Reasons []string `json:"reasons,omitempty"`
	// Tightest is the check with the least margin, which is the part of the limit that is left.
	Tightest *evidence.Check  `json:"tightest,omitempty"`
	Margin   *evidence.Figure `json:"margin,omitempty"`
	Checks   evidence.Checks  `json:"checks,omitempty"`

	Accuracy *evidence.Accuracy        `json:"accuracy,omitempty"`
	Against  *evidence.CurrentAccuracy `json:"against,omitempty"` // the engine there now, on the same cases
	Latency  *evidence.Latency         `json:"latency,omitempty"`
	Slower   *evidence.LatencyRatio    `json:"slower,omitempty"` // beside the engine there now, in one run
	// LatencyVerdict is empty where there is no performance report.
	LatencyVerdict evidence.Verdict `json:"latencyVerdict,omitempty"`

	Was      registry.Digest `json:"was,omitempty"`      // engine of this label there now; empty: none
	WasBytes int64           `json:"wasBytes,omitempty"` // its size

	Built *Built `json:"built,omitempty"` // absent where no provenance that counts says it
}

// Passed reports whether the newest reports of the engine passed. Latency without a limit has no verdict but that it was
// recorded.
func (e Engine) Passed() bool {
	fast := e.LatencyVerdict == "" || e.LatencyVerdict == evidence.VerdictRecorded || e.LatencyVerdict == evidence.VerdictPass
	return e.Verdict == evidence.VerdictPass && fast
}

// Steps is what a build took, as its provenance says.
type Steps struct {
	Count   int           `json:"count"`
	Cached  int           `json:"cached"`    // taken from a cache
	Elapsed time.Duration `json:"elapsedNs"` // of the others
	// Cost is what a runner of a given price was paid for that time, in the currency of the price. Nil: none was given.
	Cost *float64 `json:"cost,omitempty"`
}

// price says what the time of the build cost on a runner that costs perHour; 0 says nothing.
func (r *Report) price(perHour float64) {
	if r.Steps != nil && perHour > 0 {
		cost := r.Steps.Elapsed.Hours() * perHour
		r.Steps.Cost = &cost
	}
}

// Unmet are the requirements that are neither met nor skipped.
func (r Report) Unmet() []Requirement {
	return slices.DeleteFunc(slices.Clone(r.Requirements), func(req Requirement) bool { return req.Met || req.Skipped })
}

// tightest finds the check with the least margin.
func tightest(checks evidence.Checks) (worst *evidence.Check, margin *evidence.Figure) {
	least := math.Inf(1)
	for i, c := range checks {
		m := validators.Margin(c)
		if c.Verdict != evidence.VerdictPass {
			m = math.Min(m, 0) // a limit that is not decided counts as one without margin
		}
		if worst == nil || m < least {
			worst, least = &checks[i], m
		}
	}
	if worst == nil || math.IsNaN(least) {
		return worst, nil
	}
	return worst, new(evidence.Figure(least))
}

// failed are the checks that did not pass.
func failed(checks evidence.Checks) evidence.Checks {
	return slices.DeleteFunc(slices.Clone(checks), func(c evidence.Check) bool { return c.Verdict == evidence.VerdictPass })
}

// checkName names a check within an engine.
func checkName(c evidence.Check) string {
	name := c.Figure
	if c.Output != "" {
		name = c.Output + " " + name
	}
	if c.Slice != "" {
		name += " of " + c.Slice
	}
	return name
}

// plain is text in one line without control characters.
func plain(s string) string { return strings.Join(strings.Fields(registry.PlainText(s)), " ") }
