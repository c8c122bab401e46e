package cases

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// CheckSlices checks that the cases can be cut into the slices of a limit: every shard has the tensor
// with the slice of each case. It warns of slices that have too few cases to prove the limit.
// Errors: CodeInvalid.
func (cs *Set) CheckSlices(limits validators.Limits, iface validators.Interface) error {
	if limits.Accuracy == nil || limits.Accuracy.Slices == nil {
		return nil
	}
	by := limits.Accuracy.Slices.By
	counts := make(map[int64]int)
	var distinct []int64 // of the cases that are no copies
	number := 0
	for i, file := range cs.Files {
		from := file.Name
		if i < len(cs.from) {
			from = cs.from[i]
		}
		values, err := sliceValues(file.Path, by, cs.Record.Shards[i].Count)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: tensor %q, which limits.accuracy.slices.by names: %w", from, by, err)
		}
		for _, v := range values {
			if number++; !cs.Copies[number-1] {
				counts[v]++
				distinct = append(distinct, v)
			}
		}
		if len(counts) > accuracy.MaxSlices {
			return registry.Errorf(registry.CodeInvalid,
				"%s: tensor %q, which limits.accuracy.slices.by names, has more than %d values: want the number of a slice for each case",
				from, by, accuracy.MaxSlices)
		}
	}
	right := make(map[int64]*accuracy.Figures)
	if cs.right != nil {
		all, err := cs.right.Slices(distinct)
		if err != nil {
			return err
		}
		for _, s := range all {
			right[s.Value] = s.Figures
		}
	}
	floats := hasFloats(iface) && cs.Distinct() >= validators.FewestIdentical
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		sample := validators.Sample{Cases: counts[value], Floats: floats, Right: right[value]}
		if text := limits.UnprovenSlice(sample); text != "" {
			cs.Warnings = append(cs.Warnings, fmt.Sprintf("slice %s=%d: %s", by, value, text))
		}
	}
	return nil
}

// sliceValues reads the slice of each case of a shard.
func sliceValues(path, name string, count int) (values []int64, err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, ok := f.Info(name); !ok {
		return nil, fmt.Errorf("no such tensor: the file has %s", strings.Join(f.Names(), ", "))
	}
	t, err := f.Tensor(name)
	if err != nil {
		return nil, err
	}
	return accuracy.SliceOf(t, count)
}
