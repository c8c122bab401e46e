package policy

import (
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// CheckRestrictions decides about one engine of the release by the restrictions alone.
func CheckRestrictions(rs restriction.Restrictions, r artifact.Release, e artifact.Engine, claims []evidence.Claim) Decision {
	r.Engines = []artifact.Engine{e}
	counted, _ := evidence.Count(r, claims)
	j := judging{policy: Policy{Promotion: PromotionContext{Restrictions: rs}}, release: r, counted: counted}
	return Decision{Requirements: judge{perEngine, judgeRestrictions}.named(requireUnrestricted, j)}
}

// judgeRestrictions decides for each engine whether nothing restricts it. Without
// restrictions there is nothing to show, so it returns none.
func judgeRestrictions(j judging) []Requirement {
	in := j.policy.Promotion.Restrictions
	if !in.Known {
		return []Requirement{{Subject: subjectRelease, Detail: "it is unknown what is restricted here: read the restriction list of the environment"}}
	}
	if len(in.List) == 0 {
		return nil
	}
	var all []Requirement
	for _, e := range j.release.Engines {
		req := Requirement{Subject: e.Label(), Met: true, Detail: "nothing that it was made from is restricted"}
		for _, m := range in.MatchCounted(j.release, e, j.counted) {
			req.refuse("%s, and %s is restricted (%.200q): choose another version", m.Why, m.Restriction, m.Restriction.Reason)
		}
		all = append(all, req)
	}
	return all
}
