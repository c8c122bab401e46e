package registry

import "slices"

// The checks of a promoted release, which no policy can turn off.
const (
	requireSummary   = "summary"    // a promoter's summary lets it into this repository
	requireNoFailure = "no-failure" // every failing report of a verifier was healed
)

// Objects reports whether the requirement is unmet because something speaks against the
// release, rather than because a proof is missing.
func (req Requirement) Objects() bool {
	return req.Name == requireQuarantine || req.Name == requireNoFailure
}

// CheckStanding decides whether a release that was promoted to the resource may still be used.
// A trusted promoter's summary must cover it and its engines. None of them may be in
// quarantine. A builder whose key is not revoked must have signed each. No report that an
// engine failed may be left unhealed.
//
// Other requirements of the policy were checked at the promotion, and changes of policy apply
// to the next one. Reports that grow old, keys that are retired and shorter lists take nothing
// from nodes.
func CheckStanding(resource string, r Release, claims []Claim) Decision {
	return standing(resource, r, r.Subjects(), claims)
}

// CheckEngineStanding decides as CheckStanding, but for one engine of the release. Of the
// release itself it requires the summary and no quarantine.
func CheckEngineStanding(resource string, r Release, e Engine, claims []Claim) Decision {
	alone := r
	alone.Engines = []Engine{e}
	return standing(resource, alone, alone.Subjects()[1:], claims)
}

// CheckReturn decides as CheckStanding whether a head may go back to the release. Engines that
// failed since then do not prevent it: nodes do not get them, and an operator may need the
// others.
func CheckReturn(resource string, r Release, claims []Claim) Decision {
	d := CheckStanding(resource, r, claims)
	d.Requirements = slices.DeleteFunc(d.Requirements, func(req Requirement) bool { return req.Name == requireNoFailure })
	return d
}

// CheckUnpromoted decides whether an engine that was not promoted may be used on request. A
// trusted builder must have signed it, neither it nor its release may be in quarantine, and no
// failure may be left unhealed.
func CheckUnpromoted(r Release, e Engine, claims []Claim) Decision {
	r.Engines = []Engine{e}
	counted, ignored := count(r, claims)
	d := Decision{Requirements: append(objections(r, counted), signatures(r.Subjects()[1:], counted)...)}
	d.Ignore(ignored...)
	return d
}

func standing(resource string, r Release, signed []Subject, claims []Claim) Decision {
	counted, ignored := count(r, outliveRetirement(claims))
	summary := Requirement{
		Name: requireSummary, Subject: "release",
		Detail: "no verification summary of a trusted promoter for " + resource + ": promote it again",
	}
	if found, _, ok := FindVSA(claims, r, resource); ok {
		summary.Met, summary.Detail = true, "a promoter let it in"
		summary.cite(found)
	}
	d := Decision{Requirements: slices.Concat([]Requirement{summary}, objections(r, counted), signatures(signed, counted))}
	d.Ignore(ignored...)
	return d
}

// outliveRetirement lets signatures by retired keys count whenever they were made: the summary
// shows that there was one in time.
func outliveRetirement(claims []Claim) []Claim {
	out := slices.Clone(claims)
	for i, c := range out {
		if c.Key == KeyRetired && c.Statement.PredicateType == PredicateSign {
			out[i].Key = KeyTrusted
		}
	}
	return out
}

// objections are the requirements that the release and its engines are not in quarantine, and
// that no failure is left unhealed.
func objections(r Release, cs counted) []Requirement {
	var out []Requirement
	for _, s := range r.Subjects() {
		req := Requirement{Name: requireQuarantine, Subject: s.Name}
		req.absent(cs.quarantines(s.Digest))
		out = append(out, req)
	}
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
	req.present(cs.of(PredicateSign, subject), "signed by a builder", "no signature of a trusted builder: run mlpromote build")
}
