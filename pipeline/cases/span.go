package cases

import (
	"errors"
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// unlikeSpan is how many times as wide the values of cases may be as those of calibration data, and the reverse. A few hundred samples of
// one distribution with heavy tails differ by less.
const unlikeSpan = 3

// leastOfSpan is how many values it takes to know a range.
const leastOfSpan = 20

// Span is the range of the finite values of an input in files of cases.
type Span struct {
	Low, High float64
	count     int // of the values
}

// SpanOf reads the range of an input; ok is false if there are too few values to know one. Errors: CodeInvalid for a file that cannot be read.
func SpanOf(paths []string, input string) (s Span, ok bool, err error) {
	s = Span{math.Inf(1), math.Inf(-1), 0}
	for _, path := range paths {
		if err := s.add(path, input); err != nil {
			return s, false, TensorError(err)
		}
	}
	return s, s.count >= leastOfSpan, nil
}

func (s *Span) add(path, input string) (err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, ok := f.Info(input)
	if !ok || len(info.Shape) == 0 {
		return nil
	}
	for row := range info.Shape[0] {
		t, err := f.Rows(input, row, row+1)
		if err != nil {
			return err
		}
		for _, v := range t.Float64s() {
			if math.Abs(v) <= math.MaxFloat64 {
				s.Low, s.High, s.count = min(s.Low, v), max(s.High, v), s.count+1
			}
		}
	}
	return nil
}

// Unlike describes how calibration data is unlike the cases: of which input the range is several times as wide, or has nothing in common. Integers
// are no quantities. It is empty if nothing is.
func Unlike(calibration, cases []string, iface validators.Interface) (string, error) {
	for _, input := range iface.Inputs {
		if input.DType.Class() != tensor.ClassFloat {
			continue
		}
		of, known, err := SpanOf(calibration, input.Name)
		if err != nil {
			return "", err
		}
		in, there, err := SpanOf(cases, input.Name)
		if err != nil {
			return "", err
		}
		if known && there && of.unlike(in) {
			return fmt.Sprintf("input %q goes from %.3g to %.3g in the calibration data, and from %.3g to %.3g in the cases", input.Name, of.Low, of.High, in.Low, in.High), nil
		}
	}
	return "", nil
}

func (s Span) unlike(other Span) bool {
	if s.Low > other.High || other.Low > s.High {
		return true
	}
	own, its := s.High-s.Low, other.High-other.Low
	return own > unlikeSpan*its || its > unlikeSpan*own
}
