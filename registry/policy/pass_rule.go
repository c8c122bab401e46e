package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
)

// refuseFindings marks the requirement as refused for every report that did not pass, unless a pass counts: then they only keep the engine
// from some nodes.
func refuseFindings(f evidence.Findings, req *Requirement) {
	for _, against := range f.Against {
		req.cite(against.Claim)
		if len(f.Passes) == 0 {
			req.refuse("%s", against.Failure())
		}
	}
}

// passRule is a rule of a policy on one pass.
type passRule int

const (
	passFresh    passRule = iota + 1 // it is young enough
	passCompared                     // it compared with what the promotion replaces, if it compared at all
	passCases                        // it shows something of enough cases
	passRare                         // it has enough repeated runs
	passRecorded                     // its cases were recorded
	passAccuracy                     // it shows the accuracy
	passCeilings                     // no limit is looser than its ceiling
)

// passRules are the rules on passes of an engine that a policy has.
func (p Policy) passRules(e artifact.Engine) []passRule {
	rules := []passRule{passFresh, passCompared, passCases, passRare}
	if slices.Contains(p.Require, RequireRecordedCases) {
		rules = append(rules, passRecorded)
	}
	if p.Accuracy != nil {
		rules = append(rules, passAccuracy)
	}
	if _, listed := p.Ceilings[e.Precision]; listed {
		rules = append(rules, passCeilings)
	}
	return rules
}

// brokenRule returns the first of the rules that a pass of an engine does not keep, and what that is; 0 if it keeps all. It is the only
// place that decides whether a pass counts for a policy.
func (p Policy) brokenRule(pass evidence.Report, e artifact.Engine, rules ...passRule) (broken passRule, why string) {
	for _, rule := range rules {
		if why := p.breaks(pass, e, rule); why != "" {
			return rule, why
		}
	}
	return 0, ""
}

func (p Policy) breaks(pass evidence.Report, e artifact.Engine, rule passRule) string {
	switch rule {
	case passFresh:
		if p.aged(pass) {
			return "a report is too old"
		}
	case passCompared:
		if !p.compared(pass) {
			return p.comparedWithAnother(pass)
		}
	case passCases:
		if shown := evidence.CasesOf(pass); shown < p.Reports.Cases {
			return fmt.Sprintf("a report shows %s of the %d that are wanted", registry.Count(shown, "case"), p.Reports.Cases)
		}
	case passRare:
		if missed := pass.Checks.MissedOneIn(); missed < p.Reports.Rare {
			return p.Reports.lacksRuns(missed)
		}
	case passRecorded:
		return unrecorded(pass.Cases.Origin)
	case passAccuracy:
		return p.lacksAccuracy(pass, e)
	case passCeilings:
		return p.Ceilings.above(pass, e.Precision)
	}
	return ""
}

// unrecorded says what to do about cases that were not recorded, or is "".
func unrecorded(origin string) string {
	if origin == artifact.OriginRecorded {
		return ""
	}
	return fmt.Sprintf("its cases are %s: set cases in mlpromote.yaml to recorded ones, build and verify", registry.PlainText(origin))
}

// judgePasses holds the newest pass of each kind of hardware against rules. Reports count only if they are about this release's limits,
// sources and reference, on hardware that meets the target. A pass must be complete. A report that did not pass, even an incomplete
// one, keeps the engine from nodes like its machine until a later pass on a machine of the same kind heals it, and denies if no pass on
// another machine counts. A performance report that failed its limits does the same.
func judgePasses(j judging, req *Requirement, e artifact.Engine, met string, rules ...passRule) evidence.Findings {
	found := j.counted.Proofs(j.release, e)
	passes := found.Newest(j.policy.compared)
	req.Met, req.Detail = true, met
	refuseFindings(found, req)
	if len(passes) == 0 {
		req.deny("%s", found.NoPass())
	}
	for _, kind := range registry.SortedKeys(passes) {
		req.cite(passes[kind].Claim)
		if _, why := j.policy.brokenRule(passes[kind], e, rules...); why != "" {
			req.deny("%s", why)
		}
	}
	return found
}

// compared reports whether a pass compared with what the promotion replaces, if it compared at all.
func (p Policy) compared(pass evidence.Report) bool {
	if p.Promotion.Replay || pass.Destination == nil {
		return true
	}
	d := *pass.Destination
	none := p.Promotion.Head == "" && len(d.Release) == 0
	return d.Environment == p.Promotion.Environment && (none || d.Release.Names(p.Promotion.Head))
}

