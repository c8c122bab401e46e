package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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
		return Errorf(CodeInvalid, "approvals: attested: max %d: want 1 to %d, as many as are needed", a.Max, rule.Count)
	}
	if len(a.People) == 0 {
		return Errorf(CodeInvalid, "approvals: attested: people is empty: want those whose approvals count")
	}
	for i, p := range a.People {
		// Any principal will do: it is not part of the list.
		if err := (Person{Principal: "x", Issuer: p.Issuer, Subject: p.Subject, Token: p.Token}).Validate(); err != nil {
			return Errorf(CodeInvalid, "approvals: attested: person %d: want an issuer and a subject, or the name of a token", i+1)
		}
		if p.Issuer != "" && !IsIssuerURL(p.Issuer) {
			return Errorf(CodeInvalid, "approvals: attested: issuer %.200q: want https://HOST[/PATH], as its tokens have it in iss", p.Issuer)
		}
		if strings.ContainsAny(p.Subject+p.Token, "*?") {
			return Errorf(CodeInvalid, "approvals: attested: %s: want the exact text: patterns have no meaning here", p)
		}
		if p.Group != "" && !slices.ContainsFunc(rule.Groups, func(g ApproverGroup) bool { return g.Name == p.Group }) {
			return Errorf(CodeInvalid, "approvals: attested: %s: there is no group %.40q", p, p.Group)
		}
		for _, o := range a.People[:i] {
			if p.person().Is(o.person()) {
				return Errorf(CodeInvalid, "approvals: attested: %s is listed twice", p)
			}
			if k := slices.IndexFunc(p.Keys, func(key string) bool { return slices.Contains(o.Keys, key) }); k >= 0 {
				return Errorf(CodeInvalid, "approvals: attested: key %s is listed for two people", p.Keys[k])
			}
		}
	}
	return nil
}

func (l ListedPerson) person() Person {
	return Person{Issuer: l.Issuer, Subject: l.Subject, Token: l.Token}
}

// String names the person.
func (l ListedPerson) String() string { return PlainText(l.person().String()) }

// find returns the entry of a person.
func (a *AttestedRule) find(p Person) (l ListedPerson, ok bool) {
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
func (a *AttestedRule) Lists(p Person) bool {
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
	return TrustEntry{Identity: &Identity{Issuer: l.Issuer, Subject: l.Subject}}.String()
}

// mayBe reports whether two entries are of one human: who holds a key or an identity of both.
func (l ListedPerson) mayBe(other ListedPerson) bool {
	return l.holds(other.Keys) || l.holds([]string{other.identity()}) || other.holds([]string{l.identity()})
}

// judgeApproval says whether an approval that stands counts under the policy: not if the person is not listed, or the same hand built
// or published the release.
func (p Policy) judgeApproval(g GivenApproval, r Release, claims []Claim) ApprovalState {
	h := p.Approvals.hands(claims, false)
	built := p.built(h, r, claims)
	switch {
	case g.State != ApprovalStands:
		return g.State
	case g.foreign():
		return ApprovalForeign
	case p.Promotion.Left > 0 && g.recorded <= p.Promotion.Left:
		return ApprovalLeft
	case g.Person != nil && !p.Approvals.Attested.Lists(*g.Person):
		return ApprovalUnlisted
	case g.Person != nil && slices.ContainsFunc(p.Promotion.Publishers, g.Person.MayBe), built[h.find(g.voice())]:
		return ApprovalByBuilder
	}
	return ApprovalStands
}

// published reports whether the listed person published the release. Events of earlier versions have the name of
// the principal alone: then it is compared with the one that the person has without a template.
func (p Policy) published(l ListedPerson) bool {
	who := l.person()
	if who.Principal = "token:" + l.Token; l.Token == "" {
		who.Principal = "oidc:" + l.Issuer + "#" + l.Subject
	}
	return slices.ContainsFunc(p.Promotion.Publishers, who.MayBe)
}

// countAttested adds the attested approvals to those by keys: first those that groups lack, and no more than
// the rule takes. A person who approved with a key too is not counted again: byKey are the hands that did.
func (a *approvers) countAttested(rule ApprovalRule, h hands, byKey map[string]bool, attested []GivenApproval) {
	taken, counted := 0, make(map[string]bool)
	for _, forGroups := range []bool{true, false} {
		for _, g := range attested {
			l, _ := rule.Attested.find(*g.Person)
			lacks := slices.ContainsFunc(rule.Groups, func(group ApproverGroup) bool {
				return group.Name == l.Group && a.groups[group.Name] < group.Count
			})
			hand := h.find(g.Person.key())
			switch {
			case counted[hand] || forGroups && !lacks:
				continue
			case byKey[hand]:
				a.other = append(a.other, g.by()+" approved with a key too, which counts once")
			case taken == rule.Attested.Max:
				a.other = append(a.other, fmt.Sprintf("that of %s is one more than the %d attested that count", g.by(), taken))
			default:
				taken++
				a.names = append(a.names, g.by())
				a.groups[l.Group]++
				a.bundles = append(a.bundles, g.Bundle)
				a.until = earlier(a.until, g.ExpiresOn)
			}
			counted[hand] = true
		}
	}
}

// Approvals lists the approvals of a release for all resources, as [Approvals] does, and says of each
// attested one whether the environment that it is for lists the person.
func (es Environments) Approvals(r Release, claims []Claim, now time.Time) []GivenApproval {
	all := Approvals(r, claims, now)
	for i, g := range all {
		if g.Person == nil {
			continue
		}
		all[i].State = ApprovalUnlisted
		for _, e := range es.List {
			if es.ResourceURI(e.Name, r.Model) == g.ResourceURI {
				all[i].State = e.Policy().judgeApproval(g, r, claims)
			}
		}
	}
	return all
}
