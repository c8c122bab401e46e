package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators/figure"
)

// programMetric is the metric that a program of the release computes.
const programMetric = "program"

// RequiredConfidence is the confidence at which an [AccuracyRequirement] has to be shown, before it
// is divided among attempts.
const RequiredConfidence = 0.95

// AccuracyRequirement bounds the accuracy of every engine in an environment, whatever the limits of
// its release are. The report of a pass must have the same limit or a stricter one, and keep it. The
// zero AccuracyRequirement is invalid.
type AccuracyRequirement struct {
	Metric string `json:"metric"` // "top1", ...: a name of package validators/accuracy
	// Min is the least that is allowed, of a metric of which more is better, and Max the most, of
	// one of which less is.
	Min *Figure `json:"min,omitempty"`
	Max *Figure `json:"max,omitempty"`
	// Regression is how much worse an engine may be than the one that it replaces, on the same
	// cases: see CurrentAccuracy. It asks for nothing where there is none to replace.
	Regression *Figure `json:"regression,omitempty"`
	// Cases are the digests of the cases that count, labels included; any count if there are none.
	Cases []Digest `json:"cases,omitempty"`
}

// Validate checks that it asks for something. Errors: CodeInvalid.
func (a *AccuracyRequirement) Validate() error {
	switch {
	case a == nil:
		return nil
	case !namePattern.MatchString(a.Metric):
		return Errorf(CodeInvalid, "accuracy: metric %.40q: want the name of a metric, such as top1", a.Metric)
	case a.Metric == programMetric:
		return Errorf(CodeInvalid, "accuracy: metric %s: the builder of a release chooses the program, so it proves nothing here: want another metric", a.Metric)
	case a.Min == nil && a.Max == nil && a.Regression == nil:
		return Errorf(CodeInvalid, "accuracy: want min, max or regression")
	case a.Min != nil && a.Max != nil:
		return Errorf(CodeInvalid, "accuracy: want min or max: more of a metric is better, or less is")
	case a.Regression != nil && !(*a.Regression >= 0):
		return Errorf(CodeInvalid, "accuracy: regression %v: want 0 or more", *a.Regression)
	}
	for _, d := range a.Cases {
		if err := d.Validate(); err != nil {
			return Errorf(CodeInvalid, "accuracy: cases %q: want the digest of a cases manifest", d)
		}
	}
	return nil
}

// String describes the requirement: "top1 of at least 0.9, regression of at most 0.01".
func (a *AccuracyRequirement) String() string {
	text := a.Metric
	if a.Min != nil {
		text += fmt.Sprintf(" of at least %v", *a.Min)
	}
	if a.Max != nil {
		text += fmt.Sprintf(" of at most %v", *a.Max)
	}
	if a.Regression != nil {
		text += fmt.Sprintf(", regression of at most %v", *a.Regression)
	}
	return text
}

// Ceilings are, by precision and figure of a [Check], the loosest limits that an environment accepts on
// outputs. A limit on an SNR, a cosine or a rate has to be at least that, one on an error at most. Where
// there are ceilings, engines of a precision that is not listed are refused.
type Ceilings map[string]map[string]Figure

// Validate checks precisions and figures. Errors: CodeInvalid.
func (c Ceilings) Validate() error {
	for _, precision := range sortedKeys(c) {
		if !knownPrecision(precision) {
			return Errorf(CodeInvalid, "ceilings: precision %.40q: want one such as fp32, fp16, int8 or int4", precision)
		}
		for _, name := range sortedKeys(c[precision]) {
			if row, _ := figure.Find(name); row.Key == "" {
				return Errorf(CodeInvalid, "ceilings of %s: figure %.40q: want one of %q", precision, name, figure.Names())
			}
		}
	}
	return nil
}

// ownCeilings has the precisions that numbers of an output have by their type.
var ownCeilings = map[string]string{"float16": "fp16", "bfloat16": "bf16"}

// of are the ceilings of a precision for an output of a type. Numbers of 16 bits are rounded to these whatever the engine computes in, so
// that limits of their own precision are enough. What only the engine's precision bounds stays bounded.
func (c Ceilings) of(precision, dtype string) map[string]Figure {
	looser := maps.Clone(c[precision])
	for name, ceiling := range c[ownCeilings[dtype]] {
		if limit, bounded := looser[name]; bounded {
			row, _ := figure.Find(name)
			looser[name] = Figure(row.Looser(float64(limit), float64(ceiling)))
		}
	}
	return looser
}

// keeps reports whether a report has a limit on the engine as a whole, at least as strict as one, that held.
func (r report) keeps(name string, atLeast bool, limit Figure) bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool {
		return c.Figure == name && c.Output == "" && c.Slice == "" && c.AtLeast == atLeast && c.Verdict == VerdictPass &&
			stricter(atLeast, c.Limit, limit)
	})
}

func stricter(atLeast bool, limit, than Figure) bool {
	if atLeast {
		return limit >= than
	}
	return limit <= than
}

// answers reports whether the values of an output are answers, right or wrong: limits on them are rates.
func (o OutputFigures) answers() bool {
	return o.DType == "bool" || slices.Contains([]string{"class", "label", "scores", "probability", "tokens"}, o.Kind) && !strings.Contains(o.DType, "float")
}

// bound reports whether a ceiling on a figure is one for the output. It goes by what the output is, and not by the limits that it has: a
// builder could leave those out.
func (o OutputFigures) bound(row figure.Row) bool {
	switch ranks := slices.Contains([]string{"scores", "probability", "tokens", ""}, o.Kind); {
	case o.answers() || row.Scope == figure.Classes:
		return o.answers() && row.Scope == figure.Classes
	case row.Scope == figure.Ranks:
		return ranks
	case row.Scope == figure.FewValues:
		return o.Few && !ranks
	}
	return true
}

// above names the first output with a limit that is looser than a ceiling, or with none.
func (c Ceilings) above(pass report, precision string) string {
	if pass.Rules != ReportRules {
		return pass.otherRules()
	}
	limits := make(map[[2]string]Figure) // by output and figure
	for _, check := range pass.Checks {
		limits[[2]string{check.Output, check.Figure}] = check.Limit
	}
	if len(pass.Outputs) == 0 {
		return "its report lists no output"
	}
	for _, output := range sortedKeys(pass.Outputs) {
		ceilings := c.of(precision, pass.Outputs[output].DType)
		for _, name := range sortedKeys(ceilings) {
			row, _ := figure.Find(name)
			if !pass.Outputs[output].bound(row) {
				continue
			}
			limit, limited := limits[[2]string{output, name}]
			switch {
			case !limited:
				return fmt.Sprintf("output %s has no limit on %s, and %v is the loosest allowed", PlainText(output), name, ceilings[name])
			case !row.Keeps(float64(limit), float64(ceilings[name])):
				return fmt.Sprintf("output %s has a limit of %v on %s, and %v is the loosest allowed", PlainText(output), limit, name, ceilings[name]) +
					fewHint(row)
			}
		}
	}
	return ""
}

// fewHint says why a default limit on a share of cases is low, and how to raise it.
func fewHint(row figure.Row) string {
	if !row.Rate {
		return ""
	}
	return fmt.Sprintf(": set limits.outputs.NAME.%s, or give more cases, which prove more", row.Key)
}
