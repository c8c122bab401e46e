package accuracy

import (
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Detections are the outputs of a model that finds boxes, where these are not one output [..., n, 6].
type Detections struct {
	Boxes   string `json:"boxes"`   // [..., n, 4]: x1, y1, x2, y2
	Scores  string `json:"scores"`  // [..., n]
	Classes string `json:"classes"` // [..., n]: whole numbers
}

// Read reads what is compared with labels: the output, or the detections of several outputs as one
// tensor [cases, n, 6] of x1, y1, x2, y2, score, class. Errors: those of the file; of kind
// tensor.ErrMismatch for outputs that do not have as many boxes, scores and classes.
func (d *Detections) Read(f *tensorfile.File, output string) (tensor.Tensor, error) {
	if d == nil {
		return f.Tensor(output)
	}
	var of [3]tensor.Tensor
	for i, name := range []string{d.Boxes, d.Scores, d.Classes} {
		t, err := f.Tensor(name)
		if err != nil {
			return tensor.Tensor{}, err
		}
		of[i] = t
	}
	return join(of[0], of[1], of[2])
}

func join(boxes, scores, classes tensor.Tensor) (tensor.Tensor, error) {
	each := scores.Len()
	last := len(boxes.Shape) - 1
	if last < 1 || boxes.Shape[last] != 4 || boxes.Len() != 4*each || classes.Len() != each {
		return tensor.Tensor{}, mismatchf("boxes have shape %v, scores %v and classes %v: want [..., n, 4], [..., n] and [..., n]",
			boxes.Shape, scores.Shape, classes.Shape)
	}
	for _, t := range []tensor.Tensor{scores, classes} {
		if len(t.Shape) == 0 || t.Shape[0] != boxes.Shape[0] {
			return tensor.Tensor{}, mismatchf("boxes of %d cases, and scores or classes of shape %v", boxes.Shape[0], t.Shape)
		}
	}
	corners, score, class := boxes.Float64s(), scores.Float64s(), classes.Float64s()
	values := make([]float64, 0, detectionWidth*each)
	for i := range each {
		values = append(append(values, corners[4*i:4*i+4]...), score[i], class[i])
	}
	cases := boxes.Shape[0]
	return tensor.New(values, cases, int64(each)/max(cases, 1), detectionWidth)
}
