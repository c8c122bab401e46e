//go:build cgo

package validation_test

import (
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// engineRecord is the result of one engine of a trained model.
type engineRecord struct {
	Task    string            `json:"task"`
	Kind    string            `json:"kind"`
	Seed    int               `json:"seed"`
	Fault   string            `json:"fault,omitempty"` // empty: honest
	Runtime string            `json:"runtime"`
	Variant string            `json:"variant"`
	Verdict evidence.Verdict  `json:"verdict,omitempty"`
	Reasons []evidence.Reason `json:"reasons,omitempty"`
	Checks  evidence.Checks   `json:"checks,omitempty"` // all of the report
	Effect  effect            `json:"effect"`
	Harm    string            `json:"harm,omitempty"`  // why the engine harms the task; empty if it does not
	Error   string            `json:"error,omitempty"` // there was no verdict
	Program string            `json:"program"`         // that verified it: see programID
}

func (r engineRecord) taskName() string    { return r.Task }
func (r engineRecord) programName() string { return r.Program }
func (r engineRecord) passed() bool        { return r.Verdict == evidence.VerdictPass }
func (r engineRecord) like(h engineRecord) bool {
	return r.Kind == h.Kind && r.Seed == h.Seed && r.Runtime == h.Runtime && r.Variant == h.Variant
}

func (k trainedTask) record(variant string) engineRecord {
	return engineRecord{Task: k.String(), Kind: k.kind, Seed: k.seed, Fault: k.fault, Runtime: k.runtime, Variant: variant}
}

// note takes over the report of a verification.
func (r *engineRecord) note(e verify.VerifiedEngine) {
	r.Verdict, r.Reasons, r.Checks = e.Parity.Verdict, e.Parity.Reasons, e.Parity.Checks
}

// judgeHarm notes whether the engine harms its task, with the honest engines among those that ran before.
func (r *engineRecord) judgeHarm(before []engineRecord) {
	at := slices.IndexFunc(before, func(h engineRecord) bool { return h.Fault == "" && h.Error == "" && h.like(*r) })
	var honest effect
	if at >= 0 {
		honest = before[at].Effect
	}
	r.Harm = harm(r.Effect, allowed(r.Variant, r.Fault != "", honest))
}

// labelsRule is the rule that judges accuracy on the labels.
const labelsRule = "labels"

// rules are the rules that keep an engine from a pass: figures of the cases, trials beyond them, and codes of reasons that have neither.
func (r engineRecord) rules() []string {
	fired := make(map[string]bool)
	for _, c := range r.Checks {
		if c.Verdict == evidence.VerdictFail || c.Verdict == evidence.VerdictUndecided && c.Trial == evidence.TrialCases {
			fired[ruleOf(c.Trial, c.Figure, c.Output, "")] = true
		}
	}
	for _, reason := range r.Reasons {
		trial := reason.Trial
		if at := slices.IndexFunc(validators.Trials(), func(t validators.TrialRow) bool { return t.Code == reason.Code }); trial == "" && at >= 0 {
			trial = validators.Trials()[at].Trial
		}
		fired[ruleOf(trial, reason.Figure, reason.Output, reason.Code)] = true
	}
	return slices.Sorted(maps.Keys(fired))
}

// lines are the lines of the report that keep the engine from a pass.
func (r engineRecord) lines() []figure.Line {
	lines := make(map[figure.Line]bool)
	for _, rule := range r.rules() {
		lines[lineOfRule(rule)] = true
	}
	return slices.Sorted(maps.Keys(lines))
}

// lineOfRule is the line of the report that a rule belongs to.
func lineOfRule(rule string) figure.Line {
	if rule == labelsRule {
		return figure.Labels
	}
	if trial, ok := strings.CutPrefix(rule, trialPrefix); ok {
		return validators.TrialOf(evidence.Trial(trial)).Line
	}
	return validators.LineOf(evidence.Reason{Code: rule, Output: "any", Figure: rule})
}

// trialPrefix is in front of the name of a trial that is a rule.
const trialPrefix = "trial "

// ruleOf names the rule of a check or a reason.
func ruleOf(trial evidence.Trial, name, output, code string) string {
	if trial != "" && trial != evidence.TrialCases {
		return trialPrefix + string(trial)
	}
	if validators.LineOf(evidence.Reason{Code: code, Figure: name, Output: output}) == figure.Labels || output == "" && name != "" {
		return labelsRule
	}
	if name != "" {
		return name
	}
	return code
}
