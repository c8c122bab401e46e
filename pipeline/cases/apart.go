package cases

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// rowSum identifies the inputs of one case.
type rowSum [sha256.Size]byte

// CheckApart checks that no case of calibration has the inputs of a case. An engine that was
// calibrated on what it is verified with can pass and be wrong on everything else. Errors:
// CodeInvalid, which names the first such case.
func CheckApart(set, calibration Set, iface validators.Interface) error {
	known := make(map[rowSum]int, calibration.Record.Count) // by number in calibration
	err := calibration.sums(iface, func(number int, sum rowSum) {
		if _, ok := known[sum]; !ok {
			known[sum] = number
		}
	})
	if err != nil {
		return err
	}
	common, first, of := 0, 0, 0
	err = set.sums(iface, func(number int, sum rowSum) {
		if n, ok := known[sum]; ok {
			if common++; common == 1 {
				first, of = number, n
			}
		}
	})
	if err != nil || common == 0 {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s is also used for calibration, as %s; that holds for %d of %s",
			set.place(first), calibration.place(of), common, registry.Count(set.Record.Count, "case")),
		"calibrate on other inputs: an engine that is verified with what it was calibrated on can pass and be wrong on everything else")
}

// place names a case by the file that it was read from.
func (cs *Set) place(number int) string {
	for i, shard := range cs.Record.Shards {
		if number < shard.First+shard.Count && i < len(cs.from) {
			return fmt.Sprintf("%s: case %d", cs.from[i], number-shard.First)
		}
	}
	return fmt.Sprintf("generated case %d", number)
}

// sums calls each with the number and the sum of every case.
func (cs *Set) sums(iface validators.Interface, each func(number int, sum rowSum)) error {
	for i, in := range cs.Files {
		f, err := openShard(in)
		if err != nil {
			return err
		}
		err = f.sums(iface, func(row int, sum rowSum) { each(cs.Record.Shards[i].First+row, sum) })
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (s shard) sums(iface validators.Interface, each func(row int, sum rowSum)) error {
	info, _ := s.Info(iface.Inputs[0].Name)
	for row := range info.Shape[0] {
		h := sha256.New()
		for _, input := range iface.Inputs {
			t, err := s.Rows(input.Name, row, row+1)
			if err != nil {
				return TensorError(err)
			}
			shape := t.Shape
			if len(shape) > len(input.Shape) {
				shape = shape[1:] // the case dimension is not the model's: the same case may be stored without it
			}
			fmt.Fprint(h, input.Name, shape)
			h.Write(t.Data)
		}
		each(int(row), rowSum(h.Sum(nil)))
	}
	return nil
}
