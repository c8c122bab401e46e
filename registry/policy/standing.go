package policy

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// requireSummary is only asked of releases that were promoted: a promoter's summary allows it in this repository.
const requireSummary = "summary"

// CheckStanding decides whether a release that was promoted to the resource may still be used.
// It requires that:
//   - a trusted promoter's summary covers the release and its engines
//   - neither the release nor an engine is in quarantine
//   - no restriction in force concerns an engine
//   - a builder whose key is not revoked signed each of them
//   - every failing report about an engine was healed, or a pass on another machine counts
//
// The promotion checked the other requirements of the policy. Changes of policy apply to the
// next promotion. Old reports, retired keys and shorter lists in the configuration do not
// withdraw engines from nodes.
func CheckStanding(resource string, r artifact.Release, claims []evidence.Claim, in restriction.Restrictions) Decision {
	return standing(resource, r, r.Judged(), claims, in)
}

// CheckEngineStanding is CheckStanding for one engine of the release, on a node of which nothing is known. Of the release itself it
// requires the summary and no quarantine.
func CheckEngineStanding(resource string, r artifact.Release, e artifact.Engine, claims []evidence.Claim, in restriction.Restrictions) Decision {
	alone := r
	alone.Engines = []artifact.Engine{e}
	return onUnknownNode(standing(resource, alone, alone.Judged()[1:], claims, in))
}

// onUnknownNode decides for a node that states nothing: any report that did not pass keeps the engine from it. [Requirement.On]
// decides for others.
func onUnknownNode(d Decision) Decision {
	for i, req := range d.Requirements {
		if len(req.against) > 0 && !req.Refused {
			d.Requirements[i].refuse("%s", req.against[0].Failure())
		}
	}
	return d
}

// CheckEngineAfterPromotion lists what CheckEngineStanding will have against an engine when the promotion that is decided has
// signed its summary.
func CheckEngineAfterPromotion(resource string, r artifact.Release, e artifact.Engine, claims []evidence.Claim, in restriction.Restrictions) []Requirement {
	unmet := CheckEngineStanding(resource, r, e, claims, in).Unmet()
	return slices.DeleteFunc(unmet, func(req Requirement) bool { return req.Name == requireSummary })
}

// CheckReturn decides like CheckStanding whether a head may go back to the release. Engines
// that failed since then do not prevent it: nodes do not get them, and an operator may need the
// other engines.
func CheckReturn(resource string, r artifact.Release, claims []evidence.Claim, in restriction.Restrictions) Decision {
	d := CheckStanding(resource, r, claims, in)
	d.Requirements = slices.DeleteFunc(d.Requirements, func(req Requirement) bool { return req.Name == requireNoFailure })
	return d
}

// CheckUnpromoted decides whether an unpromoted engine may be used on request. A trusted
// builder must have signed it, neither it nor its release may be in quarantine, no restriction may
// concern it, and every failure must be healed.
func CheckUnpromoted(r artifact.Release, e artifact.Engine, claims []evidence.Claim, in restriction.Restrictions) Decision {
	r.Engines = []artifact.Engine{e}
	counted, ignored := evidence.Count(r, claims)
	d := Decision{Requirements: append(objections(r, counted, in), signatures(r, counted, r.Judged()[1:])...)}
	d.Ignore(ignored...)
	return onUnknownNode(d)
}

func standing(resource string, r artifact.Release, signed []artifact.Subject, claims []evidence.Claim, in restriction.Restrictions) Decision {
	counted, ignored := evidence.Count(r, outliveRetirement(claims))
	summary := Requirement{Name: requireSummary, Subject: subjectRelease}
	var found []evidence.Claim
	if c, _, ok := FindVSA(claims, r, resource); ok {
		found = append(found, c)
	}
	summary.present(found, "a promoter's summary allows it", "no verification summary of a trusted promoter for "+resource, ": promote it again")
	d := Decision{Requirements: slices.Concat([]Requirement{summary}, objections(r, counted, in), signatures(r, counted, signed)),
		Withheld: counted.Withheld(r)}
	d.Ignore(ignored...)
	return d
}

