package evidence

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// CrossCheck says who checked the golden outputs of a release, beside the runtime that computed
// them. It is part of the provenance of each engine, and not of the release, since the number of
// cross-checked cases depends on time.
type CrossCheck struct {
	// By is "expected outputs of the cases", "onnx reference evaluator 1.23.1", or the source's framework: "scikit-learn 1.9.0".
	By    string `json:"by"`
	Cases int    `json:"cases"` // that were cross-checked
	Of    int    `json:"of"`    // that there are
	// Worst is the element closest to its tolerance or furthest outside; nil if all are equal.
	Worst *CrossCheckElement `json:"worst,omitempty"`
	// Checks are the limits by which expected outputs were judged: those of an engine in Precision, which is that of the model's numbers.
	Checks    Checks `json:"checks,omitempty"`
	Precision string `json:"precision,omitempty"`
	// Missing lists the operators that the evaluator lacks, as "com.microsoft::MatMulNBits". Then
	// no case was cross-checked.
	Missing  []string `json:"missing,omitempty"`
	Reason   string   `json:"reason,omitempty"`   // why no case was cross-checked, or fewer than were sampled
	Accepted string   `json:"accepted,omitempty"` // why the spec accepts outputs that the evaluator does not confirm
}

// CrossCheckElement is one element of a golden output.
type CrossCheckElement struct {
	Output    string  `json:"output"`
	Case      int     `json:"case"`
	Index     []int64 `json:"index,omitempty"` // within the case; absent for an output of another shape
	Golden    Figure  `json:"golden"`
	Evaluator Figure  `json:"evaluator"` // what the other one computed
	// Share is the difference divided by the tolerance: above 1 the evaluator does not confirm it.
	Share Figure `json:"share"`
}

// String describes the cross-check in one line.
func (c CrossCheck) String() string {
	text := fmt.Sprintf("%d of %s cross-checked by the %s", c.Cases, registry.Count(c.Of, "case"), c.By)
	switch {
	case len(c.Missing) > 0:
		text = fmt.Sprintf("not cross-checked: the %s lacks %s", c.By, strings.Join(c.Missing, ", "))
	case c.Cases == 0:
		text = "not cross-checked: " + c.Reason
	case c.Worst != nil:
		text += fmt.Sprintf(", the largest difference is %.2g of the tolerance", float64(c.Worst.Share))
	case len(c.Checks) > 0:
		within := "within"
		for _, check := range c.Checks {
			if check.Verdict != VerdictPass {
				within = "not proven within"
			}
		}
		if c.Accepted != "" {
			within = "not within"
		}
		text += fmt.Sprintf(", %s the limits of %s", within, c.Precision)
	case c.Reason == "":
		text += ", all equal"
	}
	if c.Cases > 0 && c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	if c.Accepted != "" {
		text += fmt.Sprintf("; accepted: %q", c.Accepted)
	}
	return text
}

// CrossCheck reads from a statement of provenance who cross-checked the golden outputs. It is nil
// where the statement does not say it.
func (s Statement) CrossCheck() *CrossCheck {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				CrossCheck *CrossCheck `json:"crossCheck"`
			} `json:"internalParameters"`
		} `json:"buildDefinition"`
	}
	if s.PredicateType != PredicateProvenance || registry.DecodeSigned(s.Predicate, &predicate) != nil {
		return nil
	}
	return predicate.BuildDefinition.InternalParameters.CrossCheck
}
