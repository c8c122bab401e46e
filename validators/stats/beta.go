package stats

import "math"

// betaTails returns both tails of the beta distribution at x: the regularized incomplete beta
// function I(x; a, b) and 1 - I(x; a, b), each with full relative precision. a and b are positive.
//
// The continued fraction is https://dlmf.nist.gov/8.17.E22. It converges in some sqrt(max(a, b))
// steps left of the mean, so the right side uses I(x; a, b) = 1 - I(1-x; b, a).
func betaTails(x, a, b float64) (lower, upper float64) {
	switch {
	case x <= 0:
		return 0, 1
	case x >= 1:
		return 1, 0
	}
	power := math.Exp(logBetaPower(x, a, b))
	if x*(a+b+2) < a+1 {
		p := min(1, power/a*betaFraction(x, a, b))
		return p, 1 - p
	}
	q := min(1, power/b*betaFraction(1-x, b, a))
	return 1 - q, q
}

// logBetaPower returns the logarithm of x^a (1-x)^b / B(a, b). The form is that of Loader, "Fast
// and Accurate Computation of Binomial Probabilities" (2000): what is large cancels before
// it is computed, so the precision does not fall with a and b.
func logBetaPower(x, a, b float64) float64 {
	sum := a + b
	shift := (x*b - (1-x)*a) / sum // x - a/sum
	deviance := a*log1pMinus(shift*sum/a) + b*log1pMinus(-shift*sum/b)
	return deviance + math.Log(a/sum*b/(2*math.Pi))/2 + stirlingError(sum) - stirlingError(a) - stirlingError(b)
}

// log1pMinus returns log(1+u) - u.
func log1pMinus(u float64) float64 {
	if math.Abs(u) > 0.1 {
		return math.Log1p(u) - u
	}
	sum, power := 0.0, -u
	for k := 2.0; k < 22; k++ {
		power *= -u
		sum -= power / k
	}
	return sum
}

// stirlingError returns log(Gamma(z)) less Stirling's approximation of it without its series,
// https://dlmf.nist.gov/5.11.E1.
func stirlingError(z float64) float64 {
	if z < 16 {
		lgamma, _ := math.Lgamma(z)
		return lgamma - (z-0.5)*math.Log(z) + z - math.Log(2*math.Pi)/2
	}
	w := 1 / (z * z)
	return (1.0/12 - w*(1.0/360-w*(1.0/1260-w*(1.0/1680-w*(1.0/1188-w*691.0/360360))))) / z
}

// maxFraction is how many steps of the fraction are computed; it needs fewer for maxCases.
const maxFraction = 1_000_000

// betaFraction computes the continued fraction by Lentz's method as Thompson and Barnett (1986)
// modified it.
func betaFraction(x, a, b float64) float64 {
	const tiny = 1e-300
	away := func(v float64) float64 { // from 0, to divide by it
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c := 1.0
	d := 1 / away(1-(a+b)*x/(a+1))
	value := d
	for m := 1.0; m < maxFraction; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d, c = 1/away(1+even*d), away(1+even/c)
		value *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d, c = 1/away(1+odd*d), away(1+odd/c)
		value *= d * c
		if math.Abs(d*c-1) < 1e-16 {
			break
		}
	}
	return value
}

// betaQuantile returns the x where a tail of the beta distribution is alpha: the lower tail, or
// the upper one. Newton's method on the logarithm of the tail, kept between bounds that
// bisection halves where a step would leave them.
func betaQuantile(a, b, alpha float64, upper bool) float64 {
	low, high := 0.0, 1.0
	x := a / (a + b)
	for range 2000 {
		lower, tail := betaTails(x, a, b)
		if !upper {
			tail = lower
		}
		if (tail > alpha) == upper {
			low = x
		} else {
			high = x
		}
		density := math.Exp(logBetaPower(x, a, b)) / (x * (1 - x))
		step := tail / density * math.Log(tail/alpha)
		if !upper {
			step = -step
		}
		next := x + step
		if !(next > low && next < high) {
			next = low + (high-low)/2
		}
		if math.Abs(next-x) <= 1e-16*x || next == low || next == high {
			return next
		}
		x = next
	}
	return x
}
