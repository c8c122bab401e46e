package cases

import (
	"math"

	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

const (
	// noiseCases is how many cases are looked at.
	noiseCases = 16
	// noisePairs is how many pairs of neighbours it takes to tell noise from an image.
	noisePairs = 500
	// noiseMost is the correlation of neighbours below which an image is noise: that of photographs,
	// drawings and scans is above 0.3, that of independent numbers around 0.
	noiseMost = 0.1
)

// IsNoise reports whether the pixels of an input that holds images predict nothing about
// their neighbours in the row, like generated numbers. channelsLast means that the last
// axis has the channels. Few pixels, and images of one colour, are no noise. Errors: CodeInvalid for a
// shard that cannot be read.
func (cs *Set) IsNoise(input string, channelsLast bool) (bool, error) {
	var product, square float64
	pairs, cases := 0, 0
	for _, shard := range cs.Files {
		if cases >= noiseCases {
			break
		}
		f, err := tensorfile.Open(shard.Path, tensorfile.Limits{})
		if err != nil {
			return false, TensorError(err)
		}
		info, _ := f.Info(input)
		for row := int64(0); len(info.Shape) > 2 && row < info.Shape[0] && cases < noiseCases; row++ {
			t, err := f.Rows(input, row, row+1)
			if err != nil {
				f.Close()
				return false, TensorError(err)
			}
			p, s, n := neighbours(t.Float64s(), info.Shape, channelsLast)
			product, square, pairs, cases = product+p, square+s, pairs+n, cases+1
		}
		f.Close()
	}
	return pairs >= noisePairs && square > 0 && math.Abs(product/square) < noiseMost, nil
}

// neighbours gives the sum of the products of neighbours in rows of pixels, without the mean, that of
// their mean squares, and how many pairs there are.
func neighbours(values []float64, shape []int64, channelsLast bool) (product, square float64, pairs int) {
	width, step := int(shape[len(shape)-1]), 1
	if channelsLast {
		width, step = int(shape[len(shape)-2]*shape[len(shape)-1]), width
	}
	mean := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for i, v := range values {
		if i%width+step >= width {
			continue
		}
		a, b := v-mean, values[i+step]-mean
		product, square, pairs = product+a*b, square+(a*a+b*b)/2, pairs+1
	}
	if math.IsNaN(product) || math.IsInf(square, 0) {
		return 0, 0, 0
	}
	return product, square, pairs
}

// Single reports whether every case has one element along each of these axes of an input's shape
// in the model, which has rank axes. Errors: CodeInvalid for a shard that cannot be read.
func (cs *Set) Single(input string, rank int, axes []int) (bool, error) {
	for _, shard := range cs.Files {
		f, err := tensorfile.Open(shard.Path, tensorfile.Limits{})
		if err != nil {
			return false, TensorError(err)
		}
		info, _ := f.Info(input)
		f.Close()
		for _, axis := range axes {
			if at := len(info.Shape) - rank + axis; at < 0 || info.Shape[at] != 1 {
				return false, nil
			}
		}
	}
	return len(axes) > 0 && len(cs.Files) > 0, nil
}
