package stats

import "math"

// UpperLargest returns by which factor the largest of many errors exceeds the largest of few with a
// probability of at most 1-level, though both are of one distribution with an exponential tail.
// Errors with a lighter tail, such as the size of normal ones, exceed it more seldom, and errors with
// a heavier tail more often: no factor holds for all, since the largest of many exceeds the largest of few with
// probability many/(few+many), however far. Arguments without meaning give +Inf.
func UpperLargest(few, many int, level float64) float64 {
	if few < 1 || many < 0 || few > maxCases || many > maxCases || !(level > 0 && level < 1) {
		return math.Inf(1)
	}
	low, high := 1.0, 2.0
	if exceeds(low, few, many) <= 1-level {
		return low
	}
	for exceeds(high, few, many) > 1-level {
		low, high = high, 2*high
	}
	for high-low > 1e-6*high {
		if middle := (low + high) / 2; exceeds(middle, few, many) > 1-level {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// exceeds is the probability that the largest of many exponential values is beyond this factor times
// the largest of few. The largest of few is exceeded by a value with probability p = 1-u^(1/few), u
// uniform, and that many times the factor by p^factor: the mean of 1-(1-p^factor)^many over u.
func exceeds(factor float64, few, many int) float64 {
	const steps = 2000
	sum := 0.0
	for i := range steps {
		u := (float64(i) + 0.5) / steps
		p := -math.Expm1(math.Log(u) / float64(few))
		sum -= math.Expm1(float64(many) * math.Log1p(-math.Pow(p, factor)))
	}
	return sum / steps
}
