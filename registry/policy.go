package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The requirements that an environment can have.
const (
	RequireSignature     = "signature"      // a builder signed the release and every engine
	RequireProvenance    = "provenance"     // every engine has provenance from a builder
	RequireParity        = "parity"         // every engine has a pass from a verifier
	RequireRecordedCases = "recorded-cases" // that pass used recorded cases, not generated ones
	RequireSeparateRoles = "separate-roles" // no key is a builder's and also a verifier's or approver's
	// Every step of every engine was run twice and gave the same bytes or at least the same
	// outputs.
	RequireReproducibleBytes    = "reproducible-bytes"
	RequireReproducibleSemantic = "reproducible-semantic"
)

// requireApprovals applies in every environment with an [ApprovalRule].
const requireApprovals = "approvals"

// requireQuarantine is always required.
const requireQuarantine = "no-quarantine"

// requireUnrestricted applies in every environment that has requirements, and to every use of a
// release. It cannot be turned off.
const requireUnrestricted = "no-restriction"

// requireOperators applies in every environment that has requirements, to engines with operator
// libraries. It cannot be turned off.
const requireOperators = "operators"

// DefaultRequire returns the requirements of a protected environment that does not list any.
func DefaultRequire() []string {
	return []string{RequireSignature, RequireProvenance, RequireParity}
}

// Requirements lists all requirements, including those that environments.yaml cannot name.
func Requirements() []string {
	return append(namedRequirements(), requireQuarantine, requireUnrestricted, requireNoFailure, requireOperators, requireAccuracy, requireCeilings, requireCIJob, requireReports, requireCoverage, requireApprovals, requireNoFreeze,
		RequireNoDowngrade, requireBreakGlass)
}

// namedRequirements lists those that environments.yaml can name.
func namedRequirements() []string {
	return append(DefaultRequire(), RequireRecordedCases, RequireSeparateRoles, RequireReproducibleBytes,
		RequireReproducibleSemantic, RequireNoLooser, RequireCompatibleInterface)
}

// Policy is what an environment requires of a release. The zero Policy allows nothing.
type Policy struct {
	Require []string
	// Operators are the digests of the operator libraries that engines may carry. A Policy from
	// [Environment.Policy] refuses all others.
	Operators []Digest
	// Accuracy and Ceilings are those of an [Environment].
	Accuracy  *AccuracyRequirement
	Ceilings  Ceilings
	CIJob     *CIJob // that must have built; nil asks for none
	Approvals ApprovalRule
	// Reports says how fresh reports must be, and of how many verifiers.
	Reports ReportRule
	// Coverage says which node types must get an engine that was shown on them.
	Coverage CoverageRule
	// Freeze are the windows in which nothing is promoted.
	Freeze []Freeze
	// BreakGlass are the requirements that two approvers may skip in an emergency, of [Skippable].
	BreakGlass []string
	// Promotion is the promotion that the policy decides about. Without it, whatever depends on it is
	// refused.
	Promotion PromotionContext
}

// PromotionContext is what a [Policy] knows of the promotion that it decides about, beside the
// release and its evidence.
type PromotionContext struct {
	// Environment is where the release is to be promoted to, and Head the release that it has; empty
	// if it has none. Reports that compared with another release do not count.
	Environment string
	Head        Digest
	// HeadVersion is the tag of Head; empty where it is not known, and then nothing is held against it.
	// Downgrade is true if the caller asks for an older version than that.
	HeadVersion string
	Downgrade   bool
	// Comparison is that with Head, if a requirement needs it.
	Comparison *Comparison
	// Replay is true where the release is the head already, and the question is whether it would
	// be promoted again. Then nothing is replaced.
	Replay bool
	// Resource is the URI of the model's repository in that environment, and Now the time of the
	// promotion. Approvals count for this resource only. Without a resource none counts, and without a
	// time none that expires.
	Resource string
	Now      time.Time
	// Publishers are the callers who published the release. Who is among them cannot approve it as a
	// person. Issuer, subject and token are empty where the history does not have them.
	Publishers []Person
	// BreakGlass is true if unmet requirements are to be skipped where approvers agreed to that.
	// HeadMoved is the number of the newest event that moved the head; 0 if there is none. What
	// approvers agreed to before counts for nothing.
	BreakGlass bool
	HeadMoved  int64
	// Left is the number of the newest rollback that took the environment from this release to another; 0 if there is none. What
	// was approved before counts no more: somebody found a reason to leave it.
	Left int64
	// Newest is the time of the newest event in the history; zero if there is none. A clock that is
	// behind it was turned back.
	Newest time.Time
	// Restrictions are those in force in that environment. A Policy from [Environment.Policy] allows
	// nothing while they are unknown.
	Restrictions Restrictions
	// NodeTypes are those that are registered. A policy that [Policy.NeedsNodeTypes] allows nothing
	// while they are unknown.
	NodeTypes KnownNodeTypes
}

