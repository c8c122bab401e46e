package oidc

import (
	"encoding/json"
	"slices"

	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// claims are the claims of a verified token.
type claims map[string]json.RawMessage

// decode decodes the claims into a struct.
func (c claims) decode(into any) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// texts returns the values of a claim that is a string, a list of strings or a boolean. Other
// claims match no pattern and have no values.
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

// text returns the value of a claim that has one value.
func (c claims) text(name string) string {
	if texts := c.texts(name); len(texts) == 1 {
		return texts[0]
	}
	return ""
}

// fits reports whether the claims of an issuer match all patterns of a rule. A rule for a branch does not fit a job
// that a pull request started, although its token can have the ref of the branch.
func (r Rule) fits(issuer string, c claims) bool {
	for claim, pattern := range r.Match {
		if !slices.ContainsFunc(c.texts(claim), func(text string) bool { return storage.MatchPattern(pattern, text) }) {
			return false
		}
	}
	return len(r.Match) > 0 && policy.AllowsProposedJob(issuer, r.Match, c.text)
}
