package oidc

import (
	"context"
	"regexp"
	"strings"
	"unicode"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// principal returns the principal with the claims, with the grants of all matching rules.
// Errors: CodeUnauthenticated if no rule matches.
func (t *trusted) principal(c claims) (storage.Principal, error) {
	name, err := t.name(c)
	if err != nil {
		return storage.Principal{}, err
	}
	p := storage.Principal{Name: name, Person: t.person(name, c)}
	for _, r := range t.Rules {
		if r.fits(t.URL, c) {
			p.Grants = append(p.Grants, r.Grants...)
		}
	}
	if len(p.Grants) == 0 {
		return storage.Principal{}, registry.Errorf(registry.CodeUnauthenticated,
			"%s has a valid token of %s, but no rule in access.yaml matches it", name, t.URL)
	}
	return p, nil
}

var placeholder = regexp.MustCompile(`\{[^{}]+\}`)

// maxClaim limits the length of a claim in a name.
const maxClaim = 200

// name returns the name of the principal in the history.
func (t *trusted) name(c claims) (string, error) {
	template := t.Principal
	if template == "" {
		template = "oidc:" + strings.NewReplacer("{", "", "}", "").Replace(t.URL) + "#{sub}"
	}
	var missing string
	name := placeholder.ReplaceAllStringFunc(template, func(claim string) string {
		claim = strings.Trim(claim, "{}")
		texts := c.texts(claim)
		if len(texts) != 1 || texts[0] == "" || len(texts[0]) > maxClaim ||
			strings.ContainsFunc(texts[0], func(r rune) bool { return !unicode.IsPrint(r) }) {
			missing = claim
			return ""
		}
		return texts[0]
	})
	if missing != "" {
		return "", registry.Errorf(registry.CodeUnauthenticated,
			"the token of %s has no claim %q that could be part of a name", t.URL, missing)
	}
	return name, nil
}

// personClaims are the claims that tell who a person is: the subject, and what the issuer calls them.
var personClaims = []string{"sub", "name", "preferred_username", "email"}

// person returns who the token is of: its subject, with the name that the issuer gives it. It is zero for a
// subject that cannot be shown.
func (t *trusted) person(principal string, c claims) evidence.Person {
	subject := c.texts("sub")
	if len(subject) != 1 {
		return evidence.Person{}
	}
	p := evidence.Person{Principal: principal, Issuer: t.URL, Subject: subject[0]}
	for _, claim := range personClaims[1:] {
		texts := c.texts(claim)
		if len(texts) != 1 || texts[0] == "" {
			continue
		}
		named := p
		if named.Name = texts[0]; named.Validate() == nil {
			return named
		}
	}
	if p.Validate() != nil {
		return evidence.Person{}
	}
	return p
}

// Identify returns the principal of a token. Errors: CodeUnauthenticated if the token is not
// accepted; CodeUnavailable if the keys of its issuer cannot be fetched.
func (i *Identifier) Identify(ctx context.Context, token string) (storage.Principal, error) {
	issuer, err := i.issuerOf(token)
	if err != nil {
		return storage.Principal{}, err
	}
	claims, err := issuer.verify(ctx, token)
	if err != nil {
		return storage.Principal{}, err
	}
	return issuer.principal(claims)
}
