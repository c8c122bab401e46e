package policy

import (
	"fmt"
	"maps"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
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
	Min *evidence.Figure `json:"min,omitempty"`
	Max *evidence.Figure `json:"max,omitempty"`
	// Regression is how much worse an engine may be than the one that it replaces, on the same
	// cases: see [evidence.CurrentAccuracy]. It asks for nothing where there is none to replace.
	Regression *evidence.Figure `json:"regression,omitempty"`
	// Cases are the digests of the cases that count, labels included; any count if there are none.
	Cases []registry.Digest `json:"cases,omitempty"`
}

// Validate checks that it asks for something. Errors: CodeInvalid.
func (a *AccuracyRequirement) Validate() error {
	switch {
	case a == nil:
		return nil
	case !registry.NamePattern.MatchString(a.Metric):
		return registry.Errorf(registry.CodeInvalid, "accuracy: metric %.40q: want the name of a metric, such as top1", a.Metric)
	case a.Metric == programMetric:
		return registry.Errorf(registry.CodeInvalid, "accuracy: metric %s: the builder of a release chooses the program, so it proves nothing here: want another metric", a.Metric)
	case a.Min == nil && a.Max == nil && a.Regression == nil:
		return registry.Errorf(registry.CodeInvalid, "accuracy: want min, max or regression")
	case a.Min != nil && a.Max != nil:
		return registry.Errorf(registry.CodeInvalid, "accuracy: want min or max: more of a metric is better, or less is")
	case a.Regression != nil && !(*a.Regression >= 0):
		return registry.Errorf(registry.CodeInvalid, "accuracy: regression %v: want 0 or more", *a.Regression)
	}
	for _, d := range a.Cases {
		if err := d.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "accuracy: cases %q: want the digest of a cases manifest", d)
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

// Ceilings are, by precision and figure of a [evidence.Check], the loosest limits that an environment accepts on
// outputs. A limit on an SNR, a cosine or a rate has to be at least that, one on an error at most. Where
// there are ceilings, engines of a precision that is not listed are refused.
type Ceilings map[string]map[string]evidence.Figure

// Validate checks precisions and figures. Errors: CodeInvalid.
func (c Ceilings) Validate() error {
	for _, precision := range registry.SortedKeys(c) {
		if !artifact.KnownPrecision(precision) {
			return registry.Errorf(registry.CodeInvalid, "ceilings: precision %.40q: want one such as fp32, fp16, int8 or int4", precision)
		}
		for _, name := range registry.SortedKeys(c[precision]) {
			if row, _ := figure.Find(name); row.Key == "" {
				return registry.Errorf(registry.CodeInvalid, "ceilings of %s: figure %.40q: want one of %q", precision, name, figure.Names())
			}
		}
	}
	return nil
}

// ownCeilings has the precisions that numbers of an output have by their type.
var ownCeilings = map[string]string{"float16": "fp16", "bfloat16": "bf16"}

// of are the ceilings of a precision for an output of a type. Numbers of 16 bits are rounded to these whatever the engine computes in, so
// that limits of their own precision are enough. What only the engine's precision bounds stays bounded.
func (c Ceilings) of(precision, dtype string) map[string]evidence.Figure {
	looser := maps.Clone(c[precision])
	for name, ceiling := range c[ownCeilings[dtype]] {
		if limit, bounded := looser[name]; bounded {
			row, _ := figure.Find(name)
			looser[name] = evidence.Figure(row.Looser(float64(limit), float64(ceiling)))
		}
	}
	return looser
}

// above names the first output with a limit that is looser than a ceiling, or with none.
func (c Ceilings) above(pass evidence.Report, precision string) string {
	limits := make(map[[2]string]evidence.Figure) // by output and figure
	for _, check := range pass.Checks.OfCases() {
		if check.Limit != nil {
			limits[[2]string{check.Output, check.Figure}] = *check.Limit
		}
	}
	if len(pass.Outputs) == 0 {
		return "its report lists no output"
	}
	for _, output := range registry.SortedKeys(pass.Outputs) {
		ceilings := c.of(precision, pass.Outputs[output].DType)
		if len(ceilings) > 0 && pass.Outputs[output].Kind == "detections" {
			ceilings[figure.Detections] = ceilingOfDetections(ceilings, precision, pass.Outputs[output].DType)
		}
		for _, name := range registry.SortedKeys(ceilings) {
			row, _ := figure.Find(name)
			if !pass.Outputs[output].Bound(row) {
				continue
			}
			ceiling := ceilings[name]
			limit, limited := limits[[2]string{output, name}]
			if !limited && row.OfSpread && pass.Outputs[output].Quarters != nil { // the quarters are judged in its place
				row, ceiling = fallbackCeiling(figure.QuarterError, ceilings, precision, pass.Outputs[output].DType)
				name = row.Name
				limit, limited = limits[[2]string{output, name}]
			}
			switch {
			case !limited:
				return fmt.Sprintf("output %s has no limit on %s, and %v is the loosest allowed", registry.PlainText(output), name, ceiling)
			case !row.Keeps(float64(limit), float64(ceiling)):
				return fmt.Sprintf("output %s has a limit of %v on %s, and %v is the loosest allowed", registry.PlainText(output), limit, name, ceiling) +
					fewHint(row)
			}
		}
	}
	return ""
}

// ceilingOfDetections is the one on equal answers where an environment has none on detections, which are answers too.
func ceilingOfDetections(ceilings map[string]evidence.Figure, precision, dtype string) evidence.Figure {
	_, own := ceilings[figure.Detections]
	if equal, there := ceilings[figure.Equal]; there && !own {
		return equal
	}
	_, ceiling := fallbackCeiling(figure.Detections, ceilings, precision, dtype)
	return ceiling
}

// fallbackCeiling returns the loosest limit on a figure: the one of the environment, or twice what the default allows. Environments
// that exist have none on figures that are newer.
func fallbackCeiling(name string, ceilings map[string]evidence.Figure, precision, dtype string) (figure.Row, evidence.Figure) {
	row, _ := figure.Find(name)
	if ceiling, there := ceilings[name]; there {
		return row, ceiling
	}
	limit, known := row.Defaults[precision]
	if !known { // of a compressed engine
		limit = row.Defaults["int8"]
	}
	if own, known := row.Defaults[ownCeilings[dtype]]; known {
		limit = row.Looser(limit, own)
	}
	if row.AtLeast {
		return row, evidence.Figure(1 - 2*(1-limit))
	}
	return row, evidence.Figure(2 * limit)
}

// fewHint says why a default limit on a share of cases is low, and how to raise it.
func fewHint(row figure.Row) string {
	if !row.Rate {
		return ""
	}
	return fmt.Sprintf(": set limits.outputs.NAME.%s, or give more cases, which prove more", row.Key)
}
