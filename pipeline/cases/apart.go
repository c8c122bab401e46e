package cases

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// rowSum identifies the inputs of one case.
type rowSum [sha256.Size]byte

// CheckApart checks that no case of calibration has the inputs of a case. An engine that was
// calibrated on its verification cases can pass and be wrong on all other inputs. Errors:
// CodeInvalid, which names the first such case.
func CheckApart(set, calibration Set, iface validators.Interface) error {
	common, first, of, err := inBoth(set, calibration, iface)
	if err != nil || common == 0 {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s is also used for calibration, as %s; that holds for %d of %s",
			set.place(first), calibration.place(of), common, registry.Count(set.Record.Count, "case")),
		"calibrate on other inputs: an engine that is verified with its own calibration data can pass and be wrong on all other inputs")
}

// CheckOther checks that no case that limits are suggested by has the inputs of a case of the
// verdict. Errors: CodeInvalid, which names the first such case.
func CheckOther(verdict, others Set, iface validators.Interface) error {
	common, first, of, err := inBoth(others, verdict, iface)
	if err != nil || common == 0 {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s is also a case of the verdict, %s; that holds for %d of %s",
			others.place(first), verdict.place(of), common, registry.Count(others.Record.Count, "case")),
		"use cases that the spec does not name: limits that follow from the cases that they are judged on prove nothing")
}

// inBoth counts the cases of a set whose inputs are those of a case of another, and gives the numbers
// of the first in both.
func inBoth(set, other Set, iface validators.Interface) (common, first, of int, err error) {
	known := make(map[rowSum]int, other.Record.Count) // by number in the other
	err = other.sums(other.Engines(), iface, func(number int, sum rowSum) {
		if _, ok := known[sum]; !ok {
			known[sum] = number
		}
	})
	if err != nil {
		return 0, 0, 0, err
	}
	err = set.sums(set.Engines(), iface, func(number int, sum rowSum) {
		if n, ok := known[sum]; ok {
			if common++; common == 1 {
				first, of = number, n
			}
		}
	})
	return common, first, of, err
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

// sums calls each with the number and the sum of every case, which are in the files.
func (cs *Set) sums(files []toolchain.Input, iface validators.Interface, each func(number int, sum rowSum)) error {
	for i, in := range files {
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
			if _, extra := input.Stored(); len(shape) > len(input.Shape)+extra {
				shape = shape[1:] // the case dimension is not the model's: the same case may be stored without it
			}
			fmt.Fprint(h, input.Name, shape)
			h.Write(t.Data)
		}
		each(int(row), rowSum(h.Sum(nil)))
	}
	return nil
}
