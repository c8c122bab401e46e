package policy

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// ServedRule says through which model server every engine must have passed, too. The zero ServedRule asks for nothing.
type ServedRule struct {
	By      string              `json:"by,omitempty"`     // name of the server, as verifiers call it: "triton"
	Version artifact.Constraint `json:"version,omitzero"` // of the server; the zero Constraint: any
}

// IsZero reports whether the rule asks for nothing.
func (rule ServedRule) IsZero() bool { return rule == ServedRule{} }

// String describes the rule: "triton >= 2.51".
func (rule ServedRule) String() string {
	if rule.Version == (artifact.Constraint{}) {
		return rule.By
	}
	return rule.By + " " + rule.Version.String()
}

// Validate checks the form of a rule. Errors: CodeInvalid.
func (rule ServedRule) Validate() error {
	switch {
	case rule.IsZero():
		return nil
	case !registry.NamePattern.MatchString(rule.By):
		return registry.Errorf(registry.CodeInvalid, "served: by %.100q: want the name of a server, such as triton", rule.By)
	case rule.Version == (artifact.Constraint{}):
		return nil
	}
	if err := rule.Version.Validate(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "served: %w", err)
	}
	return nil
}

// accepts reports whether a report is of the server that the rule names.
func (rule ServedRule) accepts(r evidence.Report) bool {
	served := r.Runtime.Served
	return served != nil && served.By == rule.By && served.BytesSeen &&
		(rule.Version == (artifact.Constraint{}) || rule.Version.Allows(served.Version))
}
