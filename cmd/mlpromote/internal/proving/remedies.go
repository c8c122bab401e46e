package proving

import (
	"errors"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// What a terminal gets of engines that are no pass: for each cause once the engines, the figures with their limits, the cause, and the
// next step. Reports have the rest.

// shared are engines that fail for one cause.
type shared struct {
	remedies []*remedy.Remedy
	engines  []verify.VerifiedEngine
}

// readable returns the error of a verification with the failures of one cause as one error. Other errors in it stay as they are.
func readable(err error, r verify.Result, ref string) error {
	var order []string
	var others []error
	groups := make(map[string]*shared)
	for _, failure := range parts(err) {
		remedies := remedy.All(failure)
		engine, found := verifiedEngine(r, remedies)
		if !found {
			others = append(others, failure)
			continue
		}
		key := verdictText(engine, 1)
		for _, r := range remedies {
			key += "\n" + r.Cause + "\n" + r.Next
		}
		if groups[key] == nil {
			order, groups[key] = append(order, key), &shared{remedies: remedies}
		}
		groups[key].engines = append(groups[key].engines, engine)
	}
	all := make([]error, 0, len(order)+len(others))
	for _, key := range order {
		all = append(all, groups[key].failure(ref))
	}
	return errors.Join(append(all, others...)...)
}

// parts returns the errors that an error joins, and those that they join.
func parts(err error) (all []error) {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, part := range several.Unwrap() {
		all = append(all, parts(part)...)
	}
	return all
}

func verifiedEngine(r verify.Result, remedies []*remedy.Remedy) (verify.VerifiedEngine, bool) {
	if len(remedies) == 0 {
		return verify.VerifiedEngine{}, false
	}
	at := slices.IndexFunc(r.Engines, func(e verify.VerifiedEngine) bool { return e.Label == remedies[0].Label })
	if at < 0 {
		return verify.VerifiedEngine{}, false
	}
	return r.Engines[at], true
}

// verdictText says what engines that are no pass do.
func verdictText(e verify.VerifiedEngine, engines int) string {
	fails := e.Parity.Verdict == evidence.VerdictFail || e.Performance.Verdict == evidence.VerdictFail
	switch {
	case fails && engines == 1:
		return "does not keep its limits"
	case fails:
		return "do not keep their limits"
	case engines == 1:
		return "is undecided, which is no pass"
	}
	return "are undecided, which is no pass"
}

func (s shared) failure(ref string) error {
	var labels []string
	for _, e := range s.engines {
		labels = append(labels, e.Label)
	}
	text := strings.Join(labels, ", ") + " " + verdictText(s.engines[0], len(labels)) + ":"
	for _, line := range s.figures() {
		text += "\n  " + line
	}
	for _, r := range s.remedies {
		next := strings.NewReplacer(remedy.RefMark, ref, remedy.EngineMark, "--engine "+s.engines[0].Label).Replace(r.Next)
		text += "\n  likely cause: " + registry.PlainText(r.Cause) + "\n  next: " + registry.PlainText(next)
	}
	return registry.Errorf(registry.CodeLimit, "%s", text)
}

// figures has a line for each figure beyond its limit, with the engines if there are several figures.
func (s shared) figures() (lines []string) {
	engines := make(map[string][]string)
	for _, e := range s.engines {
		line := firstReason(e)
		if engines[line] == nil {
			lines = append(lines, line)
		}
		engines[line] = append(engines[line], e.Label)
	}
	if len(lines) == 1 {
		return lines
	}
	for i, line := range lines {
		lines[i] = strings.Join(engines[line], ", ") + ": " + line
	}
	return lines
}

// firstReason is the leading reason of an engine, and the number of others.
func firstReason(e verify.VerifiedEngine) string {
	reason, count := remedy.Leading(e.Parity.ReportHead, e.Performance.ReportHead)
	if count == 0 {
		return "its reports name no reason"
	}
	text := registry.PlainText(reason.Message)
	if more := count - 1; more > 0 {
		text += "; mlpromote report show has " + registry.Count(more, "more reason")
	}
	return text
}
