package verify

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// earlier gives the parity reports about an engine that count, by the same runtime or server, with the same limits and cases and of the same kind
// of machine.
// What is there twice is given once.
func earlier(v Session, c run.Candidate) iter.Seq[evidence.ParityReport] {
	return func(yield func(evidence.ParityReport) bool) {
		accepted, _ := evidence.Accept(v.Release, v.Claims)
		seen := make(map[string]bool)
		for _, claim := range accepted {
			if claim.Subject != c.Engine.Digest || claim.Statement.PredicateType != evidence.PredicateParity || seen[string(claim.Statement.Predicate)] {
				continue
			}
			seen[string(claim.Statement.Predicate)] = true
			var report evidence.ParityReport
			if registry.DecodeSigned(claim.Statement.Predicate, &report) != nil {
				continue
			}
			same := report.Runtime.InPlaceOf(c.Engine) == c.Tool.InPlace() && report.Limits.Names(v.Release.Limits) && report.Cases.Digest.Names(v.Cases.Ref.Digest) && report.Node.Kind() == v.Node.Kind()
			if same && !yield(report) {
				return
			}
		}
	}
}

// failures counts the reports by which an engine failed a limit on a rate: those are the draws of which one may be lucky. An engine
// that crashed, or of which little was known, had no draw; one that passes is not held to more
// when it is verified again.
func failures(v Session, c run.Candidate) int {
	n := 0
	for report := range earlier(v, c) {
		if drew(report) {
			n++
		}
	}
	return n
}

// drew reports whether a report failed a limit on a rate.
func drew(report evidence.ParityReport) bool {
	return slices.ContainsFunc(report.Checks.OfCases(), func(c evidence.Check) bool {
		return (c.Misses != nil || c.Resampled) && c.Verdict == evidence.VerdictFail
	})
}

// mostAgain is how many samples of earlier reports are run again: each takes a process, and time that the random one needs too.
const mostAgain = 3

// failedSamples are the samples of cases on which plain loads of an engine failed in earlier reports, the newest first. Numbers that
// are no sample of these cases are left out: a report is not believed further than it can be checked.
func failedSamples(v Session, c run.Candidate) [][]int {
	var failed []evidence.ParityReport
	for report := range earlier(v, c) {
		if isSample(v, drawnBy(report)) {
			failed = append(failed, report)
		}
	}
	slices.SortStableFunc(failed, func(a, b evidence.ParityReport) int { return b.FinishedOn.Compare(a.FinishedOn) })
	var samples [][]int
	for _, report := range failed {
		known := slices.ContainsFunc(samples, func(s []int) bool { return slices.Equal(s, drawnBy(report)) })
		if !known && len(samples) < mostAgain {
			samples = append(samples, drawnBy(report))
		}
	}
	return samples
}

// drawnBy returns the cases on which the plain load of a report failed.
func drawnBy(report evidence.ParityReport) []int {
	check, _ := report.Checks.Of(evidence.TrialPlainLoad)
	return check.Drawn
}

// isSample reports whether numbers are a sample that a plain load can have drawn: of cases that there are, ascending, each once.
func isSample(v Session, numbers []int) bool {
	before := -1
	for _, n := range numbers {
		if n <= before || n >= v.Cases.Set.Count {
			return false
		}
		before = n
	}
	return 0 < len(numbers) && len(numbers) <= plainCases
}

// contradicted is a finding about an engine that failed before where nothing else was different: it does not compute the same each
// time, and who repeats a verification until it passes would promote it.
func contradicted(v Session, c run.Candidate, report evidence.ParityReport) validators.Findings {
	for before := range earlier(v, c) {
		what := failedExactly(before)
		if what == "" || !sameRun(before.ReportHead, report.ReportHead) {
			continue
		}
		return validators.Undecided(evidence.Reason{Code: validators.TrialOf(validators.TrialVerification).Code, Message: registry.PlainText(fmt.Sprintf(
			"the engine passes, and with the same cases and limits, runtime and kind of machine it failed on %s (%s): it does not compute the same each time, or a sample of the cases showed more then; "+
				"find out why, and build another engine or verify with other cases", before.FinishedOn.UTC().Format(time.RFC3339), what))})
	}
	return nil
}

// failedExactly says what a report failed that chance does not decide; empty if nothing.
func failedExactly(report evidence.ParityReport) string {
	for _, c := range report.Checks.OfCases() {
		if c.Misses == nil && !c.Resampled && c.Verdict == evidence.VerdictFail {
			return "output " + c.Output + ", " + c.Figure
		}
	}
	for _, c := range report.Checks.Beyond() {
		if c.Verdict == evidence.VerdictFail {
			return "consistency check " + c.Name()
		}
	}
	for _, r := range report.Reasons {
		if slices.Contains(wrongOutputs, r.Code) {
			return r.Message
		}
	}
	return ""
}

// wrongOutputs are the codes of failures that no check and no figure of a limit shows. A crash is none: the machine can be at fault, and
// an engine that crashes on a node computes nothing wrong there.
var wrongOutputs = []string{validators.ReasonShape, validators.ReasonPlainLoad, validators.ReasonNewNaN, validators.ReasonNewInf}

// sameRun reports whether two reports are of the same sources, run alike by the same runtime and version of this program.
func sameRun(a, b evidence.ReportHead) bool {
	return reflect.DeepEqual(a.Sources, b.Sources) && reflect.DeepEqual(a.Runtime, b.Runtime) &&
		reflect.DeepEqual(a.Settings, b.Settings) && reflect.DeepEqual(a.Tool, b.Tool)
}
