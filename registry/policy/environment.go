package policy

import (
	"cmp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Environments is the content of environments.yaml: the chain that releases move along, and the
// keys that are trusted in each environment.
type Environments struct {
	Registry string             `json:"registry"` // a name; part of every resource URI
	List     []Environment      `json:"environments"`
	Trust    []trust.TrustEntry `json:"trust"`
	Roots    []trust.Root       `json:"roots,omitempty"`
	Digest   registry.Digest    `json:"digest"` // of the file's bytes
	// Configuration covers the file's bytes and those of the public keys that it names:
	// the Environments of a [history.Configuration]. Empty if the keys were not read.
	Configuration registry.Digest `json:"configuration,omitempty"`
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
	Operators []registry.Digest `json:"operators,omitempty"`
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
	// Served says through which model server every engine must have passed, too.
	Served ServedRule `json:"served,omitzero"`
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
	return Environment{}, registry.Errorf(registry.CodeNotFound, "no environment %q%s: there are %s", name, registry.Suggest(name, names), strings.Join(names, ", "))
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
		return Environment{}, Environment{}, registry.Errorf(registry.CodeInvalid,
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

// ResourceURI returns the URI that trust entries and VSAs use for a model's repository in an
// environment.
func (es Environments) ResourceURI(environment, model string) string {
	return registry.ResourceScheme + es.Registry + "/" + registry.Repository(environment, model)
}

// CheckSigner refuses a key that no entry trusts in a role for a resource, so that work can end before it begins. Any signer may have
// the identity of an entry; keyID is empty if the signer is an identity. Errors: CodeTrust.
func (es Environments) CheckSigner(role evidence.Role, resource, keyID string) error {
	for _, e := range es.Trust {
		if e.EffectiveState() != evidence.KeyTrusted || !slices.Contains(e.GrantsAgainst(), role) || !e.Covers(resource) { // what it signs may be against a release
			continue
		}
		if e.Identity != nil && keyID == "" || e.Identity == nil && (es.KeyIDs == nil || keyID != "" && es.KeyIDs[e.Key] == keyID) {
			return nil
		}
	}
	signer := "key " + keyID
	if keyID == "" {
		signer = "an identity"
	}
	return registry.Errorf(registry.CodeTrust, "sign as %s: %s is not trusted as %[1]s for %[3]s (environments.yaml, trust:)", role, signer, resource)
}

// EnvironmentURI returns the URI that trust entries and restriction lists use for a whole
// environment. A trust entry covers it if it covers every model there.
func (es Environments) EnvironmentURI(environment string) string {
	return registry.ResourceScheme + es.Registry + "/" + environment + "/"
}
