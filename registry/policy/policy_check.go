package policy

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Validate checks that every requirement is known. Errors: CodeInvalid.
func (p Policy) Validate() error {
	known := namedRequirements()
	for i, name := range p.Require {
		if !slices.Contains(known, name) {
			return registry.Errorf(registry.CodeInvalid, "requirement %q: want one of %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(p.Require[:i], name) {
			return registry.Errorf(registry.CodeInvalid, "requirement %q: listed twice", name)
		}
	}
	for i, d := range p.Operators {
		if err := d.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "operators: digest %q: %w", d, err)
		}
		if slices.Contains(p.Operators[:i], d) {
			return registry.Errorf(registry.CodeInvalid, "operators: %s is listed twice", d)
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
	if err := p.Served.Validate(); err != nil {
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
func (p Policy) Check(r artifact.Release, claims []evidence.Claim) Decision {
	if len(p.Require) == 0 {
		return Decision{}
	}
	counted, ignored := evidence.Count(r, claims)
	decision := Decision{Withheld: counted.Withheld(r)}
	decision.Ignore(ignored...)
	j := judging{policy: p, release: r, claims: claims, counted: counted, decided: &decision}
	for _, row := range p.asked() {
		if row.follows == nil || row.follows(j) {
			j.decide(row)
		}
	}
	return decision
}

// asked lists the requirements that are or may be asked for: that nothing is in quarantine, then those that the policy lists, then
// those that can follow from its rules and the promotion.
func (p Policy) asked() []requirementRow {
	listed := append([]string{requireQuarantine}, p.Require...)
	var asked []requirementRow
	for _, name := range listed {
		row := requirementNamed(name)
		row.follows = nil
		asked = append(asked, row)
	}
	for _, row := range requirementRows() {
		if row.follows != nil && !slices.Contains(listed, row.name) {
			asked = append(asked, row)
		}
	}
	return asked
}

// CheckEngine decides about one engine of the release, independently of the other engines.
func (p Policy) CheckEngine(r artifact.Release, e artifact.Engine, claims []evidence.Claim) Decision {
	alone := r
	alone.Engines = []artifact.Engine{e}
	return p.Check(alone, claims)
}
