package registry

import (
	"cmp"
	"slices"
	"strings"
)

// Environments is the content of environments.yaml: the chain that releases move along, and the
// keys that are trusted in each environment.
type Environments struct {
	Registry string        `json:"registry"` // a name; part of every resource URI
	List     []Environment `json:"environments"`
	Trust    []TrustEntry  `json:"trust"`
	Roots    []Root        `json:"roots,omitempty"`
	Digest   Digest        `json:"digest"` // of the file's bytes
	// Configuration covers the file's bytes and those of the public keys that it names:
	// the Environments of a [Configuration]. Empty if the keys were not read.
	Configuration Digest `json:"configuration,omitempty"`
	// KeyIDs identify the keys of trust entries, by the paths in the entries. A key whose file is missing has none. Nil: the keys were
	// not read.
	KeyIDs map[string]string `json:"keyIds,omitzero"`
}

// Environment is a repository prefix with a policy.
type Environment struct {
	Name    string   `json:"name"`
	From    string   `json:"from,omitempty"` // source of promotions; if set, the environment is protected
	Require []string `json:"require,omitempty"`
	// Operators are the digests of the operator libraries that engines may carry here.
	Operators []Digest `json:"operators,omitempty"`
	// Accuracy is what every engine here has to show on labelled cases, and Ceilings are the loosest
	// limits that its release may have; nil asks for nothing.
	Accuracy *AccuracyRequirement `json:"accuracy,omitempty"`
	Ceilings Ceilings             `json:"ceilings,omitempty"`
	// CIJob is the CI job that must have built each release, as verified tokens of jobs say; nil asks for none.
	CIJob *CIJob `json:"ciJob,omitempty"`
	// Registry is HOST[:PORT] of the OCI registry that has the content. Empty: the content is
	// with the catalog.
	Registry string `json:"registry,omitempty"`
	// Approvals says how many people must approve each promotion.
	Approvals ApprovalRule `json:"approvals,omitzero"`
	// Reports says how fresh the reports of a promotion must be, and of how many verifiers.
	Reports ReportRule `json:"reports,omitzero"`
	// Coverage says which node types must get an engine of each promoted release.
	Coverage CoverageRule `json:"coverage,omitzero"`
	// Freeze are windows in which nothing is promoted to the environment.
	Freeze []Freeze `json:"freeze,omitempty"`
	// BreakGlass are the requirements that two approvers may skip in an emergency. Empty: none.
	BreakGlass []string `json:"breakGlass,omitempty"`
}

// Protected reports whether only Promote and Attach may write the environment.
func (e Environment) Protected() bool { return e.From != "" }

// External reports whether the content is in a registry other than that of the catalog. The
// tags there are then mirrors of the catalog.
func (e Environment) External() bool { return e.Registry != "" }

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
		Approvals: e.Approvals, Reports: e.Reports, Coverage: e.Coverage, Freeze: e.Freeze, BreakGlass: e.BreakGlass}
}

func (e Environment) validateRegistry() error {
	if !e.External() {
		return nil
	}
	return ValidateHost(e.Registry)
}

// ValidateRegistry checks the name of a registry. Errors: CodeInvalid.
func ValidateRegistry(name string) error {
	if !namePattern.MatchString(name) {
		return Errorf(CodeInvalid, "registry %.200q: want a lower-case name", name)
	}
	return nil
}

// Validate checks that the list is a set of chains with known requirements, and that each chain
// starts at an unprotected environment. Errors: CodeInvalid.
func (es Environments) Validate() error {
	if err := ValidateRegistry(es.Registry); err != nil {
		return err
	}
	if len(es.List) == 0 || es.List[0].Protected() {
		return Errorf(CodeInvalid, "environments: want at least one, the first without from")
	}
	for i, e := range es.List {
		if !namePattern.MatchString(e.Name) || strings.Contains(e.Name, "/") {
			return Errorf(CodeInvalid, "environment %q: want a lower-case name without '/'", e.Name)
		}
		if isHost(e.Name) {
			return Errorf(
				CodeInvalid,
				"environment %q: want a name without '.', other than localhost: a reference could not distinguish it from a host",
				e.Name,
			)
		}
		earlier := func(o Environment) bool { return o.Name == e.From }
		if e.Protected() && !slices.ContainsFunc(es.List[:i], earlier) {
			return Errorf(CodeInvalid, "environment %s: from %q is not the name of an environment above it", e.Name, e.From)
		}
		if slices.ContainsFunc(es.List[:i], func(o Environment) bool { return o.Name == e.Name }) {
			return Errorf(CodeInvalid, "environment %s: defined twice", e.Name)
		}
		if err := e.validateRegistry(); err != nil {
			return Errorf(CodeInvalid, "environment %s: %w", e.Name, err)
		}
		if err := e.rules().Validate(); err != nil {
			return Errorf(CodeInvalid, "environment %s: %w", e.Name, err)
		}
		if key := e.withoutEffect(); key != "" {
			return Errorf(CodeInvalid, "environment %s: %s has no effect without from, since builds write it directly", e.Name, key)
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
	case len(e.Freeze) > 0:
		return "freeze"
	case len(e.BreakGlass) > 0:
		return "break-glass"
	case len(e.Require) > 0:
		return "require"
	}
	return ""
}

// First returns the environment that builds write to.
func (es Environments) First() Environment { return es.List[0] }

// Find returns the environment with the name. Errors: CodeNotFound, with the names that exist.
func (es Environments) Find(name string) (Environment, error) {
	var names []string
	for _, e := range es.List {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Environment{}, Errorf(CodeNotFound, "no environment %q%s: there are %s", name, Suggest(name, names), strings.Join(names, ", "))
}

// Unprotected reports whether an unprotected environment with that name exists. Builds can
// write to it.
func (es Environments) Unprotected(name string) bool {
	e, err := es.Find(name)
	return err == nil && !e.Protected()
}

// Edge returns the ends of a promotion. An empty name means the only edge that fits the other
// name. Errors: CodeInvalid, CodeNotFound.
func (es Environments) Edge(from, to string) (source, destination Environment, err error) {
	var edges []Environment
	for _, e := range es.List {
		if e.Protected() && (to == "" || e.Name == to) && (from == "" || e.From == from) {
			edges = append(edges, e)
		}
	}
	for _, name := range []string{from, to} {
		if name != "" {
			if _, err := es.Find(name); err != nil {
				return Environment{}, Environment{}, err
			}
		}
	}
	if len(edges) != 1 {
		return Environment{}, Environment{}, Errorf(CodeInvalid,
			"%d promotions are possible from %s to %s: want exactly one of: %s", len(edges), cmp.Or(from, "any environment"),
			cmp.Or(to, "any environment"), es.promotions())
	}
	source, err = es.Find(edges[0].From)
	return source, edges[0], err
}

// promotions names every promotion that there can be: "staging to prod".
func (es Environments) promotions() string {
	var all []string
	for _, e := range es.List {
		if e.Protected() {
			all = append(all, e.From+" to "+e.Name)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "none, since no environment has from")
}

// resourceScheme begins every resource URI.
const resourceScheme = "oci://"

// ResourceURI returns the URI that trust entries and VSAs use for a model's repository in an
// environment.
func (es Environments) ResourceURI(environment, model string) string {
	return resourceScheme + es.Registry + "/" + Repository(environment, model)
}
