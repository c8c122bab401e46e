package pipeline

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// caseSet is a set of cases on disk, checked against the model's inputs.
type caseSet struct {
	set   registry.CaseSet
	files []toolchain.Input // one for each shard, named as in the set
	from  []string          // the user's file of each shard that was read, for errors

	warnings []string // about values that are probably a mistake
}

// readCases takes every safetensors and npz file of a folder, in the order of their
// names, as one shard. role is toolchain.RoleCases or RoleCalibration; shards are named
// after it, so that the names of files do not change a digest.
func readCases(files specFiles, folder, role string, iface validators.Interface, scratch string) (caseSet, error) {
	names, err := shardNames(files, folder)
	if err != nil {
		return caseSet{}, err
	}
	cs := caseSet{set: registry.CaseSet{Origin: registry.OriginRecorded}}
	for i, name := range names {
		shard := fmt.Sprintf("%s-%05d.safetensors", role, i)
		f, err := files.Open(path.Join(folder, name))
		if err != nil {
			return caseSet{}, err
		}
		source := f.Name()
		if path.Ext(name) == ".npz" {
			if f, err = convertNpz(f, filepath.Join(scratch, shard)); err != nil {
				return caseSet{}, err
			}
		}
		if err := cs.take(role, shard, f, source, iface); err != nil {
			return caseSet{}, err
		}
	}
	return cs, nil
}

// take checks a shard and adds it. It closes the file. Errors name source, the user's file,
// which the open one may be converted from.
func (cs *caseSet) take(role, name string, f *os.File, source string, iface validators.Interface) error {
	defer f.Close()
	tensors, err := readShard(f)
	if err != nil {
		return err
	}
	count, err := checkShard(tensors, source, iface)
	switch {
	case err != nil:
	case role == toolchain.RoleCalibration:
		err = refuseNaN(tensors, source, iface)
	default:
		err = cs.warnUnusual(tensors, source, iface)
	}
	if err != nil {
		return err
	}
	input, err := toolchain.InputOf(role, name, f)
	if err != nil {
		return err
	}
	cs.add(input, count)
	cs.from = append(cs.from, source)
	return nil
}

func (cs *caseSet) add(shard toolchain.Input, count int) {
	cs.set.Shards = append(cs.set.Shards, registry.Shard{File: shard.Name, First: cs.set.Count, Count: count})
	cs.set.Count += count
	cs.files = append(cs.files, shard)
}

// namedIn adds to an error that names a shard the user's file that the shard was read from.
func (cs *caseSet) namedIn(err error) error {
	for i, file := range cs.from {
		if name := cs.set.Shards[i].File; strings.Contains(err.Error(), name) {
			return registry.WithHint(err, "%s was read from %s; rows and cases count from 0", name, file)
		}
	}
	return err
}

func shardNames(files specFiles, folder string) ([]string, error) {
	names, err := files.Names(folder)
	if err != nil {
		return nil, inside("cases", err)
	}
	all := slices.Sorted(slices.Values(names))
	names = slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return path.Ext(name) != ".safetensors" && path.Ext(name) != ".npz"
	})
	if len(names) > 0 {
		return names, nil
	}
	err = registry.Errorf(registry.CodeInvalid,
		"%s: no cases: want .safetensors or .npz files whose tensors are named as the model's inputs and have a leading case dimension", folder)
	for _, name := range all {
		if extension := strings.ToLower(path.Ext(name)); extension == spec.Parquet || extension == spec.CSV {
			return nil, registry.WithHint(err, "%s", spec.FromTable(path.Join(folder, name)))
		}
	}
	return nil, err
}

// convertNpz writes the tensors of an open npz file, which it closes, as a shard and opens
// that.
func convertNpz(f *os.File, to string) (*os.File, error) {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tensors, err := tensor.ReadNpz(f, info.Size(), tensor.Limits{})
	if err != nil {
		return nil, badTensors(fmt.Errorf("%s: %w", f.Name(), err))
	}
	if err := writeShard(to, tensors); err != nil {
		return nil, err
	}
	return os.Open(to)
}

func writeShard(path string, tensors map[string]tensor.Tensor) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := tensor.Write(f, tensors, nil); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// badTensors gives an error of the tensor package, which names the file, the code that it
// deserves.
func badTensors(err error) error {
	if errors.Is(err, tensor.ErrUnsafe) {
		return registry.Errorf(registry.CodeUnsafe, "%w", err)
	}
	return registry.Errorf(registry.CodeInvalid, "%w", err)
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
	if info.DType != input.DType {
		return registry.Errorf(registry.CodeInvalid, "dtype is %s, the model wants %s", info.DType, input.DType)
	}
	want := input.Shape
	switch len(info.Shape) - len(want) {
	case 0:
		if len(want) == 0 {
			return registry.Errorf(registry.CodeInvalid, "no case dimension")
		}
		if !iface.Allows(want[0], 1) {
			return registry.Errorf(registry.CodeInvalid,
				"the model wants %s cases at once, so give the tensor a case dimension in front", want[0])
		}
		want = want[1:]
	case 1:
	default:
		return registry.Errorf(registry.CodeInvalid,
			"shape is %v, the model wants %v with a leading case dimension", info.Shape, input.Shape)
	}
	for i, dim := range want {
		if got := info.Shape[len(info.Shape)-len(want)+i]; !iface.Allows(dim, got) {
			return registry.Errorf(registry.CodeInvalid, "shape is %v, the model wants %v", info.Shape, input.Shape)
		}
	}
	return nil
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
				return badTensors(fmt.Errorf("%s: %w", path, err))
			}
			if slices.ContainsFunc(row.Float64s(), math.IsNaN) {
				return registry.Errorf(registry.CodeInvalid, "%s: tensor %q: case %d has a NaN, which gives no range: leave the case out of calibration, or mend it", path, input.Name, i)
			}
		}
	}
	return nil
}
