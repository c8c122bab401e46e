package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// Comparison is how the limits and the interface of a release differ from those of the release that
// it replaces. A nil *Comparison is not known, which refuses.
type Comparison struct {
	Version   string   // of the release that is replaced
	Looser    []string // each limit that is looser, in words; the same words for the same limit
	Interface []string // each difference that a caller would notice
	// Unshown are the engines of the release of which no passing report counts: in how many cases they keep their limits is not known.
	Unshown []string
}

// EngineCases is how many cases one engine is shown to keep its limits in.
type EngineCases struct {
	Label     string
	Precision string
	Cases     int // 0: no passing parity report counts
}

// CountCases adds a line for each engine that is shown to keep its limits in fewer cases than the one of
// its label and precision in the release that is replaced, or if it is not known in how many that was. A limit on
// the worst case says less of fewer cases. An engine whose label is new is held against the one with
// the fewest of its precision, or else of all. One line stands for all engines if it is true of all. An engine
// without a passing report has no line: a report is missing, and no limit is looser.
func (c *Comparison) CountCases(now, was []EngineCases) {
	for _, e := range now {
		if e.Cases == 0 {
			c.Unshown = append(c.Unshown, e.Label)
		}
	}
	now = slices.DeleteFunc(slices.Clone(now), func(e EngineCases) bool { return e.Cases == 0 })
	lines := make([]string, len(now))
	for i, e := range now {
		lines[i] = fewerCases(e.Cases, casesBefore(e, was))
	}
	if len(slices.Compact(slices.Clone(lines))) == 1 && lines[0] != "" {
		c.Looser = append(c.Looser, "cases: "+lines[0])
		return
	}
	for i, line := range lines {
		if line != "" {
			c.Looser = append(c.Looser, fmt.Sprintf("cases of %s: %s", now[i].Label, line))
		}
	}
}

// casesBefore returns what an engine is held against; 0: it is not known.
func casesBefore(e EngineCases, was []EngineCases) int {
	precision, all := 0, 0
	for _, before := range was {
		if before.Label == e.Label && before.Precision == e.Precision {
			return before.Cases
		}
		if before.Cases == 0 {
			continue
		}
		if all == 0 || before.Cases < all {
			all = before.Cases
		}
		if before.Precision == e.Precision && (precision == 0 || before.Cases < precision) {
			precision = before.Cases
		}
	}
	return cmp.Or(precision, all)
}

// fewerCases says that an engine is shown in fewer cases than before, or is "".
func fewerCases(now, was int) string {
	switch {
	case was == 0:
		return fmt.Sprintf("%d, and no report that counts says how many before", now)
	case now < was:
		return fmt.Sprintf("%d, were %d", now, was)
	}
	return ""
}

// Located is a release in a repository.
type Located struct {
	Repository string
	Release    artifact.Release
}

// CompareReleases reads limits and interface of two releases and compares them. Errors: those of
// reading, CodeDigest among them; CodeInvalid if a document cannot be understood.
type CompareReleases func(ctx context.Context, now, was Located) (Comparison, error)
