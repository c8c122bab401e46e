package policy_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

func figure(v float64) *evidence.Figure { return (*evidence.Figure)(&v) }

// measured is a report that shows an accuracy, and limits on an output.
func measured(p *evidence.ParityReport) {
	p.Rules, p.Confidence, p.Attempts = evidence.ReportRules, 0.975, 2
	p.Cases.Digest = evidence.NewDigestSet(digest.FromString("cases"))
	p.Accuracy = &evidence.Accuracy{Metric: "top1"}
	p.Destination = &evidence.Destination{Environment: "prod", Release: evidence.NewDigestSet(digest.FromString("head")),
		Engine: evidence.NewDigestSet(digest.FromString("engine"))}
	p.Outputs = map[string]evidence.OutputFigures{"y": {DType: "float32", Kind: "scores"}, "label": {DType: "int64", Kind: "class"}}
	p.Checks = evidence.Checks{
		{Trial: evidence.TrialCases, Figure: "accuracy", AtLeast: true, Limit: new(evidence.Figure(0.9)), Verdict: evidence.VerdictPass},
		{Trial: evidence.TrialCases, Figure: "regression", Limit: new(evidence.Figure(0.01)), Verdict: evidence.VerdictPass},
		{Trial: evidence.TrialCases, Output: "y", Figure: "snrDb", AtLeast: true, Limit: new(evidence.Figure(12)), Verdict: evidence.VerdictPass},
		{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Limit: new(evidence.Figure(2.5)), Verdict: evidence.VerdictPass},
		{Trial: evidence.TrialCases, Output: "label", Figure: "equal", AtLeast: true, Limit: new(evidence.Figure(0.9)), Verdict: evidence.VerdictPass},
	}
}

