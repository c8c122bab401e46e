package remedy

import (
	"fmt"
	"strings"
)

// Quantization describes an int8 variant that loses too much.
type Quantization struct {
	Variant              string
	Unlike               string   // how the calibration data is unlike the cases; empty if it is not
	Quantize             string   // quantize of the variant in the spec, with which it keeps its limits; empty if that is not known
	Exclude              []string // the nodes that it leaves in full precision
	Unsuited, Unfinished bool
}

// shownNodes is how many nodes a hint lists.
const shownNodes = 5

// Hint returns the advice about the variant on one line.
func (q Quantization) Hint() string {
	if q.Unlike != "" {
		return fmt.Sprintf("variant %s was calibrated on other values than it computes: %s: calibrate it on inputs that are prepared as the cases are", q.Variant, q.Unlike)
	}
	_, next := q.Remedy()
	switch {
	case q.Quantize == "" || q.Unsuited:
		return fmt.Sprintf("variant %s: %s", q.Variant, next)
	case len(q.Exclude) > shownNodes:
		return fmt.Sprintf("variant %s keeps its limits with %d nodes in full precision: %s, which cost most, and %d others; %s",
			q.Variant, len(q.Exclude), strings.Join(q.Exclude[:shownNodes], ", "), len(q.Exclude)-shownNodes, next)
	}
	return fmt.Sprintf("variant %s keeps its limits with these nodes in full precision: write quantize: %s", q.Variant, q.Quantize)
}

// Remedy returns why the variant loses too much, and what to do about it.
func (q Quantization) Remedy() (likely, next string) {
	const most = "most of the graph loses too much in int8"
	switch {
	case q.Unlike != "":
		return fmt.Sprintf("variant %s was calibrated on other values than it computes: %s", q.Variant, q.Unlike),
			"calibrate it on inputs that are prepared as the cases are, " + nextBuild
	case q.Quantize != "" && !q.Unsuited && len(q.Exclude) > shownNodes:
		return fmt.Sprintf("%d nodes of variant %s lose too much in int8: %s most, and %d others",
				len(q.Exclude), q.Variant, strings.Join(q.Exclude[:shownNodes], ", "), len(q.Exclude)-shownNodes),
			"mlpromote verify --output json has the whole list as engines[].sensitivity.quantize: write it as quantize of the variant, or use fp16"
	case q.Quantize != "" && !q.Unsuited:
		return "single nodes of variant " + q.Variant + " lose too much in int8",
			"keep them in full precision: write quantize: " + q.Quantize
	case q.Quantize == "" && q.Unfinished:
		return most, "the time did not suffice to find the nodes that have to stay in full precision: give it more, such as --sensitivity 30m"
	case q.Unsuited:
		return most, "of the tried lists of nodes in full precision, only such suffice as have all layers with weights or more than two thirds of the nodes: " +
			"use fp16 or fp32, try tool nncf with accuracy_aware, or exclude other nodes, such as a normalization where values become NaN"
	}
	return most, "leaving out single nodes does not suffice: try method dynamic, tool nncf with accuracy_aware, or fp16"
}
