package stats

// UpperNoise returns by how much the mean square of few errors may exceed the mean square of many, though both
// are of one distribution: the quantile `level` of the F distribution with these degrees of freedom.
// For errors that are no squares of normal ones, the degrees follow Satterthwaite (Biometrics
// Bulletin 2, 1946): 2*mean^2/variance of each mean square. Arguments without meaning give 1.
func UpperNoise(few, many, level float64) float64 {
	if !(few > 0 && many > 0 && few <= maxCases && many <= maxCases && level > 0 && level < 1) {
		return 1
	}
	x := betaQuantile(few/2, many/2, 1-level, true)
	return x / few * many / (1 - x)
}
