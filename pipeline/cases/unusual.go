package cases

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Unusual counts the elements and cases of a tensor that are NaN or infinite. Cases are numbered
// through all shards. The zero Unusual has seen nothing.
type Unusual struct {
	elements, nans            int64
	cases, nanCases, infinite int
	firstNaN, firstInfinite   int
}

// add looks at the rows of a tensor, which are the cases from number first on.
func (u *Unusual) add(f *tensorfile.File, name string, first int) error {
	info, ok := f.Info(name)
	if !ok || len(info.Shape) == 0 || info.DType.Class() == tensor.ClassInteger {
		return nil
	}
	for row := range info.Shape[0] {
		t, err := f.Rows(name, row, row+1)
		if err != nil {
			return err
		}
		u.addCase(t.Float64s(), first+int(row))
	}
	return nil
}

func (u *Unusual) addCase(values []float64, number int) {
	nans, infinite := 0, false
	for _, v := range values {
		if v != v {
			nans++
		}
		infinite = infinite || math.IsInf(v, 0)
	}
	u.elements, u.nans, u.cases = u.elements+int64(len(values)), u.nans+int64(nans), u.cases+1
	if nans > 0 {
		if u.nanCases == 0 {
			u.firstNaN = number
		}
		u.nanCases++
	}
	if infinite {
		if u.infinite == 0 {
			u.firstInfinite = number
		}
		u.infinite++
	}
}

// Cases returns the number of cases.
func (u *Unusual) Cases() int { return u.cases }

// OnlyNaN reports whether every element is NaN, so that nothing can be compared.
func (u *Unusual) OnlyNaN() bool { return u.elements > 0 && u.nans == u.elements }

// String describes the findings, or returns "".
func (u *Unusual) String() string {
	text := ""
	if u.nanCases > 0 {
		text = fmt.Sprintf("NaN in %d of %d cases, the first is case %d", u.nanCases, u.cases, u.firstNaN)
	}
	if u.infinite > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("infinity in %d of %d cases, the first is case %d", u.infinite, u.cases, u.firstInfinite)
	}
	return text
}

// AddFile reads a tensor of a shard that begins with the case number first.
func (u *Unusual) AddFile(path, name string, first int) error {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return TensorError(err)
	}
	defer f.Close()
	if err := u.add(f, name, first); err != nil {
		return TensorError(err)
	}
	return nil
}
