package policy

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// ApprovalRule says how many approvals a promotion needs, and of whom. The zero rule asks for none.
type ApprovalRule struct {
	// Count is the number of different keys that must approve, of groups or not.
	Count  int             `json:"count,omitempty"`
	Groups []ApproverGroup `json:"groups,omitempty"`
	// Attested says which approvals count that the service signed for people. Nil: none.
	Attested *AttestedRule `json:"attested,omitempty"`
}

// ApproverGroup is a named set of approvers, of whom some must approve.
type ApproverGroup struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Keys  []string `json:"keys"` // as trust entries name them
}

// maxApprovals bounds how many approvals a rule can ask for.
const maxApprovals = 100

// Validate checks that the rule can be met, if all its keys are those of different people. Errors:
// CodeInvalid.
func (rule ApprovalRule) Validate() error {
	if rule.Count < 0 || rule.Count > maxApprovals {
		return registry.Errorf(registry.CodeInvalid, "approvals: count %d: want 1 to %d", rule.Count, maxApprovals)
	}
	sum := 0
	for i, g := range rule.Groups {
		if err := g.validate(rule.Groups[:i], rule.Attested.inGroup(g.Name)); err != nil {
			return err
		}
		sum += g.Count
	}
	if rule.Count < sum {
		return registry.Errorf(registry.CodeInvalid, "approvals: count %d is less than the %d that the groups ask for together", rule.Count, sum)
	}
	return rule.Attested.validate(rule)
}

// validate checks a group. attested is how many approvals of it can be those of people without keys.
func (g ApproverGroup) validate(earlier []ApproverGroup, attested int) error {
	if !registry.NamePattern.MatchString(g.Name) {
		return registry.Errorf(registry.CodeInvalid, "approvals: group %q: want a lower-case name", g.Name)
	}
	if able := len(g.Keys) + attested; g.Count < 1 || g.Count > able {
		return registry.Errorf(registry.CodeInvalid, "approvals: group %s asks for %s of %s: want 1 to %d",
			g.Name, registry.Count(g.Count, "approval"), registry.Count(able, "key"), able)
	}
	for i, key := range g.Keys {
		if key == "" || slices.Contains(g.Keys[:i], key) {
			return registry.Errorf(registry.CodeInvalid, "approvals: group %s: key %q is empty or listed twice", g.Name, key)
		}
		for _, o := range earlier {
			if slices.Contains(o.Keys, key) {
				return registry.Errorf(registry.CodeInvalid, "approvals: key %s is in the groups %s and %s: want each key in one group", key, o.Name, g.Name)
			}
		}
	}
	if slices.ContainsFunc(earlier, func(o ApproverGroup) bool { return o.Name == g.Name }) {
		return registry.Errorf(registry.CodeInvalid, "approvals: group %s is defined twice", g.Name)
	}
	return nil
}

// String describes the rule: "3 approvals, 1 of security".
func (rule ApprovalRule) String() string {
	text := registry.Count(rule.Count, "approval")
	for _, g := range rule.Groups {
		text += fmt.Sprintf(", %d of %s", g.Count, g.Name)
	}
	return text
}

// group returns the first group that has one of the keys, or "". A key that is trusted under two
// paths, each in another group, so counts for one of them only.
func (rule ApprovalRule) group(keys []string) string {
	for _, g := range rule.Groups {
		if slices.ContainsFunc(g.Keys, func(key string) bool { return slices.Contains(keys, key) }) {
			return g.Name
		}
	}
	return ""
}

// AttestedRule says which approvals count that the service signed for a person. The zero rule counts
// none: who controls the service can make such approvals of anybody.
type AttestedRule struct {
	// Max is how many approvals of a promotion may be of this kind.
	Max int `json:"max"`
	// Accepts is true if such approvals also lift the lines that they accept.
	Accepts bool           `json:"accepts,omitempty"`
	People  []ListedPerson `json:"people"`
}

