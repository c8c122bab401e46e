package policy

import (
	"fmt"

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
	return served != nil && served.By == rule.By && served.Bytes == evidence.BytesSeen &&
		(rule.Version == (artifact.Constraint{}) || rule.Version.Allows(served.Version))
}

// judgeServed decides whether an engine passed through the server, on each kind of hardware on which it passed at all, and whether these
// passes meet what the policy asks of passes otherwise.
func judgeServed(j judging, req *Requirement, e artifact.Engine) {
	rule := j.policy.Served
	if rule.IsZero() {
		req.Detail = "the policy does not say through which server"
		return
	}
	found := j.counted.Proofs(j.release, e)
	through := evidence.Findings{}
	others := make(map[string]bool)
	for _, pass := range append(found.Served, found.Passes...) {
		switch {
		case rule.accepts(pass):
			through.Passes = append(through.Passes, pass)
		case pass.Runtime.Served != nil:
			others[fmt.Sprintf("%s %s", registry.PlainText(pass.Runtime.Served.By), registry.PlainText(pass.Runtime.Served.Version))] = true
		}
	}
	req.Met, req.Detail = true, "passed through "+rule.String()
	passes := through.Newest(j.policy.compared)
	for kind := range found.Newest(j.policy.compared) {
		if _, ok := passes[kind]; !ok {
			text := fmt.Sprintf("no pass through %s on %s", rule, registry.PlainText(kind))
			for _, other := range registry.SortedKeys(others) {
				text += ", but one through " + other
			}
			req.deny("%s: run mlpromote verify --through %s there", text, rule.By)
		}
	}
	if len(passes) == 0 {
		req.deny("no pass through %s: run mlpromote verify --through %s", rule, rule.By)
	}
	for _, kind := range registry.SortedKeys(passes) {
		req.cite(passes[kind].Claim)
		if _, why := j.policy.brokenRule(passes[kind], e, j.policy.passRules(e)...); why != "" {
			req.deny("through %s: %s", rule, why)
		}
	}
}
