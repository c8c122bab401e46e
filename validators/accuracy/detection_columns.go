package accuracy

import "math"

// columns are "detections", the number of those of each case, and of each detection "class", "score"
// and "hits", of which bit i says that it matches a label at an overlap of 0.5 + 0.05*i. "labels" is
// the number of labels of each case, and "labelClass" the class of each. "spoilt" is true where a
// detection has NaN or infinity. They have no boxes.
func (d *detection) columns() Columns {
	n := len(d.cases)
	found, labels, spoilt := make([]int64, n), make([]int64, n), make([]bool, n)
	for i, c := range d.cases {
		of, wanted := d.of(i)
		found[i], labels[i], spoilt[i] = int64(len(of)), int64(len(wanted)), c.spoilt
	}
	class, score, hits := make([]int32, len(d.found)), make([]float64, len(d.found)), make([]int32, len(d.found))
	for i, f := range d.found {
		class[i], score[i], hits[i] = f.class, f.score, int32(f.hits)
	}
	return Columns{"detections": column(found), "class": column(class), "score": column(score), "hits": column(hits),
		"labels": column(labels), "labelClass": column(d.labels), "spoilt": column(spoilt)}
}

func (d *detection) restore(r *reading) {
	each, all := r.entries("detections", maxDetections)
	class, score, hits := readColumn[int32](r, "class", all), readColumn[float64](r, "score", all), readColumn[int32](r, "hits", all)
	labels, allLabels := r.entries("labels", maxDetections)
	wanted := readColumn[int32](r, "labelClass", allLabels)
	spoilt := readColumn[bool](r, "spoilt", r.cases)
	if r.err != nil {
		return
	}
	for i, n := range each {
		d.cases = append(d.cases, detected{found: len(d.found), labels: len(d.labels), spoilt: spoilt[i]})
		for range labels[i] {
			d.labels = append(d.labels, wanted[len(d.labels)])
		}
		for range n {
			at := len(d.found)
			if class[at] < 0 || math.IsNaN(score[at]) || math.IsInf(score[at], 0) || hits[at] < 0 || hits[at] >= 1<<d.overlaps {
				r.fail("columns %sclass, score and hits: detection %d is of class %d, score %v, hits %d, which cannot be",
					r.prefix, at, class[at], score[at], hits[at])
				return
			}
			d.found = append(d.found, found{class[at], uint16(hits[at]), score[at]})
		}
		if !d.matched() {
			r.fail("column %shits: case %d has more detections that match than labels", r.prefix, i)
			return
		}
	}
}

// matched reports whether in the last case, at each overlap, no more detections of a class match than
// it has labels.
func (d *detection) matched() bool {
	c := d.cases[len(d.cases)-1]
	left := make(map[int32]*[len(overlaps)]int)
	for _, class := range d.labels[c.labels:] {
		if left[class] == nil {
			left[class] = new([len(overlaps)]int)
		}
		for i := range overlaps {
			left[class][i]++
		}
	}
	for _, f := range d.found[c.found:] {
		for i := range overlaps {
			if f.hits>>i&1 == 0 {
				continue
			}
			if left[f.class] == nil || left[f.class][i] == 0 {
				return false
			}
			left[f.class][i]--
		}
	}
	return true
}
