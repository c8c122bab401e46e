package registry_test

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func TestIsIssuerURL(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{
		"https://token.actions.githubusercontent.com": true,
		"https://gitlab.example.com:8443/path":        true,
		"http://127.0.0.1:9000":                       true,
		"http://[::1]:9000":                           true,
		"":                                            false,
		"gitlab.example.com":                          false,
		"https://":                                    false,
		"http://gitlab.example.com":                   false,
		"http://localhost:9000":                       false, // a name can resolve to anything
		"http://[::1%25lo]:9000":                      false,
		"ftp://127.0.0.1":                             false,
		"https://user@gitlab.example.com":             false,
		"https://gitlab.example.com?a=b":              false,
		"https://gitlab.example.com#a":                false,
		"https://gitlab.example.com/%zz":              false,
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if got := registry.IsIssuerURL(text); got != want {
				t.Errorf("got %t, want %t", got, want)
			}
		})
	}
}

func TestFindSharedIssuer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		shared    bool
		owner     string // one of the claims that name an owner
		permanent []string
	}{
		"https://token.actions.githubusercontent.com": {true, "repository", []string{"repository_id", "repository_owner_id"}},
		"https://gitlab.com":                          {true, "project_path", []string{"project_id", "namespace_id"}},
		"https://accounts.google.com":                 {true, "email", nil},
		"https://gitlab.example.com":                  {},
		"":                                            {},
	}
	for url, c := range cases {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			s, shared := registry.FindSharedIssuer(url)
			if shared != c.shared || c.shared && !slices.Contains(s.OwnerClaims, c.owner) {
				t.Errorf("shared is %t with the claims %v, want %t with %s", shared, s.OwnerClaims, c.shared, c.owner)
			}
			if !slices.Equal(s.PermanentClaims, c.permanent) {
				t.Errorf("permanent claims are %v, want %v", s.PermanentClaims, c.permanent)
			}
			for _, claim := range s.PermanentClaims {
				if !slices.Contains(s.OwnerClaims, claim) {
					t.Errorf("%s is permanent, but names no owner", claim)
				}
			}
		})
	}
}

// What a sub of GitHub or GitLab says is read from other claims, also for servers of one's own.
func TestClaimsInPlaceOf(t *testing.T) {
	t.Parallel()
	const github, gitlab, own = "https://token.actions.githubusercontent.com", "https://gitlab.com", "https://ci.example.com"
	for _, c := range []struct {
		name, issuer, sub string
		want              string // one of the claims; empty: the sub itself is to be matched
	}{
		{"GitHub", github, "repo:acme/digits:ref:refs/heads/main", "repository_id"},
		{"GitHub, with a sub that was customized", github, "acme", "repository_id"},
		{"GitLab", gitlab, "project_path:acme/digits:ref_type:branch:ref:main", "project_id"},
		{"GitLab, with a sub that was customized", gitlab, "acme", "project_id"},
		{"a GitHub server", own, "repo:acme/digits:ref:refs/heads/main", "repository_id"},
		{"a GitLab server", own, "project_path:acme/digits:ref_type:branch:ref:main", "project_id"},
		{"GitHub without a sub", github, "", ""},
		{"another issuer", own, "system:serviceaccount:ml:builder", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := registry.ClaimsInPlaceOf(c.issuer, c.sub); (len(got) == 0) != (c.want == "") || c.want != "" && !slices.Contains(got, c.want) {
				t.Errorf("got the claims %q, want %q among them", got, c.want)
			}
		})
	}
}