func (p Policy) comparedWithAnother(pass evidence.Report) string {
	d := pass.Destination
	return fmt.Sprintf("it was compared with %s of %s, and %s has %s now: run mlpromote verify again",
		evidence.Shown(d.Release.SHA256()), registry.PlainText(d.Environment), p.Promotion.Environment, evidence.Shown(p.Promotion.Head))
}

// aged reports whether a report is too old for the promotion, or nothing shows when it was made.
func (p Policy) aged(pass evidence.Report) bool {
	if p.Reports.MaxAge == 0 {
		return false
	}
	shown, _ := pass.Claim.Time()
	at := pass.Age()
	return shown.IsZero() || at.IsZero() || p.Promotion.Now.IsZero() || !p.Promotion.Now.Before(at.Add(p.Reports.MaxAge))
}

// agesAt returns when fewer than want of the reports are young enough; zero: never.
func (p Policy) agesAt(fresh map[string]evidence.Report, want int) time.Time {
	if p.Reports.MaxAge == 0 || len(fresh) < want {
		return time.Time{}
	}
	var ends []time.Time
	for _, r := range fresh {
		ends = append(ends, r.Age().Add(p.Reports.MaxAge))
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[want-1]
}

func (p Policy) lacksAccuracy(pass evidence.Report, e artifact.Engine) string {
	want := p.Accuracy
	switch {
	case pass.Accuracy == nil:
		return fmt.Sprintf("its accuracy was not measured: give the cases labels and set limits.accuracy to metric %s, build and verify", want.Metric)
	case pass.Accuracy.Metric != want.Metric:
		return fmt.Sprintf("its accuracy was measured by %s, and %s is required: set limits.accuracy.metric, build and verify", registry.PlainText(pass.Accuracy.Metric), want.Metric)
	case len(want.Cases) > 0 && !slices.ContainsFunc(want.Cases, pass.Cases.Digest.Names):
		return fmt.Sprintf("it ran other cases than those that %s accepts: %s", p.Promotion.Environment, shownDigest(pass.Cases.Digest))
	case !(1-(1-float64(pass.Confidence))*float64(max(pass.Attempts, 1)) >= RequiredConfidence-1e-9):
		return fmt.Sprintf("its limits have a confidence below %v: set limits.confidence, build and verify", RequiredConfidence)
	}
	return cmp.Or(want.lacksBound(pass), p.lacksRegression(pass, e))
}

// lacksBound says which bound a report does not have.
func (a AccuracyRequirement) lacksBound(pass evidence.Report) string {
	switch want := a; {
	case want.Min != nil && !pass.Keeps(figure.Accuracy, true, *want.Min):
		return fmt.Sprintf("it has no limit on %s of at least %v: set limits.accuracy.min, build and verify", want.Metric, *want.Min)
	case want.Max != nil && !pass.Keeps(figure.Accuracy, false, *want.Max):
		return fmt.Sprintf("it has no limit on %s of at most %v: set limits.accuracy.max, build and verify", want.Metric, *want.Max)
	}
	return ""
}

// lacksRegression says why a report does not show what the engine loses against the one there now.
func (p Policy) lacksRegression(pass evidence.Report, e artifact.Engine) string {
	want := p.Accuracy
	if want.Regression == nil || p.Promotion.Replay {
		return ""
	}
	switch {
	case pass.Replaces(e) && !pass.Keeps(figure.Regression, false, *want.Regression):
		return fmt.Sprintf("it has no limit of at most %v on what it loses against the engine there now: set limits.accuracy.regression, build and verify", *want.Regression)
	case p.Promotion.Head != "" && pass.Destination == nil:
		return "it was not compared with the engine there now: set limits.accuracy.regression, build and verify"
	case !p.compared(pass):
		return p.comparedWithAnother(pass)
	}
	return ""
}

func shownDigest(s evidence.DigestSet) string {
	if d := s.SHA256(); d != "" {
		return string(d)
	}
	return "of an unknown digest"
}

// parityRefuses reports whether [RequireParity] refuses a release without a pass, so that no other requirement does. Where break-glass
// skips requirements, each that is unmet has to be skipped by its name.
func (p Policy) parityRefuses() bool {
	return slices.Contains(p.Require, RequireParity) && !p.Promotion.BreakGlass
}
