package oidc

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// namesOwner reports whether a rule for a shared issuer accepts only tokens of one owner.
func namesOwner(s registry.SharedIssuer, match map[string]string) bool {
	return ownerOfSubject(s, match["sub"]) || slices.ContainsFunc(s.OwnerClaims, func(claim string) bool {
		return literal(before(match[claim], "/"))
	})
}

// ownerOfSubject reports whether a pattern for sub names an owner, as
// "repo:OWNER/NAME:ref:refs/heads/main" does. With permanent numbers that is
// "repo:OWNER@ID/NAME@ID:ref:refs/heads/main". The pattern may leave open what follows the
// name of the owner, the number included.
func ownerOfSubject(s registry.SharedIssuer, pattern string) bool {
	if len(s.SubjectPrefixes) == 0 {
		return literal(pattern)
	}
	key, value, _ := strings.Cut(pattern, ":")
	owner := before(before(before(value, ":"), "/"), "@")
	return slices.Contains(s.SubjectPrefixes, key) && literal(owner)
}

// SubjectPattern is a rule that matches jobs of a CI system by a pattern for their sub.
type SubjectPattern struct {
	Issuer  string
	Rule    int // of the issuer, from 1
	Pattern string
	Claims  []string // that a rule can match in place of it
}

// SubjectPatterns lists the rules that match jobs by a pattern for their sub. They work, but they follow
// names that pass to other owners, and parts of the sub that the owner of a repository chooses.
func (c Config) SubjectPatterns() []SubjectPattern {
	var all []SubjectPattern
	for _, i := range c.Issuers {
		for n, r := range i.Rules {
			pattern := r.Match["sub"]
			if claims := registry.ClaimsInPlaceOf(i.URL, pattern); len(claims) > 0 && !literal(pattern) {
				all = append(all, SubjectPattern{Issuer: i.URL, Rule: n + 1, Pattern: pattern, Claims: claims})
			}
		}
	}
	return all
}

// before is the text up to a separator, or all of it.
func before(text, separator string) string {
	part, _, _ := strings.Cut(text, separator)
	return part
}

// literal reports whether a part of a pattern matches only itself.
func literal(part string) bool { return part != "" && !strings.ContainsAny(part, `*?[\`) }
