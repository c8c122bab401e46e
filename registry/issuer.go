package registry

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// IsIssuerURL reports whether a text can be the URL of an OIDC issuer, as its tokens have it in
// iss. It has a host, no user and nothing after the path, and [IsSecureURL] is true for it.
func IsIssuerURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && IsSecureURL(u)
}

// IsSecureURL reports whether what a URL names can be trusted to come from its host: by https,
// or by plain http from a loopback address.
func IsSecureURL(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

// SharedIssuer is an issuer from which anyone can get a token. Rules that trust its tokens must
// name an owner, or trust everyone.
type SharedIssuer struct {
	// OwnerClaims name the owner of a repository, project or account, who may change.
	OwnerClaims []string
	// PermanentClaims are those of OwnerClaims that are never given to another owner. Empty: the
	// issuer has no such claim.
	PermanentClaims []string
	// SubjectPrefixes are the first words of a sub that names an owner. GitHub and GitLab let the
	// owner of a repository choose the parts of its sub, so only the first part is reliable. Empty:
	// the whole sub is the name of an account.
	SubjectPrefixes []string
	// Example says how a rule for callers names an owner.
	Example string
}

// ClaimsInPlaceOf names the claims that say what a sub of GitHub Actions or GitLab CI says, and that
// neither pass to others nor are chosen by the owner of a repository; nil for other subs. An issuer that
// is not shared, such as that of a server of one's own, is known by the first word of the sub. GitHub writes a sub in two
// shapes, repo:OWNER/NAME:... and repo:OWNER@ID/NAME@ID:..., so that no pattern is right for both. Sources: those of
// [FindSharedIssuer].
func ClaimsInPlaceOf(issuer, sub string) []string {
	word, _, _ := strings.Cut(sub, ":")
	is := func(url string) bool {
		s, _ := FindSharedIssuer(url)
		return sub != "" && (issuer == url || slices.Contains(s.SubjectPrefixes, word))
	}
	switch {
	case is(issuerGitHub):
		return []string{"repository_id", "repository_owner_id", "job_workflow_ref", "environment", "runner_environment"}
	case is(issuerGitLab):
		return []string{"project_id", "namespace_id", "ci_config_ref_uri", "environment", "runner_environment"}
	}
	return nil
}

// Issuers of CI systems.
const (
	issuerGitHub = "https://token.actions.githubusercontent.com"
	issuerGitLab = "https://gitlab.com"
)

// FindSharedIssuer returns the shared issuer with a URL. ok is false for other issuers.
//
// Sources: https://docs.github.com/en/actions/reference/security/oidc,
// https://docs.gitlab.com/ci/secrets/id_token_authentication/.
func FindSharedIssuer(url string) (s SharedIssuer, ok bool) {
	switch url {
	case issuerGitHub:
		return SharedIssuer{
			OwnerClaims:     []string{"repository", "repository_id", "repository_owner", "repository_owner_id"},
			PermanentClaims: []string{"repository_id", "repository_owner_id"},
			SubjectPrefixes: []string{"repo", "repository", "repository_id", "repository_owner", "repository_owner_id"},
			Example:         `repository: OWNER/NAME, or a sub that begins with "repo:OWNER/NAME:" or "repo:OWNER@ID/NAME@ID:"`,
		}, true
	case issuerGitLab:
		return SharedIssuer{
			OwnerClaims:     []string{"project_path", "project_id", "namespace_path", "namespace_id"},
			PermanentClaims: []string{"project_id", "namespace_id"},
			SubjectPrefixes: []string{"project_path", "project_id", "namespace_path", "namespace_id"},
			Example:         `project_path: GROUP/PROJECT, or a sub that begins with "project_path:GROUP/PROJECT:"`,
		}, true
	case "https://accounts.google.com":
		return SharedIssuer{OwnerClaims: []string{"email", "hd"}, Example: "email, hd or sub, without *"}, true
	}
	return SharedIssuer{}, false
}
