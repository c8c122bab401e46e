package registry

import (
	"fmt"
	"strings"
)

// Judged says who checked the golden outputs of a release, beside the runtime that computed
// them. It is part of the provenance of each engine, and not of the release, since the number of
// judged cases depends on time.
type Judged struct {
	By    string `json:"by"`    // "onnx reference evaluator 1.23.1", or the source's framework: "scikit-learn 1.9.0"
	Cases int    `json:"cases"` // that were judged
	Of    int    `json:"of"`    // that there are
	// Worst is the element closest to its tolerance or furthest outside; nil if all are equal.
	Worst *JudgedElement `json:"worst,omitempty"`
	// Unjudged lists the operators that the judge lacks, as "com.microsoft::MatMulNBits". Then it
	// judged nothing.
	Unjudged []string `json:"unjudged,omitempty"`
	Reason   string   `json:"reason,omitempty"`   // why it judged nothing, or fewer cases than it was given
	Accepted string   `json:"accepted,omitempty"` // why the spec accepts outputs that the judge does not confirm
}

// JudgedElement is one element of a golden output.
type JudgedElement struct {
	Output string  `json:"output"`
	Case   int     `json:"case"`
	Index  []int64 `json:"index,omitempty"` // within the case; absent for an output of another shape
	Golden Figure  `json:"golden"`
	Judge  Figure  `json:"judge"` // what the judge computed
	// Share is the difference divided by the tolerance: above 1 the judge does not confirm it.
	Share Figure `json:"share"`
}

// String describes the judgement in one line.
func (j Judged) String() string {
	text := fmt.Sprintf("%d of %s judged by the %s", j.Cases, Count(j.Of, "case"), j.By)
	switch {
	case len(j.Unjudged) > 0:
		text = fmt.Sprintf("unjudged: the %s lacks %s", j.By, strings.Join(j.Unjudged, ", "))
	case j.Cases == 0:
		text = "unjudged: " + j.Reason
	case j.Worst != nil:
		text += fmt.Sprintf(", the largest difference is %.2g of the tolerance", float64(j.Worst.Share))
	case j.Reason == "":
		text += ", all equal"
	}
	if j.Cases > 0 && j.Reason != "" {
		text += " (" + j.Reason + ")"
	}
	if j.Accepted != "" {
		text += fmt.Sprintf("; accepted: %q", j.Accepted)
	}
	return text
}

// Judged reads from a statement of provenance who judged the golden outputs. It is nil where the
// statement does not say it.
func (s Statement) Judged() *Judged {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				Judged *Judged `json:"judged"`
			} `json:"internalParameters"`
		} `json:"buildDefinition"`
	}
	if s.PredicateType != PredicateProvenance || DecodeSigned(s.Predicate, &predicate) != nil {
		return nil
	}
	return predicate.BuildDefinition.InternalParameters.Judged
}
