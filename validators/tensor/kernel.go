package tensor

import "math"

// kernel computes the figures of one case.
type kernel struct {
	options        Options
	sums           sums
	failed         int64
	newNaN, newInf int64
	maxAbs, maxRel float64
	shift          float64 // one of the reference's values, so that their variance keeps its digits
	from, from2    float64 // sums of reference-shift, and of its square
	worst          float64 // largest excess over the tolerance
	worstAt        int64   // -1 for none
	broken         bool    // an element has no finite error
	again          bool    // the case is a copy of another
}

// sums are added chunk by chunk and case by case, which keeps rounding errors small. They are
// of the n pairs with a finite difference, of which differ are not equal.
type sums struct {
	n, differ                  int64
	abs, err2, ref2, eng2, dot float64
}

func (s *sums) add(o sums) {
	s.n += o.n
	s.differ += o.differ
	s.abs += o.abs
	s.err2 += o.err2
	s.ref2 += o.ref2
	s.eng2 += o.eng2
	s.dot += o.dot
}

func newKernel(options Options, shift float64) kernel {
	return kernel{options: options, shift: shift, worst: math.Inf(-1), worstAt: -1}
}

// run processes the next elements of both sides; base is the index of the first. The sums are
// local variables, not a struct, and the maxima use if, not max, which would check for NaN and
// -0: both keep the loop in registers.
func (k *kernel) run(ref, eng []float64, base int64) {
	var sumAbs, err2, ref2, eng2, dot, from, from2 float64
	var n, differ int64
	shift := k.shift
	rtol, atol, limit := k.options.RTol, k.options.ATol, k.options.limit()
	maxAbs, maxRel := 0.0, 0.0
	eng = eng[:len(ref)]
	for i, r := range ref {
		e := eng[i]
		diff := e - r
		abs, size := math.Abs(diff), math.Abs(r)
		if !(abs <= math.MaxFloat64) {
			k.irregular(r, e, base+int64(i))
			continue
		}
		ref2 += r * r
		eng2 += e * e
		dot += r * e
		n++
		if size < limit {
			d := r - shift
			from += d
			from2 += d * d
		}
		if abs == 0 {
			continue
		}
		differ++
		sumAbs += abs
		err2 += diff * diff
		if abs > maxAbs {
			maxAbs = abs
		}
		excess := abs - (atol + rtol*size)
		if excess > 0 {
			k.failed++
		}
		if excess > k.worst {
			k.worst, k.worstAt = excess, base+int64(i)
		}
		if size < RelFloor {
			size = RelFloor
		}
		if rel := abs / size; rel > maxRel {
			maxRel = rel
		}
	}
	k.sums.add(sums{n, differ, sumAbs, err2, ref2, eng2, dot})
	k.from, k.from2 = k.from+from, k.from2+from2
	k.maxAbs, k.maxRel = max(maxAbs, k.maxAbs), max(maxRel, k.maxRel)
}

// irregular processes a pair whose difference is NaN or infinite.
func (k *kernel) irregular(r, e float64, at int64) {
	if r == e || math.IsNaN(r) && math.IsNaN(e) {
		return
	}
	if math.IsNaN(e) {
		k.newNaN++
	}
	if math.IsInf(e, 0) {
		k.newInf++
	}
	k.failed++
	k.sums.differ++
	k.broken = true
	k.maxAbs, k.maxRel = math.Inf(1), math.Inf(1)
	if k.worst < math.Inf(1) {
		k.worst, k.worstAt = math.Inf(1), at
	}
}

// says reports whether the case says anything: NaN, infinities and fill values that both sides have do not, nor does a copy.
func (k *kernel) says() bool { return !k.again && (k.sums.n > 0 || k.sums.differ > 0) }

// cosine returns the cosine similarity of the case, as in Result.CosineMin.
func (k *kernel) cosine() float64 {
	switch {
	case k.maxAbs == 0:
		return 1
	case k.broken || !inRange(k.sums.ref2) || !inRange(k.sums.eng2):
		return 0
	}
	cosine := k.sums.dot / (math.Sqrt(k.sums.ref2) * math.Sqrt(k.sums.eng2))
	return max(-1, min(1, cosine))
}