// Requirement is one requirement and whether it is met.
type Requirement struct {
	Name     string   `json:"name"`
	Subject  string   `json:"subject"` // "release", the engine's label, or "node type" and its name
	Met      bool     `json:"met"`
	Skipped  bool     `json:"skipped,omitempty"` // it is unmet, and approvers agreed to skip it
	Detail   string   `json:"detail"`            // what meets it, or what is missing and what to do
	Evidence []Digest `json:"evidence,omitempty"`
	// Refused is true if it is unmet because something speaks against the release, such as a report that did not
	// pass: what is missing besides would not help. It is false in answers of older services.
	Refused bool `json:"refused,omitempty"`

	until   time.Time // from when it may be decided otherwise; zero: time alone does not change it
	against []report  // what keeps an engine from some nodes
}

// Decision is the result of a policy check. The zero Decision does not allow.
type Decision struct {
	Requirements []Requirement `json:"requirements"`
	IgnoredEvidence
	// Until is the instant from which the decision may be another one by the passing of time alone:
	// a freeze begins, or an approval expires. Zero: time does not change it.
	Until time.Time `json:"until,omitzero"`
	// Skipped says which requirements were skipped by a break-glass promotion; nil: all are met.
	Skipped *Skipped `json:"skipped,omitempty"`
	// Withheld are the nodes that do not get an engine of the release, whatever is decided.
	Withheld []Withheld `json:"withheld,omitempty"`
}

// Allowed reports whether there are requirements and all of them are met or skipped.
func (d Decision) Allowed() bool {
	return len(d.Requirements) > 0 && len(d.Unmet()) == 0
}

// Unmet lists the requirements that are neither met nor skipped.
func (d Decision) Unmet() []Requirement {
	var unmet []Requirement
	for _, r := range d.Requirements {
		if !r.Met && !r.Skipped {
			unmet = append(unmet, r)
		}
	}
	return unmet
}