// outliveRetirement lets signatures by retired keys, and by keys whose window ended, count whenever
// they were made. The summary
// proves that there was one before the retirement.
func outliveRetirement(claims []evidence.Claim) []evidence.Claim {
	out := slices.Clone(claims)
	for i, c := range out {
		if c.Statement.PredicateType != evidence.PredicateSign {
			continue
		}
		out[i].Window = evidence.Window{}
		if c.Key == evidence.KeyRetired {
			out[i].Key = evidence.KeyTrusted
		}
	}
	return out
}

// objections returns the requirements that the release and its engines are not in quarantine,
// that no restriction concerns an engine, and that all failures are healed.
func objections(r artifact.Release, cs evidence.Counted, in restriction.Restrictions) []Requirement {
	j := judging{policy: Policy{Promotion: PromotionContext{Restrictions: in}}, release: r, counted: cs}
	all := slices.Concat(releaseAndEngines(judgeQuarantine).named(requireQuarantine, j), judge{perEngine, judgeRestrictions}.named(requireUnrestricted, j))
	if len(r.Engines) > 0 {
		all = append(all, eachEngine(judgeFailures).named(requireNoFailure, j)...)
	}
	return all
}

func signatures(r artifact.Release, cs evidence.Counted, subjects []artifact.Subject) []Requirement {
	var all []Requirement
	for _, s := range subjects {
		req := Requirement{Name: RequireSignature, Subject: s.Name}
		judgeSignature(judging{release: r, counted: cs}, &req, s)
		all = append(all, req)
	}
	return all
}

// judgeQuarantine decides whether nothing quarantines the subject.
func judgeQuarantine(j judging, req *Requirement, s artifact.Subject) {
	claims := j.counted.Quarantines(s.Digest)
	if image, ok := imageOf(j.release, s); ok {
		claims = append(claims, j.counted.Quarantines(image)...)
	}
	req.Met, req.Detail = true, "not in quarantine"
	if len(claims) > 0 {
		said := ""
		if q, _ := claims[0].Quarantine(); q.Reason != "" {
			said = fmt.Sprintf(" (%.200q)", q.Reason)
		}
		req.refuse("in quarantine%s: choose another version", said)
	}
	req.cite(claims...)
}

// FindVSA returns the claim that allows the release at the resource. It is a summary by a
// trusted promoter about the release and every engine of it, with the result PASSED, bound to
// exactly this resource. It can be attached to any of them. The latest of several wins. ok is
// false if there is no such claim. Promote, resolve, pull and trust all use this function.
func FindVSA(claims []evidence.Claim, r artifact.Release, resource string) (found evidence.Claim, summary evidence.VSA, ok bool) {
	counted, _ := evidence.Count(r, claims)
	for _, c := range counted {
		v, err := c.Vsa()
		if err != nil || v.ResourceURI != resource || v.VerificationResult != evidence.VSAPassed || !coversAll(c.Statement, r) {
			continue
		}
		if !ok || v.TimeVerified.After(summary.TimeVerified) {
			found, summary, ok = c, v, true
		}
	}
	return found, summary, ok
}

func coversAll(s evidence.Statement, r artifact.Release) bool {
	for _, subject := range r.Subjects() {
		if !s.About(subject.Digest) {
			return false
		}
	}
	return true
}

// judgeFailures decides whether every report of a trusted verifier that did not pass was
// healed, or leaves nodes that may have the engine because a pass on such a machine counts. It does not require a pass.
func judgeFailures(j judging, req *Requirement, e artifact.Engine) {
	req.Met, req.Detail = true, "no unhealed failure of a verifier"
	found := j.counted.Proofs(j.release, e)
	refuseFindings(found, req)
	refuseServed(found, j.policy.Served, req)
	if req.Met && len(found.Against) > 0 {
		req.against, req.Detail = found.Against, "it is kept from "+found.Against[0].Kept()
	}
}
