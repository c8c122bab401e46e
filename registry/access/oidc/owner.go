package oidc

import (
	"slices"
	"strings"
)

// sharedIssuer is an issuer from which anybody can get a token. A rule for it must name an
// owner, or it would accept everybody.
type sharedIssuer struct {
	// claims name the owner of a repository, project or account.
	claims []string
	// subjects are the first words of a sub that names an owner. GitHub and GitLab let the owner
	// of a repository choose the parts of its sub, so only the first part is reliable. Empty: the
	// whole sub is the name of an account.
	subjects []string
	example  string // what to add to a rule
}

// sharedIssuers are the shared issuers, by URL.
//
// Sources: https://docs.github.com/en/actions/reference/security/oidc,
// https://docs.gitlab.com/ci/secrets/id_token_authentication/.
func sharedIssuers() map[string]sharedIssuer {
	return map[string]sharedIssuer{
		"https://token.actions.githubusercontent.com": {
			claims:   []string{"repository", "repository_id", "repository_owner", "repository_owner_id"},
			subjects: []string{"repo", "repository", "repository_id", "repository_owner", "repository_owner_id"},
			example:  `repository: OWNER/NAME, or a sub that begins with "repo:OWNER/NAME:" or "repo:OWNER@ID/NAME@ID:"`,
		},
		"https://gitlab.com": {
			claims:   []string{"project_path", "project_id", "namespace_path", "namespace_id"},
			subjects: []string{"project_path", "project_id", "namespace_path", "namespace_id"},
			example:  `project_path: GROUP/PROJECT, or a sub that begins with "project_path:GROUP/PROJECT:"`,
		},
		"https://accounts.google.com": {
			claims:  []string{"email", "hd"},
			example: "email, hd or sub, without *",
		},
	}
}

// namesOwner reports whether a rule accepts only tokens of one owner.
func (s sharedIssuer) namesOwner(match map[string]string) bool {
	return s.ownerOfSubject(match["sub"]) || slices.ContainsFunc(s.claims, func(claim string) bool {
		return literal(before(match[claim], "/"))
	})
}

// ownerOfSubject reports whether a pattern for sub names an owner, as
// "repo:OWNER/NAME:ref:refs/heads/main" does. With permanent numbers that is
// "repo:OWNER@ID/NAME@ID:ref:refs/heads/main". The pattern may leave open what follows the
// name of the owner, the number included.
func (s sharedIssuer) ownerOfSubject(pattern string) bool {
	if len(s.subjects) == 0 {
		return literal(pattern)
	}
	key, value, _ := strings.Cut(pattern, ":")
	owner := before(before(before(value, ":"), "/"), "@")
	return slices.Contains(s.subjects, key) && literal(owner)
}

// before is the text up to a separator, or all of it.
func before(text, separator string) string {
	part, _, _ := strings.Cut(text, separator)
	return part
}

// literal reports whether a part of a pattern matches only itself.
func literal(part string) bool { return part != "" && !strings.ContainsAny(part, `*?[\`) }
