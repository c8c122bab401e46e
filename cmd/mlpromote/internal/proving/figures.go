package proving

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

func engineHeader() []string {
	return []string{"ENGINE", "PARITY", "MAX-ABS", "MEAN-ABS", "COSINE", "SNR", "TOP-1", "ACCURACY", "P50", "P99", "PER SECOND"}
}

// figures are the cells of an engine's reports; the output that differs most stands
// for all.
func figures(p *evidence.ParityReport, l *evidence.PerformanceReport) []string {
	cells := []string{"-", "-", "-", "-", "-", "-", "-", "-", "-"}
	if p != nil {
		name, worst := worstOutput(*p)
		cells[0], cells[1] = printing.Cell(worst.MaxAbs, "%.2g"), printing.Cell(worst.MeanAbs, "%.2g")
		cells[2], cells[3] = printing.Cell(worst.CosineMin, "%.6f"), printing.Cell(worst.SNRdB, "%.1f dB")
		if top1 := sameClass(*p, name); top1 != nil {
			cells[4] = printing.Percent(float64(*top1))
		}
		if p.Accuracy != nil {
			cells[5] = validators.AccuracyText(*p.Accuracy, p.Accuracy.Engine)
		}
	}
	if l != nil {
		latencyCells(cells, l.Latency)
	}
	return cells
}

// ownFigures are the cells of the reference itself: it agrees with itself, so only
// accuracy and latency are left.
func ownFigures(p *evidence.ParityReport, l *evidence.PerformanceReport) []string {
	cells := figures(nil, nil)
	if p.Accuracy != nil {
		cells[5] = validators.AccuracyText(*p.Accuracy, p.Accuracy.Reference)
	}
	if l.ReferenceLatency != nil {
		latencyCells(cells, *l.ReferenceLatency)
	}
	return cells
}

func latencyCells(cells []string, l evidence.Latency) {
	cells[6], cells[7], cells[8] = printing.Duration(l.P50Ns), printing.Duration(l.P99Ns), fmt.Sprintf("%.0f", l.PerSecond)
}

func worstOutput(p evidence.ParityReport) (name string, worst evidence.OutputFigures) {
	for i, n := range slices.Sorted(maps.Keys(p.Outputs)) {
		if o := p.Outputs[n]; i == 0 || o.CosineMin < worst.CosineMin {
			name, worst = n, o
		}
	}
	return name, worst
}

// sameClass is the share of answers of an output that are the reference's: as its limit judges it, by case, and
// without a limit of all rows of scores. A case with more rows, as where a mask leaves some out, counts more in the latter.
func sameClass(p evidence.ParityReport, output string) *evidence.Figure {
	for _, c := range p.Checks.OfCases() {
		if c.Output == output && c.Figure == "top1" && c.Slice == "" && !math.IsNaN(float64(c.Value)) {
			return &c.Value
		}
	}
	of := p.Outputs[output]
	if of.Kind != "" && !validators.Kind(of.Kind).Ranks() { // the largest of several quantities is no answer
		return nil
	}
	return of.Top1
}
