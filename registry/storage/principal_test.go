package storage_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/storage"
)

func TestPrefixes(t *testing.T) {
	t.Parallel()
	read := []storage.Permission{storage.PermissionRead}
	for _, c := range []struct {
		grants [][2]string
		want   []string
	}{
		{nil, nil},
		{[][2]string{{"**", "**"}}, []string{""}},
		{[][2]string{{"prod", "vision/**"}, {"staging", "**"}}, []string{"prod/vision/", "staging/"}},
		{[][2]string{{"prod", "a"}, {"prod", "ab"}, {"prod", "a/b"}, {"prod", "b"}, {"*", "x"}, {"prod", "ac"}}, []string{""}},
		{[][2]string{{"prod", "a"}, {"prod", "ab"}, {"prod", "a/b"}, {"prod", "b"}, {"prod", "ac"}}, []string{"prod/a", "prod/b"}},
		{[][2]string{{"prod-?", "x"}, {"prod-1", "y"}, {"lab", "mo[a-d]el"}, {"lab", `x\*y`}}, []string{"lab/mo", "lab/x", "prod-"}},
	} {
		var p storage.Principal
		for _, g := range c.grants {
			p.Grants = append(p.Grants, storage.Grant{Permissions: read, Environment: g[0], Model: g[1]},
				storage.Grant{Permissions: []storage.Permission{storage.PermissionPush}, Environment: "elsewhere", Model: "**"})
		}
		if got := p.Prefixes(storage.PermissionList); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.grants, got, c.want)
		}
	}
}

// Whatever may be listed begins with a prefix.
func TestPrefixesOmitNothing(t *testing.T) {
	t.Parallel()
	patterns := []string{"**", "*", "a", "a*", "?", "[ab]", "a/b", "a/*", "a/**", "b/**", "*/b", `\a`, "ab", "*a"}
	names := []string{"a", "b", "ab", "ba", "a/b", "b/a", "a/b/c", "ab/b", "aa"}
	allowed := 0
	for _, environment := range patterns {
		for _, model := range patterns {
			p := storage.Principal{Grants: []storage.Grant{{Permissions: []storage.Permission{storage.PermissionAdminister}, Environment: environment, Model: model}}}
			for _, e := range names {
				for _, m := range names {
					if !p.May(storage.PermissionList, e, m) {
						continue
					}
					allowed++
					if !slices.ContainsFunc(p.Prefixes(storage.PermissionList), func(prefix string) bool { return strings.HasPrefix(e+"/"+m, prefix) }) {
						t.Errorf("%s of %s in %s: no prefix of %q", m, model, environment, p.Prefixes(storage.PermissionList))
					}
				}
			}
		}
	}
	if allowed < 1000 {
		t.Errorf("%d names were allowed", allowed)
	}
}

func TestListIsPartOfRead(t *testing.T) {
	t.Parallel()
	for _, permission := range append(storage.Permissions(), storage.PermissionList) {
		p := storage.Principal{Grants: []storage.Grant{{Permissions: []storage.Permission{permission}, Environment: "prod", Model: "**"}}}
		want := permission == storage.PermissionRead || permission == storage.PermissionAdminister || permission == storage.PermissionList
		if p.May(storage.PermissionList, "prod", "x") != want || p.May(storage.PermissionList, "staging", "x") {
			t.Errorf("%s may list: %t", permission, !want)
		}
		if permission == storage.PermissionList && (p.May(storage.PermissionRead, "prod", "x") || p.Grants[0].Validate() == nil) {
			t.Error("list reads, or can be granted")
		}
	}
}
