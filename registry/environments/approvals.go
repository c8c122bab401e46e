package environments

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

// approvals is the rule of an environment: a number, or a number and groups.
type approvals struct {
	policy.ApprovalRule
}

// writtenApprovals is the long form.
type writtenApprovals struct {
	Count    *int      `yaml:"count"`
	Groups   groups    `yaml:"groups"`
	Attested *attested `yaml:"attested"`
}

// attested says whose approvals count that the service signs.
type attested struct {
	Max     int      `yaml:"max,required"`
	Accepts bool     `yaml:"accepts"`
	People  []person `yaml:"people,required"`
}

// person is one of them.
type person struct {
	Issuer  string   `yaml:"issuer"`
	Subject string   `yaml:"subject"`
	Token   string   `yaml:"token"`
	Group   string   `yaml:"group"`
	Keys    []string `yaml:"keys"`
}

func (a *attested) rule() *policy.AttestedRule {
	if a == nil {
		return nil
	}
	rule := &policy.AttestedRule{Max: a.Max, Accepts: a.Accepts}
	for _, p := range a.People {
		rule.People = append(rule.People, policy.ListedPerson(p))
	}
	return rule
}

// groups is a mapping that keeps the order of its keys.
type groups []policy.ApproverGroup

// writtenGroup is the value of one name in the mapping.
type writtenGroup struct {
	Count *int     `yaml:"count"`
	Keys  []string `yaml:"keys,required"`
}

// DecodeYAML reads "2" or the long form. Without count, the long form asks for what its groups ask
// for together.
func (a *approvals) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping && n.Kind() != strictyaml.Scalar {
		n.Problemf("approvals is %s: want a number, or a mapping with count and groups", n.Kind())
		return
	}
	var short int
	var long writtenApprovals
	n.DecodeEither(&short, &long)
	a.Count, a.Groups, a.Attested = short, long.Groups, long.Attested.rule()
	if n.Kind() == strictyaml.Mapping {
		has := func(key string) bool {
			return slices.ContainsFunc(n.Entries(), func(e strictyaml.Entry) bool { return e.Key == key })
		}
		if !has("groups") && (!has("attested") || !has("count")) {
			n.Problemf("key %q is missing", "groups")
		}
		for _, g := range a.Groups {
			a.Count += g.Count
		}
	}
	if long.Count != nil {
		a.Count = *long.Count
	}
}

// DecodeYAML reads the mapping. A group asks for one approval if it does not say otherwise.
func (gs *groups) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping || len(n.Entries()) == 0 {
		n.Problemf("groups is %s: want a mapping from name to count and keys", n.Kind())
		return
	}
	for _, e := range n.Entries() {
		written := writtenGroup{}
		e.Value.Decode(&written)
		g := policy.ApproverGroup{Name: e.Key, Count: 1, Keys: written.Keys}
		if written.Count != nil {
			g.Count = *written.Count
		}
		*gs = append(*gs, g)
	}
}

// checkApprovals reports rules that cannot be met, and keys of groups that cannot approve. It removes the rules that
// cannot be met, so that they are reported once.
func checkApprovals(doc *strictyaml.Document, es policy.Environments) {
	for i, e := range es.List {
		for _, key := range doc.At("environments").Entries()[i].Value.Entries() {
			if key.Key != "approvals" {
				continue
			}
			if err := e.Approvals.Validate(); err != nil {
				key.Value.Problemf("%s", err)
				es.List[i].Approvals = policy.ApprovalRule{}
			} else if e.Approvals.Count == 0 {
				key.Value.Problemf("approvals: count 0 asks for nothing: remove the key")
			}
		}
		for _, g := range e.Approvals.Groups {
			for j, key := range g.Keys {
				if !approves(es, e, key) {
					doc.At("environments", e.Name, "approvals", "groups", g.Name, "keys", j).Problemf(
						"key %s of group %s is not trusted as %s for %s: add it to trust:, or remove it here",
						key, g.Name, evidence.RoleApprover, resourceScheme+es.Registry+"/"+e.Name+"/")
				}
			}
		}
		checkAttested(doc, es, e)
	}
}

// checkAttested reports keys of people that are in no trust entry: they would link a person with nothing.
func checkAttested(doc *strictyaml.Document, es policy.Environments, e policy.Environment) {
	if e.Approvals.Attested == nil {
		return
	}
	for i, p := range e.Approvals.Attested.People {
		for j, key := range p.Keys {
			if !slices.ContainsFunc(es.Trust, func(t trust.TrustEntry) bool { return t.Key == key }) {
				doc.At("environments", e.Name, "approvals", "attested", "people", i, "keys", j).Problemf(
					"key %s is in no entry of trust:: want a path as trust has it", key)
			}
		}
	}
}

// approves reports whether a key is trusted as approver for an environment, or for a part of it. Also
// a retired or revoked key is: what it approved before may count.
func approves(es policy.Environments, e policy.Environment, key string) bool {
	return slices.ContainsFunc(es.Trust, func(t trust.TrustEntry) bool {
		return t.Key == key && slices.Contains(t.Grants(), evidence.RoleApprover) && t.Reaches(resourceScheme+es.Registry+"/"+e.Name)
	})
}
