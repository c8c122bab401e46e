package run

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// Graph reads the ONNX file of a model that is one.
func (l Loadable) Graph() (*onnx.Model, error) {
	for _, in := range l.Inputs {
		if in.Name == l.Entry {
			return ReadGraph(in.Path)
		}
	}
	return nil, registry.Errorf(registry.CodeInvalid, "the model has no file %s", l.Entry)
}

// Loadable is an engine on disk: its files, and which of them the runtime loads.
type Loadable struct {
	Entry  string // name of an input
	Inputs []toolchain.Input
	Alone  bool // in a process of its own
	// operators are the names of the inputs that are libraries of operators.
	Operators []string
}

// Size is what its files take, in bytes.
func (l Loadable) Size() int64 { return SizeOf(l.Inputs) }

// Loadable finds what the runtime of a toolchain loads in a part, after the format check for
// untrusted formats. Its inputs lie in a folder of the name of id.
func (m Material) Loadable(profile toolchain.Profile, id string) (Loadable, error) {
	profile, err := m.entryOf(profile, id)
	if err != nil {
		return Loadable{}, err
	}
	found := Loadable{}
	for _, f := range m.Files {
		if f.Kind == artifact.FileAsset {
			continue
		}
		file := filepath.Join(m.Dir, filepath.FromSlash(f.Path))
		if f.Kind == artifact.FileCode {
			// Code by nature: the manifest says so, and who reads it has checked that.
			in := toolchain.Input{Role: toolchain.RoleOperators,
				Name: path.Join(id, f.Path), Path: file, Digest: f.Digest, Size: f.Size}
			found.Inputs, found.Operators = append(found.Inputs, in), append(found.Operators, in.Name)
			continue
		}
		if err := CheckFormat(file, f.Path, profile); err != nil {
			return Loadable{}, err
		}
		in := toolchain.Input{Role: toolchain.RoleModel,
			Name: path.Join(id, f.Path), Path: file, Digest: f.Digest, Size: f.Size}
		if f.Path == profile.Entry {
			found.Entry, found.Alone = in.Name, profile.Alone
		}
		found.Inputs = append(found.Inputs, in)
	}
	if found.Entry == "" {
		return Loadable{}, registry.Errorf(registry.CodeInvalid,
			"%s has no file %s, which %s loads", id, profile.Entry, profile.Name)
	}
	return found, nil
}

// entryOf gives the profile with the entry that a part has. Errors: CodeInvalid if it has several.
func (m Material) entryOf(profile toolchain.Profile, id string) (toolchain.Profile, error) {
	found, entries := profile, []string(nil)
	for entry, of := range profile.Entries() {
		if slices.ContainsFunc(m.Files, func(f artifact.File) bool { return f.Kind == artifact.FileEngine && f.Path == entry }) {
			found, entries = of, append(entries, entry)
		}
	}
	if slices.Sort(entries); len(entries) > 1 {
		return toolchain.Profile{}, registry.Errorf(registry.CodeInvalid, "%s has the files %s, of which %s loads one: which of them is not said",
			id, strings.Join(entries, " and "), profile.Name)
	}
	return found, nil
}

// LoadableOutput finds it among files that a compiler just left.
func LoadableOutput(profile toolchain.Profile, id string, files []toolchain.OutputFile) (Loadable, error) {
	found := Loadable{}
	for _, f := range files {
		in := toolchain.Input{Role: toolchain.RoleModel,
			Name: path.Join(id, f.Name), Path: f.Path, Digest: f.Digest, Size: f.Size}
		if found.Inputs = append(found.Inputs, in); f.Name == profile.Entry {
			found.Entry = in.Name
		}
	}
	if found.Entry == "" {
		return Loadable{}, registry.Errorf(registry.CodeInternal, "%s left no %s", profile.Name, profile.Entry)
	}
	return found, nil
}

// CheckFormat lets a file of an engine pass: the one that is loaded must be in the format of
// the toolchain, the others must not be of a kind that runs code when it is loaded. Native code
// passes in engines that say that they hold it.
func CheckFormat(file, name string, profile toolchain.Profile) error {
	reading := profile.Reading
	if name == profile.Entry && reading.Kind != format.Unknown {
		return format.Check(file, reading.Kind, bound.Limits{})
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := (format.Gate{NativeCode: profile.NativeCode, Beside: onDisk}).CheckFile(f); err != nil || name != profile.Entry || !reading.Unpacked {
		return err
	}
	_, err = tie.Open(file, reading.Tie) // the loader unpacks it by the names of its entries
	return err
}

// onDisk is the size of a file that a model names, beside it on disk.
func onDisk(file string) (int64, bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}
