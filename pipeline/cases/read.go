package cases

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// Read reads every safetensors and npz file of a folder, in the order of their names, as one
// shard. role is [toolchain.RoleCases] or [toolchain.RoleCalibration]. Shards are named after it,
// so that the names of files do not change a digest. Read writes converted files into scratch.
// Errors: CodeInvalid for cases that do not fit the interface; CodeUnsafe for pickles.
func Read(files confined.Folder, folder, role string, iface validators.Interface, scratch string) (Set, error) {
	names, err := shardNames(files, folder)
	if err != nil {
		return Set{}, err
	}
	cs := Set{Record: artifact.CaseSet{Origin: artifact.OriginRecorded}}
	for i, name := range names {
		shard := fmt.Sprintf("%s-%05d.safetensors", role, i)
		f, err := files.Open(path.Join(folder, name))
		if err != nil {
			return Set{}, err
		}
		source := f.Name()
		if err := cs.noteTexts(f, iface); err != nil {
			return Set{}, errors.Join(err, f.Close())
		}
		if path.Ext(name) == ".npz" {
			if f, err = convertNpz(f, filepath.Join(scratch, shard)); err != nil {
				return Set{}, err
			}
		}
		if err := cs.take(role, shard, f, source, iface); err != nil {
			return Set{}, err
		}
	}
	if role == toolchain.RoleCalibration && cs.Record.Count == 1 {
		cs.Warnings = append(cs.Warnings,
			cs.from[0]+": one case is all of calibration, so an engine saturates on what lies outside its range: record a hundred or more")
	}
	return cs, nil
}

// noteTexts keeps the names of arrays of text, whose bytes are no numbers. Errors: CodeInvalid for one that is an input
// of numbers.
func (cs *Set) noteTexts(f *os.File, iface validators.Interface) error {
	texts, err := textsOf(f)
	for name := range texts {
		if input, ok := iface.Input(name); ok && input.DType != validators.Text {
			return registry.Errorf(registry.CodeInvalid, "%s: tensor %q is text, and the model wants %s", f.Name(), name, input.DType)
		}
		if cs.texts == nil {
			cs.texts = make(map[string]string)
		}
		cs.texts[name] = f.Name()
	}
	return err
}

// take checks a shard and adds it. It closes the file. Errors name source, the user's file,
// which the open one may be converted from.
func (cs *Set) take(role, name string, f *os.File, source string, iface validators.Interface) error {
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
	cs.Add(input, count)
	cs.from = append(cs.from, source)
	return nil
}

func shardNames(files confined.Folder, folder string) ([]string, error) {
	names, err := files.Names(folder)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "cases: %w", err)
	}
	all := slices.Sorted(slices.Values(names))
	names = slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return path.Ext(name) != ".safetensors" && path.Ext(name) != ".npz"
	})
	if len(names) > 0 {
		return names, nil
	}
	err = registry.Errorf(registry.CodeInvalid,
		"%s: no cases: want .safetensors or .npz files with tensors named as the model's inputs, with a leading case dimension", folder)
	for _, name := range all {
		if extension := strings.ToLower(path.Ext(name)); extension == spec.Parquet || extension == spec.CSV {
			return nil, registry.WithHint(err, "%s", spec.FromTable(path.Join(folder, name)))
		}
	}
	return nil, err
}
