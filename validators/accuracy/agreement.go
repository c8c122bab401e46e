package accuracy

import (
	"cmp"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// DetectionOutputs are the outputs that have detections: Output alone, or the others, of which Classes may be empty for one class.
type DetectionOutputs struct {
	Output string // [cases, n, 6] of x1, y1, x2, y2, score, class
	Detections
}

// Names lists the outputs.
func (d DetectionOutputs) Names() []string {
	return slices.DeleteFunc([]string{d.Output, d.Boxes, d.Scores, d.Classes}, func(name string) bool { return name == "" })
}

// Rows reads rows of cases as detections [cases, n, 6]. Errors: those of the file; of kind tensor.ErrMismatch for outputs that do not have as
// many boxes, scores and classes.
func (d DetectionOutputs) Rows(f *tensorfile.File, from, to int64) (tensor.Tensor, error) {
	if d.Output != "" {
		return f.Rows(d.Output, from, to)
	}
	var of [3]tensor.Tensor
	for i, name := range []string{d.Boxes, d.Scores, d.Classes} {
		if name == "" {
			of[i] = tensor.Tensor{DType: tensor.Uint8, Shape: of[1].Shape, Data: make([]byte, of[1].Len())}
			continue
		}
		var err error
		if of[i], err = f.Rows(name, from, to); err != nil {
			return tensor.Tensor{}, err
		}
	}
	return join(of[0], of[1], of[2])
}

// Agreement returns which part of the detections of two sides agrees, from 0 to 1: of one case, [n, 6], as Detections.Rows returns it. A
// detection counts by the square of its score, so that one of 0.1 is a hundredth of one of 1. It agrees with the detection of the same
// class on the other side that overlaps it most, by the smaller of both weights; twice the sum of these over the sum of all weights is
// the F1 of Dice. It is the mean over the overlaps of mAP, from 0.5 to 0.95. Two sides without detections agree. A side with NaN,
// infinity or a class that is no whole number does not. Errors: of kind tensor.ErrMismatch for such a class of the reference, which has no
// detections then.
func Agreement(reference, engine []float64) (float64, error) {
	want, spoilt, err := detectionsOf(0, reference)
	if err != nil {
		return 0, err
	}
	got, bad, err := detectionsOf(0, engine)
	if err != nil || spoilt || bad { // an engine with a class that is no whole number has no detection there
		return 0, nil
	}
	total, agreed := 0.0, 0.0
	for _, side := range []map[int32][]scored{want, got} {
		for class := range side {
			slices.SortFunc(side[class], func(a, b scored) int {
				return cmp.Or(cmp.Compare(b.score, a.score), slices.Compare(a.box, b.box))
			})
			for _, s := range side[class] {
				total += s.weight()
			}
		}
	}
	for class, of := range want {
		agreed += agreement(of, got[class])
	}
	if total == 0 {
		return 1, nil
	}
	return 2 * agreed / total, nil
}

// weight is the square of a score; a score below 0 is no detection.
func (s scored) weight() float64 { return max(s.score, 0) * max(s.score, 0) }

// agreement is the sum of the weights of detections of a class that agree, as the mean over overlaps.
func agreement(want, got []scored) (sum float64) {
	taken := make([]uint16, len(got)) // bit i: at overlaps[i]
	for _, w := range want {
		if w.weight() == 0 {
			break // so are all that follow
		}
		shares := make([]float64, len(got))
		for k, g := range got {
			shares[k] = w.overlap(g.box)
		}
		for i, least := range overlaps {
			if best := bestLeft(shares, taken, i, least); best >= 0 {
				taken[best] |= 1 << i
				sum += min(w.weight(), got[best].weight()) / float64(len(overlaps))
			}
		}
	}
	return sum
}
