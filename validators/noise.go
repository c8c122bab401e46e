package validators

import (
	"math"

	"mlpromote.dev/mlpromote/registry/figure"
)

// Noise returns the least ratio of signal to noise, in dB, that the limits leave an output: that of the limit
// on it, or what follows from the limits on the error of the worst case or on the cosine. Where none is there it is
// that of the preset default for the precision. from says which it is: "snr", "case_error", "cosine" or "preset".
//
// The ratio of a cosine c is that of an error at a right angle to the reference: c^2 / (1 - c^2).
func (o OutputLimits) Noise(precision string) (db float64, from string) {
	switch {
	case o.SNRdB != nil:
		return o.SNRdB.Min, "snr"
	case o.CaseError != nil && o.CaseError.Max > 0:
		return -20 * math.Log10(o.CaseError.Max), "case_error"
	case o.Cosine != nil && o.Cosine.Min > 0 && o.Cosine.Min < 1:
		c2 := o.Cosine.Min * o.Cosine.Min
		return 10 * math.Log10(c2/(1-c2)), "cosine"
	}
	snr, _ := figure.Find(figure.SNR)
	if usual, ok := snr.Defaults[limitedAs(precision)]; ok {
		return usual, "preset"
	}
	return snr.Defaults[PrecisionFP32], "preset"
}
