package policy

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

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
			others[registry.PlainText(pass.Runtime.Served.By+" "+pass.Runtime.Served.Version)] = true
		}
	}
	req.Met, req.Detail = true, "passed through "+rule.String()
	refuseServed(found, rule, req)
	passes := through.Newest(j.policy.compared)
	for kind := range found.Newest(j.policy.compared) {
		if _, ok := passes[kind]; !ok {
			text := fmt.Sprintf("no pass through %s on %s", rule, registry.PlainText(kind))
			if len(others) > 0 {
				text += "; there are passes through " + strings.Join(registry.SortedKeys(others), ", ")
			}
			req.deny("%s: run mlpromote verify --toolchains DIR --through %s there", text, rule.By)
		}
	}
	if len(passes) == 0 {
		req.deny("no pass through %s: run mlpromote verify --toolchains DIR --through %s", rule, rule.By)
	}
	for _, kind := range registry.SortedKeys(passes) {
		req.cite(passes[kind].Claim)
		if _, why := j.policy.brokenRule(passes[kind], e, j.policy.passRules(e)...); why != "" {
			req.deny("through %s: %s", rule, why)
		}
	}
}

// refuseServed marks the requirement as refused for every failure through the server of a rule.
func refuseServed(found evidence.Findings, rule ServedRule, req *Requirement) {
	for _, against := range found.ServedAgainst {
		if against.Runtime.Served.By == rule.By {
			req.cite(against.Claim)
			req.refuse("%s; no later pass through %s on such a machine", against.Failure(), rule.By)
		}
	}
}
