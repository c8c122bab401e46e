package tensor

import "math"

// The curve through all values is followed only where the reference's values are as near together as these
// say: where a few of them are far out, it would go through the errors of those alone.
const (
	mostKurtosis = 5.0  // mean of the fourth powers of standardized values: 3 for normal ones
	mostShift    = 10.0 // standard deviations from the shift to the mean: beyond, the sixth powers lose their digits
	fewestBent   = 20   // values
	leastBend    = 1e-6 // mean square of what a power adds to those below it: less is none
)

// powers are sums over values of an output, of which d is the difference of the reference's from a shift.
type powers struct {
	n     float64
	err2  float64
	of    [7]float64 // d^k
	cross [4]float64 // error * d^k
}

// feed adds elements of both sides, of which the reference's are below a limit.
func (p *powers) feed(ref, eng []float64, shift, limit float64) {
	for i, r := range ref {
		diff := eng[i] - r
		if !(math.Abs(diff) <= math.MaxFloat64) || !(math.Abs(r) < limit) {
			continue
		}
		d := r - shift
		d2 := d * d
		d3 := d2 * d
		p.n++
		p.err2 += diff * diff
		p.cross[0] += diff
		p.cross[1] += diff * d
		p.cross[2] += diff * d2
		p.cross[3] += diff * d3
		p.of[1] += d
		p.of[2] += d2
		p.of[3] += d3
		p.of[4] += d2 * d2
		p.of[5] += d2 * d3
		p.of[6] += d3 * d3
	}
}

// fit is what a line or curve over the reference's values explains of errors, in their unit: its parts at right
// angles to each other, and the standard deviation of the rest.
type fit struct {
	offset, factor, square, cube float64
	rest                         float64
}

// curve fits a polynomial of third degree to the errors by least squares. Each part is less what chance explains
// in so many cases, see [channelSums.line].
func (p *powers) curve(cases int) fit {
	if p.n < 3 {
		return fit{}
	}
	f, parts := fit{offset: p.cross[0] / p.n}, 2.0
	if z, about, ok := p.standardized(); ok {
		f.factor = about[1]
		if p.n >= fewestBent && p.near(z) {
			f.square, f.cube = bends(z, about)
			parts = 4
		}
	}
	explained := f.offset*f.offset + f.factor*f.factor + f.square*f.square + f.cube*f.cube
	return f.less(max(p.err2-p.n*explained, 0)/(p.n-parts), p.n, cases)
}

// standardized returns the means of z^k and of error * z^k, where z is a value less the mean, in standard
// deviations. It reports false where all values are the same.
func (p *powers) standardized() (z [7]float64, about [4]float64, ok bool) {
	mean := p.of[1] / p.n
	variance := p.of[2]/p.n - mean*mean
	if !(variance > p.of[2]/p.n*0x1p-50) {
		return z, about, false
	}
	sd := math.Sqrt(variance)
	raw := p.of
	raw[0] = p.n
	for k := range z {
		z[k] = central(raw[:], mean, k) / p.n / math.Pow(sd, float64(k))
	}
	for k := range about {
		about[k] = central(p.cross[:], mean, k) / p.n / math.Pow(sd, float64(k))
	}
	return z, about, true
}

// near reports whether the values are near enough together, and to the shift, for a curve.
func (p *powers) near(z [7]float64) bool {
	mean := p.of[1] / p.n
	variance := p.of[2]/p.n - mean*mean
	return mean*mean <= mostShift*mostShift*variance && z[4] <= mostKurtosis
}

// central returns the sum of w * (d-mean)^k from the sums of w * d^j.
func central(sums []float64, mean float64, k int) float64 {
	total, binomial := 0.0, 1.0
	for j := k; j >= 0; j-- {
		total += binomial * sums[j] * math.Pow(-mean, float64(k-j))
		binomial *= float64(j) / float64(k-j+1)
	}
	return total
}

// bends returns the parts of the errors along the square and the cube of standardized values, each at a right
// angle to the powers below it (Gram and Schmidt).
func bends(z [7]float64, about [4]float64) (square, cube float64) {
	norm2 := z[4] - z[3]*z[3] - 1
	if !(norm2 > leastBend) {
		return 0, 0
	}
	along2 := about[2] - z[3]*about[1] - about[0]
	common := (z[5] - z[3]*z[4] - z[3]) / norm2
	norm3 := z[6] - z[3]*z[3] - z[4]*z[4] - common*common*norm2
	if norm3 > leastBend {
		cube = (about[3] - z[3]*about[0] - z[4]*about[1] - common*along2) / math.Sqrt(norm3)
	}
	return along2 / math.Sqrt(norm2), cube
}

// less returns the sizes of the parts without what chance explains: rest is the variance of what is left of the
// errors of n elements. Each part has the standard error sqrt(rest/m), where m is the number of cases, not of
// elements: errors within a case go together, as those of the words of a sentence do. One or two cases say nothing
// of that, so there elements count.
func (f fit) less(rest, n float64, cases int) fit {
	m := min(n, float64(cases))
	if m < 3 {
		m = n
	}
	chance := studentT(certainty, m-2) * math.Sqrt(rest/m)
	size := func(part float64) float64 { return max(math.Abs(part)-chance, 0) }
	return fit{size(f.offset), size(f.factor), size(f.square), size(f.cube), math.Sqrt(rest)}
}
