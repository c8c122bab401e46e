package accuracy

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	maxDetections = 1 << 24 // of all cases: 256 MiB for each side
	// maxPerClass is how many detections of a class count in a case, those with the highest scores:
	// maxDets of COCO.
	maxPerClass = 100

	detectionWidth = 6 // x1, y1, x2, y2, score, class
	labelWidth     = 5 // x1, y1, x2, y2, class
)

// overlaps are the IoU from which a detection can match a label: 0.5 to 0.95 in steps of 0.05, in the
// digits of numpy.linspace, which COCO's evaluation uses.
var overlaps = [...]float64{0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95}

// detection is mAP, the mean over classes of the average precision of boxes, as COCO defines it
// (Lin et al., Microsoft COCO, 2014; cocodataset.org/#detection-eval; cocoeval.py of pycocotools), for
// all areas and without crowd labels: see [detection.contributions]. Detections are matched with labels
// when a case is added, so that what is kept of a case has no boxes.
type detection struct {
	overlaps int // how many of [overlaps] are averaged
	cases    []detected
	found    []found
	labels   []int32 // the class of each
}

// detected is one case.
type detected struct {
	found, labels int  // its first ones
	spoilt        bool // a detection has NaN or infinity
}

// found is a detection that counts.
type found struct {
	class int32
	hits  uint16 // bit i: it matches a label at overlaps[i]
	score float64
}

// add takes detections [cases, ..., n, 6] and labels [cases, ..., k, 5]. Rows of a class below 0 are
// padding.
func (d *detection) add(output, labels tensor.Tensor) error {
	if err := validate(output, labels); err != nil {
		return err
	}
	for _, t := range []struct {
		what  string
		shape []int64
		width int64
	}{{"detections", output.Shape, detectionWidth}, {"labels", labels.Shape, labelWidth}} {
		if len(t.shape) < 3 || t.shape[len(t.shape)-1] != t.width {
			return mismatchf("%s have shape %v: want [cases, boxes, %d]", t.what, t.shape, t.width)
		}
	}
	return rowByRow(output, labels, d.addCase)
}

// addCase adds a case of which the row in its file is given.
func (d *detection) addCase(row int, got, want []float64) error {
	c := detected{found: len(d.found), labels: len(d.labels)}
	labels := make(map[int32][]box)
	for of := range slices.Chunk(want, labelWidth) {
		if of[4] < 0 {
			continue
		}
		class, err := checkBox(row, of)
		if err != nil {
			return err
		}
		labels[class] = append(labels[class], of[:4])
		d.labels = append(d.labels, class)
	}
	byClass, spoilt, err := detectionsOf(row, got)
	if err != nil {
		return err
	}
	c.spoilt = spoilt
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		d.match(class, byClass[class], labels[class])
	}
	d.cases = append(d.cases, c)
	if len(d.found) > maxDetections || len(d.labels) > maxDetections {
		return registry.Errorf(registry.CodeInvalid, "more than %d detections: mAP cannot be computed of so many; use fewer cases", maxDetections)
	}
	return nil
}

// checkBox checks a label and returns its class.
func checkBox(row int, of []float64) (class int32, err error) {
	class, ok := classNumber(of[4])
	if b := box(of[:4]); !ok || !b.finite() || b[2] < b[0] || b[3] < b[1] {
		return 0, mismatchf("label %v of case %d: want x1, y1, x2, y2, class with x1 <= x2 and y1 <= y2, or class -1 for none", of, row)
	}
	return class, nil
}

// CheckBoxes checks labels of boxes, [cases, ..., k, 5]. Errors: of kind tensor.ErrMismatch.
func CheckBoxes(labels tensor.Tensor) error {
	each := labels.Len() / labelWidth / int(max(labels.Shape[0], 1))
	at := 0
	for of := range slices.Chunk(labels.Float64s(), labelWidth) {
		if !(of[4] < 0) {
			if _, err := checkBox(at/each, of); err != nil {
				return err
			}
		}
		at++
	}
	return nil
}

// scored is a box with its score.
type scored struct {
	box
	score float64
}

// detectionsOf reads the detections of a case by class. spoilt says that one has NaN or infinity.
func detectionsOf(row int, got []float64) (byClass map[int32][]scored, spoilt bool, err error) {
	byClass = make(map[int32][]scored)
	for of := range slices.Chunk(got, detectionWidth) {
		if of[5] < 0 {
			continue
		}
		class, ok := classNumber(of[5])
		switch b := box(of[:4]); {
		case !b.finite() || math.IsNaN(of[4]+of[5]) || math.IsInf(of[4], 0) || math.IsInf(of[5], 0):
			spoilt = true
		case !ok:
			return nil, false, mismatchf("class %v of a detection in case %d: want a whole number", of[5], row)
		default:
			byClass[class] = append(byClass[class], scored{b, of[4]})
		}
	}
	return byClass, spoilt, nil
}

// classNumber is a class that is written as a float.
func classNumber(v float64) (class int32, ok bool) {
	return int32(v), v >= 0 && v <= math.MaxInt32 && v == math.Trunc(v)
}

// match gives each detection of a class the label that it covers best of those that are left, the
// highest score first. Equal scores go by their boxes, so that the order of rows does not matter.
func (d *detection) match(class int32, detections []scored, labels []box) {
	slices.SortFunc(detections, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), slices.Compare(a.box, b.box))
	})
	slices.SortFunc(labels, func(a, b box) int { return slices.Compare(a, b) })
	first := len(d.found)
	taken := make([]uint16, len(labels)) // bit i: at overlaps[i]
	for _, s := range detections[:min(len(detections), maxPerClass)] {
		f := found{class: class, score: s.score}
		shares := make([]float64, len(labels))
		for l, label := range labels {
			shares[l] = s.overlap(label)
		}
		for i, least := range overlaps[:d.overlaps] {
			if best := bestLeft(shares, taken, i, least); best >= 0 {
				taken[best] |= 1 << i
				f.hits |= 1 << i
			}
		}
		d.found = append(d.found, f)
	}
	slices.SortFunc(d.found[first:], func(a, b found) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hits, b.hits)) })
}

// bestLeft returns the label with the largest share among those that are not taken; -1 if it has
// less than least.
func bestLeft(shares []float64, taken []uint16, overlap int, least float64) int {
	best := -1
	for l, share := range shares {
		if share >= least && taken[l]&(1<<overlap) == 0 {
			best, least = l, share
		}
	}
	return best
}

// box is x1, y1, x2, y2.
type box []float64

func (b box) finite() bool {
	return !slices.ContainsFunc(b, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

func (b box) area() float64 { return max(b[2]-b[0], 0) * max(b[3]-b[1], 0) }

// overlap is IoU, the area of the intersection over that of the union, of areas without any pixel
// that is added: that of COCO.
func (b box) overlap(other box) float64 {
	common := max(min(b[2], other[2])-max(b[0], other[0]), 0) * max(min(b[3], other[3])-max(b[1], other[1]), 0)
	if common == 0 {
		return 0
	}
	return common / float64(float64(b.area()+other.area())-common)
}

func (d *detection) size() int { return len(d.cases) }

// of returns what was found in a case, and the classes of its labels.
func (d *detection) of(n int) (found []found, labels []int32) {
	end := detected{found: len(d.found), labels: len(d.labels)}
	if n+1 < len(d.cases) {
		end = d.cases[n+1]
	}
	return d.found[d.cases[n].found:end.found], d.labels[d.cases[n].labels:end.labels]
}
