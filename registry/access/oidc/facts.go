package oidc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Facts describes the permissions in plain sentences, one fact per line, so that configurations
// can be compared.
func (c Config) Facts() []string {
	var facts []string
	for _, i := range c.Issuers {
		named := cmp.Or(i.Principal, "oidc:"+i.URL+"#{sub}")
		facts = append(facts,
			fmt.Sprintf("issuer %s is trusted for the audience %q; its callers are named %s", i.URL, i.Audience, named))
		if i.CA != "" {
			facts = append(facts, fmt.Sprintf("issuer %s has a TLS certificate of the CA %s", i.URL, i.CA))
		}
		if s := i.SignIn; s != nil {
			facts = append(facts, fmt.Sprintf("people sign in at %s as %s, which knows this service as the client %q", i.URL, s.Name, s.Client))
		}
		for _, r := range i.Rules {
			for _, g := range r.Grants {
				facts = append(
					facts,
					fmt.Sprintf("callers with %s at %s may %s %s in %s", r.match(), i.URL, permissions(g), g.Model, g.Environment),
				)
			}
		}
	}
	return facts
}

// match lists the claims that a rule requires, by name.
func (r Rule) match() string {
	var all []string
	for _, claim := range slices.Sorted(maps.Keys(r.Match)) {
		all = append(all, claim+"="+r.Match[claim])
	}
	return strings.Join(all, ", ")
}

func permissions(g storage.Grant) string {
	var names []string
	for _, p := range g.Permissions {
		names = append(names, string(p))
	}
	return strings.Join(names, ",")
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