// ListedPerson is somebody whose attested approvals count: the subject of an issuer, or the bearer of a
// token of the service. Texts are compared exactly.
type ListedPerson struct {
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`
	Token   string `json:"token,omitempty"`
	Group   string `json:"group,omitempty"` // of the rule, for which the person counts
	// Keys are those that the same human holds, as trust entries name them. Person and keys count once.
	Keys []string `json:"keys,omitempty"`
}

// validate checks the rule, as part of another one. Errors: CodeInvalid.
func (a *AttestedRule) validate(rule ApprovalRule) error {
	if a == nil {
		return nil
	}
	if a.Max < 1 || a.Max > rule.Count {
		return registry.Errorf(registry.CodeInvalid, "approvals: attested: max %d: want 1 to %d, as many as are needed", a.Max, rule.Count)
	}
	if len(a.People) == 0 {
		return registry.Errorf(registry.CodeInvalid, "approvals: attested: people is empty: want those whose approvals count")
	}
	for i, p := range a.People {
		// Any principal will do: it is not part of the list.
		if err := (evidence.Person{Principal: "x", Issuer: p.Issuer, Subject: p.Subject, Token: p.Token}).Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "approvals: attested: person %d: want an issuer and a subject, or the name of a token", i+1)
		}
		if p.Issuer != "" && !registry.IsIssuerURL(p.Issuer) {
			return registry.Errorf(registry.CodeInvalid, "approvals: attested: issuer %.200q: want https://HOST[/PATH], as its tokens have it in iss", p.Issuer)
		}
		if strings.ContainsAny(p.Subject+p.Token, "*?") {
			return registry.Errorf(registry.CodeInvalid, "approvals: attested: %s: want the exact text: patterns have no meaning here", p)
		}
		if p.Group != "" && !slices.ContainsFunc(rule.Groups, func(g ApproverGroup) bool { return g.Name == p.Group }) {
			return registry.Errorf(registry.CodeInvalid, "approvals: attested: %s: there is no group %.40q", p, p.Group)
		}
		for _, o := range a.People[:i] {
			if p.person().Is(o.person()) {
				return registry.Errorf(registry.CodeInvalid, "approvals: attested: %s is listed twice", p)
			}
			if k := slices.IndexFunc(p.Keys, func(key string) bool { return slices.Contains(o.Keys, key) }); k >= 0 {
				return registry.Errorf(registry.CodeInvalid, "approvals: attested: key %s is listed for two people", p.Keys[k])
			}
		}
	}
	return nil
}

func (l ListedPerson) person() evidence.Person {
	return evidence.Person{Issuer: l.Issuer, Subject: l.Subject, Token: l.Token}
}

// String names the person.
func (l ListedPerson) String() string { return registry.PlainText(l.person().String()) }

// find returns the entry of a person.
func (a *AttestedRule) find(p evidence.Person) (l ListedPerson, ok bool) {
	if a == nil {
		return ListedPerson{}, false
	}
	i := slices.IndexFunc(a.People, func(l ListedPerson) bool { return l.person().Is(p) })
	if i < 0 {
		return ListedPerson{}, false
	}
	return a.People[i], true
}

// Lists reports whether attested approvals of a person can count.
func (a *AttestedRule) Lists(p evidence.Person) bool {
	_, ok := a.find(p)
	return ok
}

// inGroup counts the people of a group whose approvals can count.
func (a *AttestedRule) inGroup(name string) int {
	if a == nil {
		return 0
	}
	n := 0
	for _, p := range a.People {
		if p.Group == name {
			n++
		}
	}
	return min(n, a.Max)
}

// holds reports whether the person is known to hold a key that trust entries name so: the list
// says it, or the entry is for the same subject of the same issuer.
func (l ListedPerson) holds(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		if slices.Contains(l.Keys, key) {
			return true
		}
		same := l.identity()
		return same != "" && (key == same || strings.HasPrefix(key, same+" "))
	})
}

// identity is what signs as the person, as trust entries name it; empty for the name of a token.
func (l ListedPerson) identity() string {
	if l.Issuer == "" {
		return ""
	}
	return trust.TrustEntry{Identity: &trust.Identity{Issuer: l.Issuer, Subject: l.Subject}}.String()
}

// mayBe reports whether two entries are of one human: who holds a key or an identity of both.
func (l ListedPerson) mayBe(other ListedPerson) bool {
	return l.holds(other.Keys) || l.holds([]string{other.identity()}) || other.holds([]string{l.identity()})
}
