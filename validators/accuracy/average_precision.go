package accuracy

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// recalls is at how many levels of recall COCO takes the precision: 0, 0.01, ..., 1.
const recalls = 101

// contributions are those to the mean of the average precisions of all classes that have labels, at
// all overlaps; NaN without labels. The average precision is COCO's: the mean, over 101 levels of
// recall, of the largest precision at that recall or a higher one. Detections of one score count
// together, as if there were no order among them.
//
// What a case changes is that of the area under the same curve (the infinitesimal jackknife), since the
// levels jump. No resample computes the curve again.
func (d *detection) contributions(of []int) Contributions {
	c := Contributions{Each: make([]float64, len(of))}
	classes := d.classes(of)
	for _, n := range of {
		if d.cases[n].spoilt {
			classes = nil
		}
	}
	if len(classes) == 0 {
		for i := range c.Each {
			c.Each[i] = math.NaN()
		}
		return c.seen()
	}
	curves := float64(len(classes) * d.overlaps)
	precision, scale := 0.0, float64(len(of))/curves
	var missed, better []amount
	for _, number := range slices.Sorted(maps.Keys(classes)) {
		class := classes[number]
		var label, gain float64
		for i := range d.overlaps {
			curve := class.curve(i)
			precision += curve.average
			class.contribute(curve, i, scale, c.Each)
			label, gain = label+curve.area, gain+curve.gain()
		}
		each := scale / float64(len(class.labels))
		missed = append(missed, amount{float64(each * label), class.mostLabels})
		better = append(better, amount{float64(each * gain), class.mostLabels})
	}
	precision /= curves
	for i := range c.Each {
		c.Each[i] += precision
	}
	// A case loses all labels at most, or what one did. More false alarms than in any case are not
	// expected: at the highest scores each takes much, so that nothing could be proven.
	labels := d.mostLabels(of)
	seen := c.seen()
	seen.weight = float64((1 + precision) * atMost(slices.Clone(missed), labels)) // each is missed, and makes a false alarm
	seen.Least = min(seen.Least, precision-atMost(missed, labels))
	seen.Most = max(seen.Most, precision+atMost(better, labels))
	return seen
}

// amount is what one label of a class can change, and how many of them a case has at most.
type amount struct {
	each float64
	most int
}

// atMost is what so many of all classes can change.
func atMost(all []amount, count int) float64 {
	slices.SortFunc(all, func(a, b amount) int { return cmp.Compare(b.each, a.each) })
	sum := 0.0
	for _, a := range all {
		sum += float64(a.each * float64(min(a.most, count)))
		count -= min(a.most, count)
	}
	return sum
}

// ofClass is what some cases have of a class.
type ofClass struct {
	labels     []int    // the case of each
	placed     []placed // the highest score first
	mostLabels int      // of a case
}

// placed is a detection, and the number of its case among those that count.
type placed struct {
	found
	at int
}

// classes are those that have labels.
func (d *detection) classes(of []int) map[int32]*ofClass {
	classes := make(map[int32]*ofClass)
	for at, n := range of {
		_, labels := d.of(n)
		for _, class := range labels {
			if classes[class] == nil {
				classes[class] = &ofClass{}
			}
			classes[class].labels = append(classes[class].labels, at)
		}
	}
	for at, n := range of {
		all, _ := d.of(n)
		for _, f := range all {
			if class := classes[f.class]; class != nil {
				class.placed = append(class.placed, placed{f, at})
			}
		}
	}
	for _, class := range classes {
		class.mostLabels = mostEqual(class.labels)
		slices.SortFunc(class.placed, func(a, b placed) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at), cmp.Compare(a.hits, b.hits))
		})
	}
	return classes
}

// mostEqual returns how many neighbours are equal at most.
func mostEqual(all []int) int {
	most, run := 0, 0
	for i, v := range all {
		if run++; i > 0 && all[i-1] != v {
			run = 1
		}
		most = max(most, run)
	}
	return most
}

// mostLabels is how many labels one of some cases has at most.
func (d *detection) mostLabels(of []int) int {
	most := 0
	for _, n := range of {
		_, labels := d.of(n)
		most = max(most, len(labels))
	}
	return most
}

// curve is precision over recall of a class at one overlap. A step is all detections of one score.
type curve struct {
	average, area float64
	ends          []int     // of each step: the first detection behind it
	best          []float64 // the largest precision of the step and those behind it
	// Sums over the step and those behind it: what another hit there changes of the area, and what
	// another detection takes.
	hit, detection []float64
}

// curve computes the curve at an overlap, in the order of scores.
func (o *ofClass) curve(overlap int) curve {
	var c curve
	var hits []float64 // up to the end of each step
	sum := 0.0
	for i, p := range o.placed {
		sum += float64(p.hits >> overlap & 1)
		if i+1 == len(o.placed) || o.placed[i+1].score != p.score {
			c.ends, hits = append(c.ends, i+1), append(hits, sum)
		}
	}
	steps := len(c.ends)
	c.best, c.hit, c.detection = make([]float64, steps), make([]float64, steps), make([]float64, steps)
	at := make([]int, steps)            // where the largest precision is
	weights := make([]float64, steps+1) // hits whose largest precision is there
	for s := steps - 1; s >= 0; s-- {
		c.best[s], at[s] = hits[s]/float64(c.ends[s]), s
		if s+1 < steps && c.best[s+1] > c.best[s] {
			c.best[s], at[s] = c.best[s+1], at[s+1]
		}
		before := 0.0
		if s > 0 {
			before = hits[s-1]
		}
		weights[at[s]] += hits[s] - before
	}
	labels := float64(len(o.labels))
	for s := steps - 1; s >= 0; s-- {
		if s+1 < steps {
			c.hit[s], c.detection[s] = c.hit[s+1], c.detection[s+1]
		}
		share := weights[s] / float64(c.ends[s])
		c.hit[s] += share
		c.detection[s] += float64(share * (hits[s] / float64(c.ends[s])))
		c.area += float64(weights[s] * (hits[s] / float64(c.ends[s])) / labels)
	}
	c.average = averageOf(c.best, hits, labels)
	return c
}

// averageOf is the mean of the best precision at each level of recall, as pycocotools has it: the
// levels are multiples of 0.01 in floating point, and a level that is not reached has precision 0.
func averageOf(best, hits []float64, labels float64) float64 {
	sum, step := 0.0, 0
	for level := range recalls {
		for step < len(hits) && hits[step]/labels < float64(level)*0.01 {
			step++
		}
		if step < len(hits) {
			sum += best[step]
		}
	}
	return sum / recalls
}

// contribute adds, for each case, scale times what it changes of the area.
func (o *ofClass) contribute(c curve, overlap int, scale float64, each []float64) {
	labels := float64(len(o.labels))
	for _, at := range o.labels {
		each[at] -= float64(scale * c.area / labels)
	}
	first := 0
	for step, end := range c.ends {
		for _, p := range o.placed[first:end] {
			change := -c.detection[step]
			if p.hits>>overlap&1 == 1 {
				change += c.best[step] + c.hit[step]
			}
			each[p.at] += float64(scale * change / labels)
		}
		first = end
	}
}

// gain is what a label that is found with the highest score adds to the area, times the number of labels.
func (c curve) gain() float64 {
	right := 1.0
	if len(c.hit) > 0 {
		right = max(1, c.best[0]+c.hit[0]-c.detection[0])
	}
	return max(right-c.area, 0)
}
