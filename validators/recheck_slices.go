package validators

import (
	"fmt"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// slices compares the slices of a report with each other: every case is in one of them, and the
// limits are the same for all. A report could else pass by leaving out the checks of a slice that
// fails. It returns a verdict for each thing that is missing. A report without any check of a slice
// is of limits that only ask for the figures.
func (r *rejudgement) slices() (missing []evidence.Verdict) {
	if len(r.report.Slices) == 0 {
		return nil
	}
	differ := func(what, said, follows string) {
		r.differ(what, said, follows)
		missing = append(missing, evidence.VerdictUndecided)
	}
	limits, checked := r.sliceChecks(differ)
	cases, seen := 0, make(map[string]bool)
	for _, s := range r.report.Slices {
		cases += s.Accuracy.Cases
		if seen[s.Value] {
			differ("slice "+s.Value, "twice", "once")
		}
		seen[s.Value] = true
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			if !checked[checkOfSlice{s.Value, name}] {
				differ(name+" of slice "+s.Value, "nothing", "a check: other slices have one")
			}
		}
	}
	if a := r.report.Accuracy; a != nil && cases != a.Cases {
		differ("cases of slices", fmt.Sprint(cases), fmt.Sprint(a.Cases))
	}
	return missing
}

type checkOfSlice struct{ slice, figure string }

// sliceChecks returns the limits on slices by their figures, and which slices have a check of each.
func (r *rejudgement) sliceChecks(differ func(what, said, follows string)) (limits map[string]evidence.Figure, checked map[checkOfSlice]bool) {
	limits, checked = make(map[string]evidence.Figure), make(map[checkOfSlice]bool)
	for _, c := range r.report.Checks.OfCases() {
		if c.Slice == "" {
			continue
		}
		if limit, known := limits[c.Figure]; known && limit != c.LimitValue() {
			differ(c.Figure+" of slice "+c.Slice+": limit", number(float64(c.LimitValue())), number(float64(limit))+" as of the others")
		} else {
			limits[c.Figure] = c.LimitValue()
		}
		checked[checkOfSlice{c.Slice, c.Figure}] = true
	}
	return limits, checked
}
