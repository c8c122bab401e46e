package policy

import (
	"cmp"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// The requirements that an environment can have. requirements.go describes each of them.
const (
	RequireSignature            = "signature"
	RequireProvenance           = "provenance"
	RequireParity               = "parity"
	RequireRecordedCases        = "recorded-cases"
	RequireSeparateRoles        = "separate-roles"
	RequireReproducibleBytes    = "reproducible-bytes"
	RequireReproducibleSemantic = "reproducible-semantic"
	RequireNoLooser             = "no-looser"
	RequireCompatibleInterface  = "compatible-interface"
	RequireNoDowngrade          = "no-downgrade"

	requireQuarantine   = "no-quarantine"
	requireUnrestricted = "no-restriction"
	requireNoFailure    = "no-failure"
	requireOperators    = "operators"
	requireAccuracy     = "accuracy"
	requireCeilings     = "ceilings"
	requireCIJob        = "ci-job"
	requireReports      = "reports"
	RequireServed       = "served"
	RequireCoverage     = "coverage"
	RequireApprovals    = "approvals"
	requireNoFreeze     = "no-freeze"
	requireBreakGlass   = "break-glass"
)

// Requirement is one requirement and whether it is met.
type Requirement struct {
	Name     string            `json:"name"`
	Subject  string            `json:"subject"` // "release", the engine's label, or "node type" and its name
	Met      bool              `json:"met"`
	Skipped  bool              `json:"skipped,omitempty"` // it is unmet, and approvers agreed to skip it
	Detail   string            `json:"detail"`            // what meets it, or what is missing and what to do
	Evidence []registry.Digest `json:"evidence,omitempty"`
	// Refused is true if it is unmet because something speaks against the release, such as a report that did not
	// pass: what is missing besides would not help.
	Refused bool `json:"refused,omitempty"`
	// Unshown is true if a node type gets an engine that too few verifiers found to pass on such a machine.
	Unshown bool `json:"unshown,omitempty"`

	missing string            // Detail without what to do, if that is another text
	until   time.Time         // from when it may be decided otherwise; zero: time alone does not change it
	against []evidence.Report // what keeps an engine from some nodes
}

// Missing is Detail without the advice to build or promote, for a machine that does neither.
func (req Requirement) Missing() string { return cmp.Or(req.missing, req.Detail) }

// subjectRelease is the subject of requirements on the release as a whole.
const subjectRelease = "release"

// present decides by whether there are claims.
func (req *Requirement) present(claims []evidence.Claim, met, missing, advice string) {
	req.Met, req.Detail = len(claims) > 0, met
	if !req.Met {
		req.missing, req.Detail = missing, missing+advice
	}
	req.cite(claims...)
}

func (req *Requirement) cite(claims ...evidence.Claim) {
	for _, c := range claims {
		req.Evidence = append(req.Evidence, c.Bundle)
	}
}

// deny marks the requirement as unmet because something is missing, unless it is unmet already.
func (req *Requirement) deny(format string, args ...any) {
	if req.Met {
		req.Met, req.Detail = false, fmt.Sprintf(format, args...)
	}
}

// refuse marks the requirement as unmet because something speaks against the release. The first such reason goes
// before what is missing.
func (req *Requirement) refuse(format string, args ...any) {
	if !req.Refused {
		req.Met, req.Refused, req.Detail = false, true, fmt.Sprintf(format, args...)
	}
}

// SomeNodes reports whether the requirement is unmet for some nodes only: [Requirement.On] says for which.
func (req Requirement) SomeNodes() bool { return !req.Met && len(req.against) > 0 }

// Failed reports whether a report about the engine is in the way that did not pass. Other engines of the release may have passed.
func (req Requirement) Failed() bool { return !req.Met && req.Name == requireNoFailure }

// Size is about how many bytes of memory the requirement needs besides its texts.
func (req Requirement) Size() int {
	const each = 2 << 10
	return each * len(req.against)
}

// On decides the requirement for one node: what keeps an engine from some nodes is met for the others. detail says why it is unmet.
func (req Requirement) On(n artifact.Node) (met bool, detail string) {
	if !req.SomeNodes() {
		return req.Met, req.Detail
	}
	for _, against := range req.against {
		if why := against.WhyKeptFrom(n); why != "" {
			return false, why
		}
	}
	return true, ""
}

// unmetOn lists the requirements that are not met for a node, with the reason in their detail.
func unmetOn(n artifact.Node, requirements []Requirement) []Requirement {
	var unmet []Requirement
	for _, req := range requirements {
		var met bool
		if met, req.Detail = req.On(n); !met {
			unmet = append(unmet, req)
		}
	}
	return unmet
}
