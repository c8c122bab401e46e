package policy

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// CoverageRule says which node types must get an engine of every release that is promoted, and of how
// many verifiers that engine must have a pass that was made on a machine of the type. The zero
// CoverageRule asks for nothing.
type CoverageRule struct {
	// NodeTypes are names of registered node types. One that ends in "*" stands for all whose names
	// begin with the rest, of which there must be one at least.
	NodeTypes []string `json:"nodeTypes,omitempty"`
	// Witnesses is how many different keys must have found on such a machine that the engine passes; 0
	// is 1.
	Witnesses int `json:"witnesses,omitempty"`
}

// IsZero reports whether the rule asks for nothing.
func (rule CoverageRule) IsZero() bool { return len(rule.NodeTypes) == 0 && rule.Witnesses == 0 }

// String describes the rule: "engines for node types edge-*, h200, each shown by 2 verifiers there".
func (rule CoverageRule) String() string {
	return fmt.Sprintf("engines for node types %s, each shown by %s there", strings.Join(rule.NodeTypes, ", "), registry.Count(max(1, rule.Witnesses), "verifier"))
}

// Validate checks the form of a rule. Errors: CodeInvalid.
func (rule CoverageRule) Validate() error {
	switch {
	case rule.IsZero():
		return nil
	case len(rule.NodeTypes) == 0:
		return registry.Errorf(registry.CodeInvalid, "coverage: node-types is missing: want names of node types, or \"*\" for all that are registered")
	case rule.Witnesses < 0 || rule.Witnesses > 100:
		return registry.Errorf(registry.CodeInvalid, "coverage: witnesses %d: want 1 to 100", rule.Witnesses)
	}
	for i, name := range rule.NodeTypes {
		first := name
		if prefix, pattern := strings.CutSuffix(name, "*"); pattern {
			first = prefix + "x" // a name that the pattern stands for
		}
		if err := registry.ValidateName(first); err != nil {
			return registry.Errorf(registry.CodeInvalid, "coverage: node type %.100q: want a name, or the beginning of names and \"*\"", name)
		}
		if slices.Contains(rule.NodeTypes[:i], name) {
			return registry.Errorf(registry.CodeInvalid, "coverage: node type %s is listed twice", name)
		}
	}
	return nil
}

// KnownNodeTypes are the node types that are registered at one time. The zero KnownNodeTypes is not
// known, and refuses every release that has to be shown on one.
type KnownNodeTypes struct {
	known bool
	list  []registry.Named[artifact.Node]
}

// NewKnownNodeTypes returns all node types that are registered.
func NewKnownNodeTypes(all []registry.Named[artifact.Node]) KnownNodeTypes {
	return KnownNodeTypes{true, all}
}

// Digest identifies names and documents, so that a change between two readings shows. Errors:
// CodeInternal.
func (k KnownNodeTypes) Digest() (registry.Digest, error) {
	return registry.CanonicalDigest(append([]registry.Named[artifact.Node]{}, k.list...))
}

// selected lists the node types that a name of a [CoverageRule] stands for.
func (k KnownNodeTypes) selected(name string) []registry.Named[artifact.Node] {
	prefix, pattern := strings.CutSuffix(name, "*")
	var found []registry.Named[artifact.Node]
	for _, t := range k.list {
		if t.Name == name || pattern && strings.HasPrefix(t.Name, prefix) {
			found = append(found, t)
		}
	}
	return found
}
