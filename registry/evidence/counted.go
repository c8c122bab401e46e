package evidence

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Counted are the claims that count. Each is about the release or one of its engines, has a
// predicate type that the signer's role may issue, and is signed by a key whose state allows
// it.
type Counted []Claim

// Of lists the claims of a predicate type about a digest.
func (cs Counted) Of(predicateType string, subject registry.Digest) []Claim {
	var out []Claim
	for _, c := range cs {
		if c.Statement.PredicateType == predicateType && c.Subject == subject {
			out = append(out, c)
		}
	}
	return out
}

// Distinct keeps one claim of each signed statement, the one that was recorded first. Anyone
// can put a statement into another bundle and attach that later. This does not make the
// statement newer.
func Distinct(claims []Claim) []Claim {
	var out []Claim
	for _, c := range claims {
		i := slices.IndexFunc(out, c.Restates)
		switch {
		case i < 0:
			out = append(out, c)
		case c.Recorded != 0 && (out[i].Recorded == 0 || c.Recorded < out[i].Recorded):
			out[i] = c
		}
	}
	return out
}
