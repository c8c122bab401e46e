package policy

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// hands groups the keys and identities that one person holds or may hold. Each group consents once, and never to a release that it
// built. The zero hands groups nothing.
type hands struct{ joined map[string]string }

// find returns the representative of the group that a key or identity is in.
func (h hands) find(part string) string {
	for next, ok := h.joined[part]; ok; next, ok = h.joined[part] {
		part = next
	}
	return part
}

func (h hands) join(a, b string) {
	if a, b = h.find(a), h.find(b); a != b {
		h.joined[a] = b
	}
}

// hands groups the signers of claims with the listed people who hold their keys. With groups, it also joins all keys and people of an
// approver group, because a holder of one key may hold the others.
func (rule ApprovalRule) hands(claims []evidence.Claim, groups bool) hands {
	h := hands{make(map[string]string)}
	var people []ListedPerson
	if rule.Attested != nil {
		people = rule.Attested.People
	}
	for i, l := range people {
		for _, c := range claims {
			if l.holds(c.Keys) {
				h.join(c.Signer, l.person().Key())
			}
		}
		for _, other := range people[:i] { // one person who is listed twice
			if l.mayBe(other) {
				h.join(l.person().Key(), other.person().Key())
			}
		}
	}
	for _, g := range rule.Groups {
		if !groups {
			break
		}
		all := "group\n" + g.Name // no key has a newline
		for _, c := range claims {
			if slices.ContainsFunc(c.Keys, func(key string) bool { return slices.Contains(g.Keys, key) }) {
				h.join(c.Signer, all)
			}
		}
		for _, l := range people {
			if l.Group == g.Name || l.holds(g.Keys) {
				h.join(l.person().Key(), all)
			}
		}
	}
	return h
}

// built are the hands that signed a build of the release or published it.
func (p Policy) built(h hands, r artifact.Release, claims []evidence.Claim) map[string]bool {
	out := make(map[string]bool)
	for signer := range evidence.Builders(r, claims) {
		out[h.find(signer)] = true
	}
	if p.Approvals.Attested != nil {
		for _, l := range p.Approvals.Attested.People {
			if p.published(l) {
				out[h.find(l.person().Key())] = true
			}
		}
	}
	return out
}

// published reports whether the listed person published the release. Events without a person have the name of
// the principal alone: then it is compared with the one that the person has without a template.
func (p Policy) published(l ListedPerson) bool {
	who := l.person()
	if who.Principal = "token:" + l.Token; l.Token == "" {
		who.Principal = "oidc:" + l.Issuer + "#" + l.Subject
	}
	return slices.ContainsFunc(p.Promotion.Publishers, who.MayBe)
}