// Validate checks that every requirement is known. Errors: CodeInvalid.
func (p Policy) Validate() error {
	known := namedRequirements()
	for i, name := range p.Require {
		if !slices.Contains(known, name) {
			return Errorf(CodeInvalid, "requirement %q: want one of %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(p.Require[:i], name) {
			return Errorf(CodeInvalid, "requirement %q: listed twice", name)
		}
	}
	for i, d := range p.Operators {
		if err := d.Validate(); err != nil {
			return Errorf(CodeInvalid, "operators: digest %q: %w", d, err)
		}
		if slices.Contains(p.Operators[:i], d) {
			return Errorf(CodeInvalid, "operators: %s is listed twice", d)
		}
	}
	if err := p.Accuracy.Validate(); err != nil {
		return err
	}
	if err := p.Ceilings.Validate(); err != nil {
		return err
	}
	if err := p.CIJob.Validate(); err != nil {
		return err
	}
	if err := p.Reports.Validate(); err != nil {
		return err
	}
	if err := p.Coverage.Validate(); err != nil {
		return err
	}
	if err := p.Approvals.Validate(); err != nil {
		return err
	}
	if err := validateFreezes(p.Freeze); err != nil {
		return err
	}
	return validateSkips("break-glass", p.BreakGlass)
}

// Check decides whether the claims allow the release. No other code makes this decision. It
// depends only on its arguments.
func (p Policy) Check(r Release, claims []Claim) Decision {
	if len(p.Require) == 0 {
		return Decision{}
	}
	counted, ignored := count(r, claims)
	decision := Decision{Withheld: counted.withheld(r)}
	decision.Ignore(ignored...)
	for _, name := range append([]string{requireQuarantine}, p.Require...) {
		switch name {
		case RequireNoLooser, RequireCompatibleInterface:
			decision.Requirements = append(decision.Requirements, p.judgeComparison(name, r, claims))
		case requireCoverage:
			decision.Requirements = append(decision.Requirements, p.judgeCoverage(r, claims, counted)...)
		default:
			decision.Requirements = append(decision.Requirements, p.require(name, r, counted)...)
		}
	}
	if p.Approvals.Count > 0 {
		decision.Requirements = append(decision.Requirements, p.CheckApprovals(r, claims))
	}
	if len(p.Freeze) > 0 {
		decision.Requirements = append(decision.Requirements, p.judgeFreeze(r))
	}
	if p.replacesNewer(r) {
		decision.Requirements = append(decision.Requirements, p.judgeDowngrade())
	}
	if p.Promotion.BreakGlass {
		p.breakGlass(&decision, r, claims)
	}
	for _, req := range decision.Requirements {
		decision.Until = earlier(decision.Until, req.until)
	}
	return decision
}

// earlier returns the earlier of two times, of which a zero one is not known.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// CheckEngine decides about one engine of the release, independently of the other engines.
func (p Policy) CheckEngine(r Release, e Engine, claims []Claim) Decision {
	alone := r
	alone.Engines = []Engine{e}
	return p.Check(alone, claims)
}

// require evaluates one requirement for each of its subjects.
func (p Policy) require(name string, r Release, cs counted) []Requirement {
	switch name {
	case requireOperators:
		return p.judgeOperators(r)
	case requireUnrestricted:
		return p.Promotion.Restrictions.check(r, cs)
	}
	subjects := r.Subjects()
	if !slices.Contains([]string{RequireSignature, requireQuarantine, requireCIJob}, name) { // these are about the release itself, too
		subjects = subjects[1:]
	}
	if len(subjects) == 0 {
		return []Requirement{{Name: name, Subject: "release", Detail: "the release has no engine"}}
	}
	var out []Requirement
	for _, s := range subjects {
		req := Requirement{Name: name, Subject: s.Name}
		switch name {
		case requireQuarantine:
			req.absent(cs.quarantines(s.Digest))
		case RequireSignature:
			req.signed(s.Digest, cs)
		case RequireProvenance:
			req.present(cs.of(PredicateProvenance, s.Digest), "built by a builder",
				"no provenance of a trusted builder: run mlpromote build")
		case requireCIJob:
			p.judgeCIJob(&req, cs.of(PredicateProvenance, s.Digest))
		case RequireReproducibleBytes:
			judgeReproducible(&req, ReproducibleBytes, cs.of(PredicateProvenance, s.Digest))
		case RequireReproducibleSemantic:
			judgeReproducible(&req, ReproducibleSemantic, cs.of(PredicateProvenance, s.Digest))
		case RequireSeparateRoles:
			judgeSeparation(&req, cs, s.Digest, r.Digest)
		default:
			p.judgeReported(&req, r, s.Digest, cs)
		}
		out = append(out, req)
	}
	return out
}

// judgeReported evaluates a requirement about the reports of an engine. One that is unknown stays unmet.
func (p Policy) judgeReported(req *Requirement, r Release, engine Digest, cs counted) {
	e, _ := r.Engine(engine)
	switch req.Name {
	case RequireParity, RequireRecordedCases:
		p.judgeParity(req, r, e, cs)
	case requireAccuracy:
		p.judgeAccuracy(req, r, e, cs)
	case requireCeilings:
		p.judgeCeilings(req, r, e, cs)
	case requireReports:
		p.judgeReports(req, r, e, cs)
	}
}

func (req *Requirement) present(claims []Claim, met, unmet string) {
	req.Met, req.Detail = len(claims) > 0, unmet
	if req.Met {
		req.Detail = met
	}
	req.cite(claims...)
}

func (req *Requirement) absent(claims []Claim) {
	req.Met, req.Detail = true, "not in quarantine"
	if len(claims) > 0 {
		said := ""
		if q, _ := claims[0].Quarantine(); q.Reason != "" {
			said = fmt.Sprintf(" (%.200q)", q.Reason)
		}
		req.refuse("in quarantine%s: choose another version", said)
	}
	req.cite(claims...)
}

func (req *Requirement) cite(claims ...Claim) {
	for _, c := range claims {
		req.Evidence = append(req.Evidence, c.Bundle)
	}
}

// judgeSeparation requires that the keys that built differ from the keys that verified or
// approved. It looks at an engine and its release together.
func judgeSeparation(req *Requirement, cs counted, subjects ...Digest) {
	var builders, others []Claim
	for _, s := range subjects {
		builders = slices.Concat(builders, cs.of(PredicateSign, s), cs.of(PredicateProvenance, s))
		others = slices.Concat(others, cs.of(PredicateParity, s), cs.of(PredicatePerformance, s), cs.of(PredicateApproval, s), cs.of(PredicateBreakGlass, s))
	}
	req.Met, req.Detail = len(builders) > 0, "builder and verifier have separate keys"
	for _, b := range builders {
		for _, o := range others {
			if b.Signer == o.Signer {
				req.refuse("key %s belongs to a builder and a verifier: give each role a separate key", b.Signer)
				req.cite(o)
			}
		}
	}
	if len(builders) == 0 {
		req.Detail = "no builder's signature to compare with"
	}
}

// judgeOperators decides for each engine with operator libraries whether all of them are
// allowed. They are native code that runs with the engine.
func (p Policy) judgeOperators(r Release) []Requirement {
	var out []Requirement
	for _, e := range r.Engines {
		if len(e.Operators) == 0 {
			continue
		}
		req := Requirement{Name: requireOperators, Subject: e.Label(), Met: true}
		for _, library := range e.Operators {
			if slices.Contains(p.Operators, library.Digest) {
				continue
			}
			req.refuse(
				"it carries native code that is not allowed here, %s (%s): build the model without it, or review its source and "+
					"add the digest to operators: of this environment in environments.yaml",
				library.Path,
				library.Digest,
			)
		}
		if req.Met {
			req.Detail = fmt.Sprintf("its %d operator libraries are allowed by digest", len(e.Operators))
		}
		out = append(out, req)
	}
	return out
}
