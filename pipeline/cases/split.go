package cases

import (
	"bytes"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Split configures how cases are divided.
type Split struct {
	From        string                 // folder with all of them, which stays as it is
	Cases       string                 // folder for the cases, new or empty
	Calibration string                 // folder for calibration, new or empty
	Count       int                    // different cases for calibration
	Seed        uint64                 // the same seed chooses the same cases
	IsInput     func(name string) bool // which tensors are inputs of the model
}

// Divided is the result of a split.
type Divided struct {
	Cases       int `json:"cases"`
	Calibration int `json:"calibration"`
	// Together are cases that went to calibration because they have the inputs of one that was chosen.
	Together int `json:"together"`
}

// Run writes cases and calibration to two folders. Cases of equal inputs go to the same one. Cases with NaN
// are not chosen for calibration, which refuses them. Errors: CodeInvalid also if no case would be left.
func (s Split) Run() (Divided, error) {
	files, err := FilesOf(s.From)
	if err != nil {
		return Divided{}, err
	}
	for _, folder := range []string{s.Cases, s.Calibration} {
		if _, err := Look(folder, false); err != nil {
			return Divided{}, err
		}
	}
	chosen, err := s.choose(files)
	if err != nil {
		return Divided{}, err
	}
	return s.write(files, chosen)
}

// choose gives the inputs that calibrate, by their sums: those of the lowest ranks.
func (s Split) choose(files []string) (map[Sum]bool, error) {
	all, fit := make(map[Sum]bool), make(map[Sum]bool)
	err := EachRow(files, func(row Row) error {
		sum := row.Sum(s.IsInput)
		if !all[sum] && !row.hasNaN(s.IsInput) {
			fit[sum] = true
		}
		all[sum] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.Count > len(fit) || s.Count >= len(all) {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: %s for calibration: there are %d with different inputs, %d of them without NaN, and at least one has to be left",
			s.From, registry.Count(s.Count, "case"), len(all), len(fit))
	}
	sums := make([]Sum, 0, len(fit))
	for sum := range fit {
		sums = append(sums, sum)
	}
	slices.SortFunc(sums, func(a, b Sum) int {
		x, y := rankOf(s.Seed, a), rankOf(s.Seed, b)
		return bytes.Compare(x[:], y[:])
	})
	chosen := make(map[Sum]bool, s.Count)
	for _, sum := range sums[:s.Count] {
		chosen[sum] = true
	}
	return chosen, nil
}

func (s Split) write(files []string, chosen map[Sum]bool) (Divided, error) {
	cases, err := NewWriter(s.Cases, 0)
	if err != nil {
		return Divided{}, err
	}
	calibration, err := NewWriter(s.Calibration, 0)
	if err != nil {
		cases.Discard()
		return Divided{}, err
	}
	var done Divided
	err = EachRow(files, func(row Row) error {
		sum := row.Sum(s.IsInput)
		if !chosen[sum] {
			done.Cases++
			return cases.Add(row)
		}
		done.Calibration++
		return calibration.Add(row)
	})
	if err == nil {
		err = cases.Close()
	}
	if err == nil {
		err = calibration.Close()
	}
	if err != nil {
		cases.Discard()
		calibration.Discard()
		return Divided{}, err
	}
	done.Together = done.Calibration - len(chosen)
	return done, nil
}

// hasNaN reports whether an input has a NaN.
func (r Row) hasNaN(inputs func(name string) bool) bool {
	for name, t := range r {
		if inputs(name) && t.DType.Class() == tensor.ClassFloat && slices.ContainsFunc(t.Float64s(), math.IsNaN) {
			return true
		}
	}
	return false
}
