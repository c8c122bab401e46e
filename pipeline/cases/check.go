package cases

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Check checks that every file of a set that was fetched holds the inputs of the model, and as many cases as the record
// of the set counts. Errors: CodeInvalid.
func (cs *Set) Check(iface validators.Interface) error {
	if cs.Record.Count < 1 || len(cs.Files) != len(cs.Record.Shards) {
		return registry.Errorf(registry.CodeInvalid, "the set of cases has %s in %s, and %d are described",
			registry.Count(cs.Record.Count, "case"), registry.Count(len(cs.Files), "file"), len(cs.Record.Shards))
	}
	for i, in := range cs.Files {
		f, err := openShard(in)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: %w", in.Name, err)
		}
		count, err := checkShard(f, in.Name, iface)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if want := cs.Record.Shards[i].Count; count != want {
			return registry.Errorf(registry.CodeInvalid, "%s: %s, and its set has %d", in.Name, registry.Count(count, "case"), want)
		}
	}
	return nil
}

// checkShard checks that a shard, from the file path, has every input of the model, with
// the model's dtype and shape and one number of cases, and gives that number.
func checkShard(f shard, path string, iface validators.Interface) (int, error) {
	count := int64(-1)
	for _, input := range iface.Inputs {
		info, ok := f.Info(input.Name)
		if !ok {
			return 0, registry.Errorf(registry.CodeInvalid,
				"%s: no tensor for the model's input %q: it holds %s", path, input.Name, strings.Join(f.Names(), ", "))
		}
		if err := fits(info, input, iface); err != nil {
			return 0, registry.Errorf(registry.CodeInvalid, "%s: tensor %q: %w", path, input.Name, err)
		}
		if count >= 0 && info.Shape[0] != count {
			return 0, registry.Errorf(registry.CodeInvalid,
				"%s: tensor %q has %d cases, another has %d", path, input.Name, info.Shape[0], count)
		}
		count = info.Shape[0]
	}
	if count < 1 {
		return 0, registry.Errorf(registry.CodeInvalid, "%s: no cases", path)
	}
	return int(count), nil
}

// fits checks a tensor with a leading case dimension against a model input: of the
// input's rank (the case dimension is the batch) or of one more.
func fits(info tensor.Info, input validators.TensorInfo, iface validators.Interface) error {
	stored, extra := input.Stored()
	if extra > 0 && (info.DType != stored || len(info.Shape) < 2) {
		return registry.Errorf(registry.CodeInvalid,
			"dtype is %s %v, the model wants text: want an array of text in .npz, "+
				"or in .safetensors uint8 with the bytes of each text along one more dimension", info.DType, info.Shape)
	}
	if !iface.Holds(input, info.DType) {
		return registry.Errorf(registry.CodeInvalid, "dtype is %s, the model wants %s", info.DType, input.DType)
	}
	info.Shape = info.Shape[:len(info.Shape)-extra]
	want := input.Shape
	switch len(info.Shape) - len(want) {
	case 0:
		if len(want) == 0 {
			return registry.Errorf(registry.CodeInvalid, "no case dimension")
		}
		if !iface.Allows(want[0], 1) {
			return registry.Errorf(registry.CodeInvalid,
				"the first dimension of the model's input is %s, so each case is a whole batch: "+
					"the tensor needs one more dimension in front, the number of cases", want[0])
		}
		want = want[1:]
	case 1:
	default:
		return registry.Errorf(registry.CodeInvalid,
			"shape is %v, the model wants %v with a leading case dimension", info.Shape, input.Shape)
	}
	for i, dim := range want {
		if got := info.Shape[len(info.Shape)-len(want)+i]; !iface.Allows(dim, got) {
			return unfit(info.Shape, input, len(input.Shape)-len(want)+i, got, iface)
		}
	}
	return nil
}

// unfit is the error about a dimension of an input, counted from 0, whose size the model does not take. For an open dimension it
// names the allowed sizes, which are often a default, and the shapes: that allow this one.
func unfit(shape []int64, input validators.TensorInfo, at int, got int64, iface validators.Interface) error {
	dim := input.Shape[at]
	err := registry.Errorf(registry.CodeInvalid, "shape is %v, the model wants %v", shape, input.Shape)
	if dim.Symbol == "" {
		return err
	}
	may := iface.Dims[dim.Symbol]
	usual := may.Opt
	if got > may.Max {
		usual = got
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%w: dimension %d is %d, and %s is from %d to %d", err, at, got, dim.Symbol, may.Min, may.Max),
		"if the model takes such cases, write into the spec: shapes: {%s: [%d, %d, %d]}", dim.Symbol, min(may.Min, got), usual, max(may.Max, got))
}

// refuseNaN refuses a shard of calibration with a NaN among its inputs: no range holds one,
// and quantizers pass over it without a word.
func refuseNaN(f shard, path string, iface validators.Interface) error {
	for _, input := range iface.Inputs {
		info, _ := f.Info(input.Name)
		if info.DType.Class() == tensor.ClassInteger {
			continue
		}
		for i := range info.Shape[0] {
			row, err := f.Rows(input.Name, i, i+1)
			if err != nil {
				return TensorError(fmt.Errorf("%s: %w", path, err))
			}
			if slices.ContainsFunc(row.Float64s(), math.IsNaN) {
				return registry.Errorf(registry.CodeInvalid,
					"%s: tensor %q: case %d has a NaN, which has no range: leave the case out of calibration, or mend it", path, input.Name, i)
			}
		}
	}
	return nil
}

// warnUnusual notes which inputs of a shard of cases hold NaN or infinity: a model may be made
// for them, so they are no error.
func (cs *Set) warnUnusual(f shard, path string, iface validators.Interface) error {
	for _, input := range iface.Inputs {
		var found Unusual
		if err := found.add(f.File, input.Name, cs.Record.Count); err != nil {
			return TensorError(fmt.Errorf("%s: %w", path, err))
		}
		if text := found.String(); text != "" {
			cs.Warnings = append(cs.Warnings,
				fmt.Sprintf("%s: tensor %q: %s: correct these cases unless the model is made for such values", path, input.Name, text))
		}
	}
	return nil
}

// Check checks a row against the inputs of a model: the inputs in only, or all if it is nil. Errors: CodeInvalid.
func (r Row) Check(iface validators.Interface, only []string) error {
	for _, input := range iface.Inputs {
		if only != nil && !slices.Contains(only, input.Name) {
			continue
		}
		t, ok := r[input.Name]
		if !ok {
			return registry.Errorf(registry.CodeInvalid, "no tensor for the model's input %q: there are %s",
				input.Name, strings.Join(slices.Sorted(maps.Keys(r)), ", "))
		}
		if err := fits(t.Info(), input, iface); err != nil {
			return registry.Errorf(registry.CodeInvalid, "tensor %q: %w", input.Name, err)
		}
	}
	return nil
}
