package oidc

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mlpromote.dev/mlpromote/registry"
)

// claims are those of a token that was verified.
type claims map[string]json.RawMessage

// decode reads claims into a struct.
func (c claims) decode(into any) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// texts are what a claim says: one text, several, or true or false. Other claims say
// nothing that a pattern could fit.
func (c claims) texts(name string) []string {
	raw, ok := c[name]
	if !ok {
		return nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil && string(raw) != "null" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		return many
	}
	var truth bool
	if json.Unmarshal(raw, &truth) == nil && string(raw) != "null" {
		return []string{map[bool]string{true: "true", false: "false"}[truth]}
	}
	return nil
}

// fits reports whether all claims of a rule are there.
func (r Rule) fits(c claims) bool {
	for claim, pattern := range r.Match {
		if !slices.ContainsFunc(c.texts(claim), func(text string) bool { return registry.MatchPattern(pattern, text) }) {
			return false
		}
	}
	return len(r.Match) > 0
}

// principal is who has the claims, with what all rules that fit grant. Errors:
// CodeUnauthenticated when none does.
func (t *trusted) principal(c claims) (registry.Principal, error) {
	name, err := t.name(c)
	if err != nil {
		return registry.Principal{}, err
	}
	p := registry.Principal{Name: name}
	for _, r := range t.Rules {
		if r.fits(c) {
			p.Grants = append(p.Grants, r.Grants...)
		}
	}
	if len(p.Grants) == 0 {
		return registry.Principal{}, registry.Errorf(registry.CodeUnauthenticated, "%s has a good token of %s, and no rule lets it in (access.yaml)", name, t.URL)
	}
	return p, nil
}

var placeholder = regexp.MustCompile(`\{[^{}]+\}`)

// maxClaim bounds what a claim adds to a name.
const maxClaim = 200

// name is what the history calls who has the claims.
func (t *trusted) name(c claims) (string, error) {
	template := t.Principal
	if template == "" {
		template = "oidc:" + strings.NewReplacer("{", "", "}", "").Replace(t.URL) + "#{sub}"
	}
	var missing string
	name := placeholder.ReplaceAllStringFunc(template, func(claim string) string {
		claim = strings.Trim(claim, "{}")
		texts := c.texts(claim)
		if len(texts) != 1 || texts[0] == "" || len(texts[0]) > maxClaim || strings.ContainsFunc(texts[0], func(r rune) bool { return !unicode.IsPrint(r) }) {
			missing = claim
			return ""
		}
		return texts[0]
	})
	if missing != "" {
		return "", registry.Errorf(registry.CodeUnauthenticated, "the token of %s has no claim %q that could be part of a name", t.URL, missing)
	}
	return name, nil
}
