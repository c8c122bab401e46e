package accuracy

import (
	"cmp"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// DetectionOutputs are the outputs that have detections: Output alone, or the others. Classes may be empty for one class, and for Scores
// [cases, n, classes], of which the best class of each box counts.
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
	boxes, err := f.Rows(d.Boxes, from, to)
	if err != nil {
		return tensor.Tensor{}, err
	}
	scores, err := f.Rows(d.Scores, from, to)
	if err != nil {
		return tensor.Tensor{}, err
	}
	classes := tensor.Tensor{DType: tensor.Uint8, Shape: scores.Shape, Data: make([]byte, scores.Len())}
	switch {
	case d.Classes != "":
		classes, err = f.Rows(d.Classes, from, to)
	case len(scores.Shape) == len(boxes.Shape):
		scores, classes, err = bestClasses(scores)
	}
	if err != nil {
		return tensor.Tensor{}, err
	}
	return join(boxes, scores, classes)
}

// bestClasses returns the largest score of each row [..., classes], and its class; NaN if a score is.
func bestClasses(all tensor.Tensor) (scores, classes tensor.Tensor, err error) {
	width := all.Shape[len(all.Shape)-1]
	var best, class []float64
	if width > 0 {
		for row := range slices.Chunk(all.Float64s(), int(width)) {
			score, at := math.NaN(), tensor.Argmax(row)
			if at >= 0 { // else a score is NaN
				score = row[at]
			}
			best, class = append(best, score), append(class, float64(max(at, 0)))
		}
	}
	shape := all.Shape[:len(all.Shape)-1]
	if scores, err = tensor.New(best, shape...); err == nil {
		classes, err = tensor.New(class, shape...)
	}
	return scores, classes, err
}

// Bounds of what counts as a detection: those with a weight of at least leastWeight of the largest one of the case, and of a class the ones with
// the highest scores.
const (
	leastWeight = 1e-4
	mostOfClass = 300
)

// Agreement is how the detections of two sides of a case agree.
type Agreement struct {
	Weight float64 // of both sides; 0 without a detection
	Share  float64 // that agrees, from 0 to 1
	// Classes are the classes of the reference; a class is lost if less than half of its weight agrees.
	Classes map[int32]bool
}

// Agree compares the detections of two sides of one case, [n, 6], as DetectionOutputs.Rows returns them. A detection counts by the square of
// its score, so that one of 0.1 is a hundredth of one of 1. It agrees with the detection of the same class on the other side that overlaps it
// most, by the smaller of both weights; twice the sum of these over the sum of all weights is the F1 of Dice. It is the mean over the overlaps
// of mAP, from 0.5 to 0.95. A side with NaN, infinity or a class that is no whole number agrees with its like alone.
func Agree(reference, engine []float64) Agreement {
	want, spoilt, err := detectionsOf(0, reference)
	a := Agreement{Weight: weigh(want), Classes: make(map[int32]bool)}
	for class, of := range want {
		a.Classes[class] = len(of) > 0
	}
	if slices.Equal(reference, engine) {
		for class := range a.Classes {
			a.Classes[class] = false
		}
		a.Weight, a.Share = 2*a.Weight, 1
		return a
	}
	got, bad, errEngine := detectionsOf(0, engine)
	if err != nil || errEngine != nil || spoilt || bad { // a side with a class that is no whole number has no detection there
		a.Weight = max(a.Weight, 1)
		return a
	}
	a.Weight += weigh(got)
	agreed := 0.0
	for class, of := range want {
		sum, whole := agreement(of, got[class]), 0.0
		for _, s := range of {
			whole += s.weight()
		}
		a.Classes[class] = len(of) > 0 && 2*sum < whole
		agreed += sum
	}
	if a.Weight > 0 {
		a.Share = 2 * agreed / a.Weight
	}
	return a
}

// weigh drops what counts for no detection, orders the others by their scores, and returns their weight.
func weigh(side map[int32][]scored) (total float64) {
	most := 0.0
	for _, of := range side {
		for _, s := range of {
			most = max(most, s.weight())
		}
	}
	for class, of := range side {
		of = slices.DeleteFunc(of, func(s scored) bool { return s.weight() == 0 || s.weight() < leastWeight*most })
		slices.SortFunc(of, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), slices.Compare(a.box, b.box)) })
		of = of[:min(len(of), mostOfClass)]
		side[class] = of
		if len(of) == 0 {
			delete(side, class)
		}
		for _, s := range of {
			total += s.weight()
		}
	}
	return total
}

// Boxes counts boxes that are none, by the weights of detections.
type Boxes struct{ all, flat float64 }

// mostFlat is the share of the weight that boxes without an area may have: networks that were trained little have some.
const mostFlat = 0.1

// Add adds the detections of a case. Errors: of kind tensor.ErrMismatch for a class that is no whole number.
func (b *Boxes) Add(detections []float64) error {
	of, _, err := detectionsOf(0, detections)
	if err != nil {
		return err
	}
	b.all += weigh(of)
	for _, class := range of {
		for _, s := range class {
			if s.area() == 0 {
				b.flat += s.weight()
			}
		}
	}
	return nil
}

// AreCorners reports whether the boxes have corners x1, y1, x2, y2, and not centres and sizes, say.
func (b Boxes) AreCorners() bool { return b.flat <= mostFlat*b.all }

// weight is the square of a score; a score below 0 is no detection.
func (s scored) weight() float64 { return max(s.score, 0) * max(s.score, 0) }

// agreement is the sum of the weights of detections of a class that agree, as the mean over overlaps.
func agreement(want, got []scored) (sum float64) {
	taken := make([]uint16, len(got)) // bit i: at overlaps[i]
	for _, w := range want {
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
