package validators

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
)

// FigureWord is what the figure of a check is called, for all who show it. metric is that of the report's
// accuracy, or empty: of an error, of which less is better, a drop is a rise.
func FigureWord(c evidence.Check, metric string) string {
	row, _ := figure.Find(c.Figure)
	word := cmp.Or(row.Word, c.Figure)
	if c.Slice != "" {
		word += " on slice " + registry.PlainText(c.Slice)
	}
	if c.Output != "" || metric == "" || metric == MetricTop1 {
		return word
	}
	if LessIsBetter(metric) {
		word = strings.Replace(word, "drop", "rise", 1)
	}
	return strings.Replace(word, "accuracy", registry.PlainText(metric), 1)
}

// ValueText is a value of a check's figure with its unit.
func ValueText(c evidence.Check, v float64) string { return rowOf(c).Text(v) }

// rowOf returns the row of a check's figure. An accuracy with bounds by a bootstrap is no share of cases, and a figure that this
// version does not know is a number.
func rowOf(c evidence.Check) figure.Row {
	row, _ := figure.Find(c.Figure)
	if c.Resampled && (c.Figure == figure.Accuracy || row.Unit != figure.Share) {
		row.Unit = figure.Fine
	}
	return row
}

// BoundsText is the bounds of a check, neither of which says too much; "exact" if it has none. Where no bit differs it says in how many cases.
func BoundsText(c evidence.Check) string {
	if c.Identical > 0 {
		return IdenticalText(c)
	}
	if c.Low == nil || c.High == nil {
		return "exact"
	}
	if low, high := float64(*c.Low), float64(*c.High); math.IsInf(low, 0) || math.IsInf(high, 0) || rowOf(c).Unit != figure.Share {
		return ValueText(c, low) + " to " + ValueText(c, high)
	}
	return ShareText(math.Floor(float64(*c.Low)*1e4)/1e4) + " to " + ShareText(math.Ceil(float64(*c.High)*1e4)/1e4)
}

// LimitText is the limit of a check with its unit.
func LimitText(c evidence.Check) string {
	if c.AtLeast {
		return "at least " + ValueText(c, float64(c.LimitValue()))
	}
	return "at most " + ValueText(c, float64(c.LimitValue()))
}

// MarginText is the [Margin] of a check: how much is left, or how often what is allowed was used.
func MarginText(c evidence.Check) string {
	margin := Margin(c)
	switch {
	case math.IsInf(margin, 0) || math.IsNaN(margin):
		return "-"
	case margin < 0:
		return fmt.Sprintf("%.3g x allowed", 1-margin)
	}
	return fmt.Sprintf("%.0f %%", math.Floor(100*margin))
}

// AccuracyText is a figure of accuracy: a share, or a number where less is better or a program gave it.
func AccuracyText(a evidence.Accuracy, v evidence.Figure) string {
	if LessIsBetter(a.Metric) || a.Metric == MetricProgram {
		return figure.Digits(float64(v), 4)
	}
	return fmt.Sprintf("%.2f %%", 100*float64(v))
}

// DropText is the drop of an accuracy in words; of an error, the part of the reference's by which it rose. A gain is
// negative.
func DropText(a evidence.Accuracy) string {
	c := evidence.Check{Figure: figure.Drop}
	return FigureWord(c, a.Metric) + " " + ValueText(c, float64(a.Drop))
}

// ShareText is a share in percent, with no more digits than it needs.
func ShareText(v float64) string { return fmt.Sprintf("%.4g %%", 100*v) }

// QuartersText writes the mean relative error in each quarter of the reference's values.
func QuartersText(q evidence.Quarters) string {
	var parts []string
	for _, of := range q.Of {
		parts = append(parts, fmt.Sprintf("%.3g %% from %.3g to %.3g", 100*float64(of.Relative), float64(of.From), float64(of.To)))
	}
	text := strings.Join(parts, ", ")
	if q.Channel != nil {
		text += fmt.Sprintf(", in channel %d", *q.Channel)
	}
	return text
}
