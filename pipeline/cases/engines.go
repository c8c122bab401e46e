package cases

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Cases keep the numbers that the user gave, and the framework of the model runs on these. Engines take the types of
// the interface, so they run on converted copies. What the conversion changes is thereby part of what engines are
// compared on.

// Convert makes copies of the shards with the types of the interface, in a new folder dir, if some shard has others.
// [Set.Engines] returns them, and [Set.Changed] has the cases that the conversion changed. Errors: CodeInvalid for a
// value that the type does not hold.
func (cs *Set) Convert(iface validators.Interface, dir string) error {
	needed, err := cs.needsConversion(iface)
	if err != nil || !needed {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	cs.Changed = make(map[int]bool)
	for i, in := range cs.Files {
		to := filepath.Join(dir, filepath.FromSlash(in.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := cs.convertShard(in, cs.Record.Shards[i], iface, to); err != nil {
			return registry.Errorf(registry.CodeOf(err), "convert %s for engines: %w", in.Name, err)
		}
		converted, err := toolchain.FileInput(in.Role, in.Name, to)
		if err != nil {
			return err
		}
		cs.converted = append(cs.converted, converted)
	}
	return nil
}

// Engines returns the files that engines run on: the converted ones, or the files of the set if they have the types of
// the interface.
func (cs *Set) Engines() []toolchain.Input {
	if cs.converted != nil {
		return cs.converted
	}
	return cs.Files
}

// Converted reports whether engines run on converted files.
func (cs *Set) Converted() bool { return cs.converted != nil }

// MostRounded names the input or column that loses most by the conversion; empty if none loses anything.
func (cs *Set) MostRounded() string { return cs.rounded.most() }

func (cs *Set) needsConversion(iface validators.Interface) (bool, error) {
	for _, in := range cs.Files {
		f, err := openShard(in)
		if err != nil {
			return false, err
		}
		needed := false
		for _, input := range iface.Inputs {
			stored, _ := input.Stored()
			info, ok := f.Info(input.Name)
			needed = needed || ok && info.DType != stored
		}
		if err := f.Close(); err != nil || needed {
			return needed, err
		}
	}
	return false, nil
}

// convertShard writes a shard with the types of the interface, and notes the cases that changed.
func (cs *Set) convertShard(in toolchain.Input, of artifact.Shard, iface validators.Interface, to string) (err error) {
	f, err := openShard(in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tensors := make(map[string]tensor.Tensor)
	for _, name := range f.Names() {
		t, err := f.Tensor(name)
		if err != nil {
			return TensorError(err)
		}
		input, ok := iface.Input(name)
		if stored, _ := input.Stored(); ok && stored != t.DType {
			given := t
			if t, err = castTo(given, stored); err != nil {
				return fmt.Errorf("tensor %q: %w", name, err)
			}
			cs.rounded.note(input, given, t)
			eachChanged(given, t, func(i int) { cs.Changed[of.First+i/max(given.Len()/of.Count, 1)] = true })
		}
		tensors[name] = t
	}
	return WriteShard(to, tensors)
}
