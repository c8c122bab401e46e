package cases

import (
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// labelNames are the tensors that are taken for labels where the spec names none.
var labelNames = []string{"label", "labels"}

// errNoTensor: a shard has no tensor of the name.
var errNoTensor = errors.New("no such tensor")

// FindLabels makes the set labelled: by the tensor that the spec names, or by one
// called "label" or "labels" that is not an input, and that can be labels in every shard.
func (cs *Set) FindLabels(named string, iface validators.Interface) error {
	candidates := labelNames
	if named != "" {
		candidates = []string{named}
	}
	for _, name := range candidates {
		if slices.ContainsFunc(iface.Inputs, func(p validators.TensorInfo) bool { return p.Name == name }) {
			continue
		}
		path, err := cs.checkLabels(name, iface)
		switch {
		case err == nil:
			cs.Record.Labels = name
			return nil
		case errors.Is(err, errNoTensor) && named != "":
			return registry.Errorf(registry.CodeInvalid, "%s: no tensor %q, which cases.labels names", path, named)
		case named != "":
			return registry.Errorf(registry.CodeInvalid, "%s: tensor %q, which cases.labels names: %w", path, named, err)
		}
	}
	if named != "" {
		return registry.Errorf(registry.CodeInvalid, "cases.labels: %q is an input of the model", named)
	}
	return nil
}

// checkLabels checks that every shard has labels of that name; if one has not, it says which.
func (cs *Set) checkLabels(name string, iface validators.Interface) (path string, err error) {
	output, _ := iface.ScoredOutput(true)
	scored, _ := iface.Output(output)
	for i, file := range cs.Files {
		f, err := openShard(file)
		if err != nil {
			return cs.from[i], err
		}
		err = areLabels(f, name, cs.Record.Shards[i].Count, scored)
		if err = errors.Join(err, f.Close()); err != nil {
			return cs.from[i], err
		}
	}
	return "", nil
}

// areLabels checks that a tensor holds classes of an output, for each of count cases.
func areLabels(f shard, name string, count int, output validators.TensorInfo) error {
	info, ok := f.Info(name)
	if !ok {
		return errNoTensor
	}
	if info.DType.Class() != tensor.ClassInteger {
		return registry.Errorf(registry.CodeInvalid, "dtype is %s: want integers, the numbers of classes", info.DType)
	}
	if len(info.Shape) == 0 || info.Shape[0] != int64(count) {
		return registry.Errorf(registry.CodeInvalid,
			"shape is %v: want %d labels first, one for each case", info.Shape, count)
	}
	labels, err := f.Tensor(name)
	if err != nil {
		return TensorError(err)
	}
	var classes int64 // 0: not known before the model is run
	if len(output.Shape) > 0 {
		classes = output.Shape[len(output.Shape)-1].Size
	}
	for i, label := range labels.Float64s() {
		if label < 0 || classes > 0 && label >= float64(classes) {
			return registry.Errorf(registry.CodeInvalid,
				"label %v at %d: want the number of a class of output %s, from 0 to %d", label, i, output.Name, max(classes, 1)-1)
		}
	}
	return nil
}