// An environment asks for an accuracy and for ceilings whatever limits a builder chose. What the report does
// not show, at 95 % and for the head that is replaced, is refused with what to set.
func TestCheckDemands(t *testing.T) {
	t.Parallel()
	accuracy := policy.AccuracyRequirement{Metric: "top1", Min: figure(0.9), Regression: figure(0.01)}
	check := func(p *evidence.ParityReport, n int) *evidence.Check { return &p.Checks[n] }
	for name, c := range map[string]struct {
		policy func(*policy.Policy)
		report func(*evidence.ParityReport)
		want   string
	}{
		"as required":           {nil, nil, ""},
		"as strict as required": {func(p *policy.Policy) { p.Accuracy.Min = figure(0.9) }, nil, ""},
		"not strict enough":     {func(p *policy.Policy) { p.Accuracy.Min = figure(0.91) }, nil, "no limit on top1 of at least 0.91: set limits.accuracy.min"},
		"another metric":        {nil, func(p *evidence.ParityReport) { p.Accuracy.Metric = "top5" }, "measured by top5, and top1 is required"},
		"not measured":          {nil, func(p *evidence.ParityReport) { p.Accuracy = nil }, "its accuracy was not measured"},
		"rules of version 2":    {nil, func(p *evidence.ParityReport) { p.Rules = 2 }, "no report counts: its rules are of version 2"},
		"cases that count":      {func(p *policy.Policy) { p.Accuracy.Cases = []registry.Digest{digest.FromString("cases")} }, nil, ""},
		"other cases": {func(p *policy.Policy) { p.Accuracy.Cases = []registry.Digest{digest.FromString("mine")} }, nil,
			"it ran other cases than those that prod accepts: " + string(digest.FromString("cases"))},
		"cases of no digest": {func(p *policy.Policy) { p.Accuracy.Cases = []registry.Digest{digest.FromString("mine")} },
			func(p *evidence.ParityReport) { p.Cases.Digest = nil }, "of an unknown digest"},
		"a low confidence":              {nil, func(p *evidence.ParityReport) { p.Confidence = 0.9 }, "confidence below 0.95"},
		"a limit on a slice":            {nil, func(p *evidence.ParityReport) { check(p, 0).Slice = "3" }, "no limit on top1 of at least"},
		"a limit the other way":         {nil, func(p *evidence.ParityReport) { check(p, 0).AtLeast = false }, "no limit on top1 of at least"},
		"a limit that is no number":     {nil, func(p *evidence.ParityReport) { check(p, 0).Limit = new(evidence.Figure(math.NaN())) }, "no limit on top1 of at least"},
		"a larger regression":           {nil, func(p *evidence.ParityReport) { check(p, 1).Limit = new(evidence.Figure(0.02)) }, "no limit of at most 0.01 on what it loses"},
		"no regression":                 {nil, func(p *evidence.ParityReport) { p.Checks = slices.Delete(p.Checks, 1, 2) }, "no limit of at most 0.01 on what it loses"},
		"no engine to replace":          {nil, func(p *evidence.ParityReport) { p.Checks, p.Destination.Engine = slices.Delete(p.Checks, 1, 2), nil }, ""},
		"not compared":                  {nil, func(p *evidence.ParityReport) { p.Destination = nil }, "it was not compared with the engine there now"},
		"not compared, nothing there":   {func(p *policy.Policy) { p.Promotion.Head = "" }, func(p *evidence.ParityReport) { p.Destination = nil }, ""},
		"compared with another release": {func(p *policy.Policy) { p.Promotion.Head = digest.FromString("moved") }, nil, "and prod has release"},
		"there already": {func(p *policy.Policy) { p.Promotion.Replay, p.Promotion.Environment, p.Promotion.Head = true, "", "" },
			func(p *evidence.ParityReport) { p.Destination = nil }, ""},
		"an error, of which less is better": {func(p *policy.Policy) { p.Accuracy = &policy.AccuracyRequirement{Metric: "rmse", Max: figure(0.5)} },
			func(p *evidence.ParityReport) {
				p.Accuracy.Metric = "rmse"
				*check(p, 0) = evidence.Check{Trial: evidence.TrialCases, Figure: "accuracy", Limit: new(evidence.Figure(0.5)), Verdict: evidence.VerdictPass}
			}, ""},
		"too large an error": {func(p *policy.Policy) { p.Accuracy = &policy.AccuracyRequirement{Metric: "rmse", Max: figure(0.5)} },
			func(p *evidence.ParityReport) {
				p.Accuracy.Metric = "rmse"
				*check(p, 0) = evidence.Check{Trial: evidence.TrialCases, Figure: "accuracy", Limit: new(evidence.Figure(0.6)), Verdict: evidence.VerdictPass}
			}, "no limit on rmse of at most 0.5"},
		"a policy without an accuracy": {func(p *policy.Policy) { p.Accuracy = nil }, nil, "does not say which accuracy"},
		"a limit above the ceiling":    {nil, func(p *evidence.ParityReport) { check(p, 3).Limit = new(evidence.Figure(2.6)) }, "output y has a limit of 2.6 on maxError, and 2.5 is the loosest allowed"},
		"a limit below the least":      {nil, func(p *evidence.ParityReport) { check(p, 2).Limit = new(evidence.Figure(11)) }, "output y has a limit of 11 on snrDb, and 12"},
		"no such limit":                {nil, func(p *evidence.ParityReport) { p.Checks = slices.Delete(p.Checks, 3, 4) }, "output y has no limit on maxError"},
		"no limit at all":              {nil, func(p *evidence.ParityReport) { p.Checks = p.Checks[:2] }, "output y has no limit on maxError"},
		"no output":                    {nil, func(p *evidence.ParityReport) { p.Outputs = nil }, "lists no output"},
		"scores that are called a class": {nil, func(p *evidence.ParityReport) {
			p.Outputs["y"] = evidence.OutputFigures{DType: "float32", Kind: "class"}
			p.Checks = append(slices.Delete(p.Checks, 2, 4), evidence.Check{Trial: evidence.TrialCases, Output: "y", Figure: "equal", AtLeast: true, Verdict: evidence.VerdictPass})
		}, "output y has no limit on maxError"},
		"an output with a limit on equality": {nil, func(p *evidence.ParityReport) {
			p.Checks = append(slices.Delete(p.Checks, 2, 4), evidence.Check{Trial: evidence.TrialCases, Output: "y", Figure: "equal", AtLeast: true, Verdict: evidence.VerdictPass})
		}, "output y has no limit on maxError"},
		"as many equal answers": {func(p *policy.Policy) { p.Ceilings["int8"]["equal"] = 0.9 }, nil, ""},
		"fewer equal answers": {func(p *policy.Policy) { p.Ceilings["int8"]["equal"] = 0.95 }, nil,
			"output label has a limit of 0.9 on equal, and 0.95 is the loosest allowed: set limits.outputs.NAME.equal, or give more cases"},
		"answers without a limit on equality": {func(p *policy.Policy) { p.Ceilings["int8"]["equal"] = 0.9 }, func(p *evidence.ParityReport) {
			p.Checks = slices.Delete(p.Checks, 4, 5)
		}, "output label has no limit on equal, and 0.9 is the loosest allowed"},
		"only a limit on equality": {func(p *policy.Policy) { p.Ceilings = policy.Ceilings{"int8": {"equal": 0.9}} }, func(p *evidence.ParityReport) {
			p.Checks = slices.Delete(p.Checks, 2, 4)
		}, ""},
		"a precision that is not listed": {func(p *policy.Policy) { p.Ceilings = policy.Ceilings{"fp16": {"maxError": 0}} }, nil, "there are ceilings, but not for int8"},
		"a precision without a ceiling":  {func(p *policy.Policy) { p.Ceilings = policy.Ceilings{"int8": {}} }, func(p *evidence.ParityReport) { check(p, 3).Limit = new(evidence.Figure(99)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			r.Engines = r.Engines[1:]
			r.Engines[0].Precision = "int8"
			own := accuracy
			policy := policy.Policy{Require: []string{"accuracy", "ceilings"}, Accuracy: &own,
				Promotion: policy.PromotionContext{Environment: "prod", Head: digest.FromString("head")},
				Ceilings:  policy.Ceilings{"int8": {"maxError": 2.5, "snrDb": 12}}}
			if c.policy != nil {
				c.policy(&policy)
			}
			claims := []evidence.Claim{parity(r, r.Engines[0], 1, evidence.VerdictPass, func(p *evidence.ParityReport) {
				measured(p)
				if c.report != nil {
					c.report(p)
				}
			})}
			d := policy.Check(r, claims)
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
			failed := parity(r, r.Engines[0], 2, evidence.VerdictFail, nil)
			if policy.Check(r, append(claims, failed)).Allowed() && len(policy.Ceilings["int8"]) > 0 {
				t.Error("allowed with a report that failed later")
			}
			if policy.Check(r, nil).Allowed() && len(policy.Ceilings["int8"]) > 0 {
				t.Error("allowed without a report")
			}
		})
	}
}

// A demand that asks for nothing, or for what cannot be, is refused when it is read.
func TestValidateDemands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		accuracy *policy.AccuracyRequirement
		ceilings policy.Ceilings
		want     string
	}{
		"nothing":                  {nil, nil, ""},
		"an accuracy":              {&policy.AccuracyRequirement{Metric: "top1", Min: figure(0.9)}, nil, ""},
		"a regression of 0":        {&policy.AccuracyRequirement{Metric: "top1", Regression: figure(0)}, nil, ""},
		"no metric":                {&policy.AccuracyRequirement{Min: figure(0.9)}, nil, "want the name of a metric"},
		"a program of the builder": {&policy.AccuracyRequirement{Metric: "program", Min: figure(0.9)}, nil, "the builder of a release chooses the program"},
		"no bound":                 {&policy.AccuracyRequirement{Metric: "top1"}, nil, "want min, max or regression"},
		"both bounds":              {&policy.AccuracyRequirement{Metric: "top1", Min: figure(0), Max: figure(1)}, nil, "want min or max"},
		"a negative regression":    {&policy.AccuracyRequirement{Metric: "top1", Regression: figure(-1)}, nil, "want 0 or more"},
		"ceilings":                 {nil, policy.Ceilings{"int8": {"cosine": 0.9}}, ""},
		"an unknown precision":     {nil, policy.Ceilings{"int9": {"cosine": 0.9}}, `precision int9`},
		"an unknown figure":        {nil, policy.Ceilings{"int8": {"p99": 0.9}}, `figure p99`},
		"no figure":                {nil, policy.Ceilings{"int8": {}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := policy.Policy{Require: policy.DefaultRequire(), Accuracy: c.accuracy, Ceilings: c.ceilings}.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
