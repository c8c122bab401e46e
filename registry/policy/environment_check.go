package policy

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Policy returns what the environment requires of a release. A policy without requirements
// allows nothing. Every other policy refuses operator libraries that it does not list, and every
// release until its Restrictions are set.
func (e Environment) Policy() Policy {
	if len(e.Require) == 0 {
		return Policy{Operators: e.Operators}
	}
	p := e.rules()
	p.Require = append(slices.Clone(e.Require), requirementsWith(func(row requirementRow) bool { return row.common })...)
	return p
}

// rules returns the policy without the requirements that apply everywhere.
func (e Environment) rules() Policy {
	return Policy{Require: e.Require, Operators: e.Operators, Accuracy: e.Accuracy, Ceilings: e.Ceilings, CIJob: e.CIJob,
		Approvals: e.Approvals, Reports: e.Reports, Coverage: e.Coverage, Served: e.Served, Freeze: e.Freeze, BreakGlass: e.BreakGlass}
}

func (e Environment) validateRegistry() error {
	if !e.External() {
		return nil
	}
	return registry.ValidateHost(e.Registry)
}

// Validate checks that the list is a set of chains with known requirements, and that each chain
// starts at an unprotected environment. Errors: CodeInvalid.
func (es Environments) Validate() error {
	if err := registry.ValidateRegistry(es.Registry); err != nil {
		return err
	}
	if len(es.List) == 0 || es.List[0].Protected() {
		return registry.Errorf(registry.CodeInvalid, "environments: want at least one, the first without from")
	}
	for i, e := range es.List {
		if !registry.NamePattern.MatchString(e.Name) || strings.Contains(e.Name, "/") {
			return registry.Errorf(registry.CodeInvalid, "environment %q: want a lower-case name without '/'", e.Name)
		}
		if registry.IsHost(e.Name) {
			return registry.Errorf(
				registry.CodeInvalid,
				"environment %q: want a name without '.', other than localhost: a reference could not distinguish it from a host",
				e.Name,
			)
		}
		earlier := func(o Environment) bool { return o.Name == e.From }
		if e.Protected() && !slices.ContainsFunc(es.List[:i], earlier) {
			return registry.Errorf(registry.CodeInvalid, "environment %s: from %q is not the name of an environment above it", e.Name, e.From)
		}
		if slices.ContainsFunc(es.List[:i], func(o Environment) bool { return o.Name == e.Name }) {
			return registry.Errorf(registry.CodeInvalid, "environment %s: defined twice", e.Name)
		}
		if err := e.validateRegistry(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "environment %s: %w", e.Name, err)
		}
		if err := e.rules().Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "environment %s: %w", e.Name, err)
		}
		if key := e.withoutEffect(); key != "" {
			return registry.Errorf(registry.CodeInvalid, "environment %s: %s has no effect without from, since builds write it directly", e.Name, key)
		}
	}
	return nil
}

// withoutEffect names a rule of an environment that nothing is promoted to, so that it never applies.
func (e Environment) withoutEffect() string {
	switch {
	case e.Protected():
		return ""
	case len(e.Operators) > 0:
		return "operators"
	case e.Accuracy != nil:
		return "accuracy"
	case len(e.Ceilings) > 0:
		return "ceilings"
	case e.CIJob != nil:
		return "ci-job"
	case e.Approvals.Count > 0:
		return "approvals"
	case !e.Reports.IsZero():
		return "reports"
	case !e.Coverage.IsZero():
		return "coverage"
	case !e.Served.IsZero():
		return "served"
	case len(e.Freeze) > 0:
		return "freeze"
	case len(e.BreakGlass) > 0:
		return "break-glass"
	case len(e.Require) > 0:
		return "require"
	}
	return ""
}
