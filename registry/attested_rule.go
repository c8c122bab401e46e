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

// holder returns the listed person who is known to hold one of the keys, as trust entries name them.
func (a *AttestedRule) holder(keys []string) (l ListedPerson, ok bool) {
	if a == nil {
		return ListedPerson{}, false
	}
	i := slices.IndexFunc(a.People, func(l ListedPerson) bool { return l.holds(keys) })
	if i < 0 {
		return ListedPerson{}, false
	}
	return a.People[i], true
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
		same := TrustEntry{Identity: &Identity{Issuer: l.Issuer, Subject: l.Subject}}.String()
		return l.Issuer != "" && (key == same || strings.HasPrefix(key, same+" "))
	})
}

// judgeAttested says whether an attested approval that stands counts under the policy.
func (p Policy) judgeAttested(g GivenApproval, r Release, claims []Claim) ApprovalState {
	listed, ok := p.Approvals.Attested.find(*g.Person)
	switch {
	case g.State != ApprovalStands:
		return g.State
	case !ok:
		return ApprovalUnlisted
	case slices.ContainsFunc(p.Promotion.Publishers, g.Person.MayBe), p.published(listed), listed.built(r, claims):
		return ApprovalByBuilder
	}
	return ApprovalStands
}

// judgeKey says whether an approval by a key counts under the policy: not if the list knows who holds the key, and
// that person published or built the release.
func (p Policy) judgeKey(g GivenApproval, r Release, claims []Claim) ApprovalState {
	l, ok := p.Approvals.Attested.holder(g.Keys)
	if !ok || g.State != ApprovalStands {
		return g.State
	}
	if p.published(l) || l.built(r, claims) {
		return ApprovalByBuilder
	}
	return g.State
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

// built reports whether the person is known to hold a key that signed a build of the release.
func (l ListedPerson) built(r Release, claims []Claim) bool {
	signed := builders(r, claims)
	return slices.ContainsFunc(claims, func(c Claim) bool { return signed[c.Signer] && l.holds(c.Keys) })
}

// countAttested adds the attested approvals to those by keys: first those that groups lack, and no more than
// the rule takes. A person who approved with a key too is not counted again.
func (a *approvers) countAttested(rule ApprovalRule, byKey, attested []GivenApproval) {
	taken, counted := 0, make(map[string]bool)
	for _, forGroups := range []bool{true, false} {
		for _, g := range attested {
			l, _ := rule.Attested.find(*g.Person)
			lacks := slices.ContainsFunc(rule.Groups, func(group ApproverGroup) bool {
				return group.Name == l.Group && a.groups[group.Name] < group.Count
			})
			switch {
			case counted[g.Person.key()] || forGroups && !lacks:
				continue
			case slices.ContainsFunc(byKey, func(own GivenApproval) bool { return l.holds(own.Keys) }):
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
			counted[g.Person.key()] = true
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
				all[i].State = e.Policy().judgeAttested(g, r, claims)
			}
		}
	}
	return all
}
