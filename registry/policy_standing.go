package registry

import (
	"slices"
	"strings"
)

// The checks of a promoted release. No policy can turn them off.
const (
	requireSummary   = "summary"    // a promoter's summary allows it in this repository
	requireNoFailure = "no-failure" // every failing report of a verifier was healed
)

// Objects reports whether the requirement is unmet because of something that speaks against the release,
// rather than because a proof is missing. Older services do not say it of all requirements.
func (req Requirement) Objects() bool {
	always := req.Name == requireQuarantine || req.Name == requireUnrestricted || req.Name == requireNoFailure
	return !req.Met && (req.Refused || always)
}

// Failed reports whether a report about the engine is in the way that did not pass. Other engines of the release may have passed.
func (req Requirement) Failed() bool { return !req.Met && req.Name == requireNoFailure }

// What to do about a signature that is missing, for who can build and promote.
const (
	adviceBuild   = ": run mlpromote build"
	advicePromote = ": promote it again"
)

// Missing is Detail without the advice to build or promote, for a machine that does neither.
func (req Requirement) Missing() string {
	return strings.TrimSuffix(strings.TrimSuffix(req.Detail, adviceBuild), advicePromote)
}

// State is how a decision stands to the requirement, in a word: met, unmet, refused or skipped.
func (req Requirement) State() string {
	switch {
	case req.Met:
		return "met"
	case req.Skipped:
		return "skipped"
	case req.Objects():
		return "refused"
	}
	return "unmet"
}

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
func CheckStanding(resource string, r Release, claims []Claim, in Restrictions) Decision {
	return standing(resource, r, r.Subjects(), claims, in)
}

// CheckEngineStanding is CheckStanding for one engine of the release, on a node of which nothing is known. Of the release itself it
// requires the summary and no quarantine.
func CheckEngineStanding(resource string, r Release, e Engine, claims []Claim, in Restrictions) Decision {
	alone := r
	alone.Engines = []Engine{e}
	return onUnknownNode(standing(resource, alone, alone.Subjects()[1:], claims, in))
}

// onUnknownNode decides for a node that states nothing: any report that did not pass keeps the engine from it. [Requirement.On]
// decides for others.
func onUnknownNode(d Decision) Decision {
	for i, req := range d.Requirements {
		if len(req.against) > 0 && !req.Refused {
			d.Requirements[i].refuse("%s", req.against[0].failure())
		}
	}
	return d
}

// CheckEngineAfterPromotion lists what CheckEngineStanding will have against an engine when the promotion that is decided has
// signed its summary.
func CheckEngineAfterPromotion(resource string, r Release, e Engine, claims []Claim, in Restrictions) []Requirement {
	unmet := CheckEngineStanding(resource, r, e, claims, in).Unmet()
	return slices.DeleteFunc(unmet, func(req Requirement) bool { return req.Name == requireSummary })
}

// CheckReturn decides like CheckStanding whether a head may go back to the release. Engines
// that failed since then do not prevent it: nodes do not get them, and an operator may need the
// other engines.
func CheckReturn(resource string, r Release, claims []Claim, in Restrictions) Decision {
	d := CheckStanding(resource, r, claims, in)
	d.Requirements = slices.DeleteFunc(d.Requirements, func(req Requirement) bool { return req.Name == requireNoFailure })
	return d
}

// CheckUnpromoted decides whether an unpromoted engine may be used on request. A trusted
// builder must have signed it, neither it nor its release may be in quarantine, no restriction may
// concern it, and every failure must be healed.
func CheckUnpromoted(r Release, e Engine, claims []Claim, in Restrictions) Decision {
	r.Engines = []Engine{e}
	counted, ignored := count(r, claims)
	d := Decision{Requirements: append(objections(r, counted, in), signatures(r.Subjects()[1:], counted)...)}
	d.Ignore(ignored...)
	return onUnknownNode(d)
}

func standing(resource string, r Release, signed []Subject, claims []Claim, in Restrictions) Decision {
	counted, ignored := count(r, outliveRetirement(claims))
	summary := Requirement{
		Name: requireSummary, Subject: "release",
		Detail: "no verification summary of a trusted promoter for " + resource + advicePromote,
	}
	if found, _, ok := FindVSA(claims, r, resource); ok {
		summary.Met, summary.Detail = true, "a promoter's summary allows it"
		summary.cite(found)
	}
	d := Decision{Requirements: slices.Concat([]Requirement{summary}, objections(r, counted, in), signatures(signed, counted)),
		Withheld: counted.withheld(r)}
	d.Ignore(ignored...)
	return d
}

// outliveRetirement lets signatures by retired keys, and by keys whose window ended, count whenever
// they were made. The summary
// proves that there was one before the retirement.
func outliveRetirement(claims []Claim) []Claim {
	out := slices.Clone(claims)
	for i, c := range out {
		if c.Statement.PredicateType != PredicateSign {
			continue
		}
		out[i].Window = Window{}
		if c.Key == KeyRetired {
			out[i].Key = KeyTrusted
		}
	}
	return out
}

// objections returns the requirements that the release and its engines are not in quarantine,
// that no restriction concerns an engine, and that all failures are healed.
func objections(r Release, cs counted, in Restrictions) []Requirement {
	var out []Requirement
	for _, s := range r.Subjects() {
		req := Requirement{Name: requireQuarantine, Subject: s.Name}
		req.absent(cs.quarantines(s.Digest))
		out = append(out, req)
	}
	out = append(out, in.check(r, cs)...)
	for _, e := range r.Engines {
		req := Requirement{Name: requireNoFailure, Subject: e.Label()}
		judgeFailures(&req, r, e, cs)
		out = append(out, req)
	}
	return out
}

func signatures(subjects []Subject, cs counted) []Requirement {
	var out []Requirement
	for _, s := range subjects {
		req := Requirement{Name: RequireSignature, Subject: s.Name}
		req.signed(s.Digest, cs)
		out = append(out, req)
	}
	return out
}

// signed decides whether a builder signed the subject.
func (req *Requirement) signed(subject Digest, cs counted) {
	req.present(cs.of(PredicateSign, subject), "signed by a builder",
		"no signature of a trusted builder"+adviceBuild)
}
