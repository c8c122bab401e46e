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

// before is the text up to a separator, or all of it.
func before(text, separator string) string {
	part, _, _ := strings.Cut(text, separator)
	return part
}

// literal reports whether a part of a pattern matches only itself.
func literal(part string) bool { return part != "" && !strings.ContainsAny(part, `*?[\`) }
