package cases

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// labelNames are the tensors that are taken for labels where the spec names none.
var labelNames = []string{"label", "labels"}

// Folder is a folder of cases that more are added to. The zero Folder is empty.
type Folder struct {
	Count     int    // cases
	Next      int    // number of the next shard
	Signature string // of the cases, see [Row.Signature]; empty without any
	Shards    []string
}

// Look finds the content of a folder. Without add it refuses a folder that holds anything. With add it takes
// shards that this program wrote. Errors: CodeInvalid.
func Look(folder string, add bool) (Folder, error) {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return Folder{}, nil
	case errors.Is(err, syscall.ENOTDIR):
		return Folder{}, registry.Errorf(registry.CodeInvalid, "cases are written to the folder %s, and %s is a file: rename it", folder, folder)
	case err != nil:
		return Folder{}, registry.Errorf(registry.CodeInvalid, "cases are written to the folder %s: %w", folder, err)
	case !add:
		return Folder{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "cases are written to the folder %s, which is not empty: it holds %s", folder, entries[0].Name()),
			"move its files to another folder, also the file with the cases; a folder of cases goes into the spec as it is: cases: {path: %s/}",
			filepath.Base(folder))
	}
	var f Folder
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || filepath.Ext(name) != shardSuffix && filepath.Ext(name) != ".npz" {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, shardPrefix), shardSuffix))
		if err != nil || name != shardName(number) {
			return Folder{}, registry.WithHint(
				registry.Errorf(registry.CodeInvalid, "%s: cases are added to shards of this program, such as %s", filepath.Join(folder, name), shardName(0)),
				"record to another folder")
		}
		if err := f.add(filepath.Join(folder, name)); err != nil {
			return Folder{}, err
		}
		f.Next = max(f.Next, number+1)
	}
	return f, nil
}

func (f *Folder) add(path string) error {
	s, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return badCases(path, err)
	}
	defer s.Close()
	rows := make(Row)
	count := int64(-1)
	for _, name := range s.Names() {
		info, _ := s.Info(name)
		if len(info.Shape) == 0 || count >= 0 && info.Shape[0] != count {
			return registry.Errorf(registry.CodeInvalid, "%s: tensor %q has the shape %v: want a row for each case", path, name, info.Shape)
		}
		count = info.Shape[0]
		rows[name] = tensor.Tensor{DType: info.DType, Shape: info.Shape}
	}
	signature := rows.Signature()
	if f.Signature != "" && f.Signature != signature {
		return registry.Errorf(registry.CodeInvalid, "%s: the cases are %s, and cases of other files are %s", path, signature, f.Signature)
	}
	f.Signature = signature
	f.Count += int(max(count, 0))
	f.Shards = append(f.Shards, path)
	return nil
}

// EachRow reads the cases of files, one at a time. Files are safetensors, or npz, which are read as a whole.
func EachRow(paths []string, each func(Row) error) error {
	for _, path := range paths {
		if err := eachRowOf(path, each); err != nil {
			return err
		}
	}
	return nil
}

func eachRowOf(path string, each func(Row) error) error {
	s, err := openRows(path)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }() // it was only read
	for at := range s.count {
		row := make(Row, len(s.names))
		for _, name := range s.names {
			if row[name], err = s.rows(name, at); err != nil {
				return badCases(path, err)
			}
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

// rowFile is a file of cases that is read row by row.
type rowFile struct {
	names []string
	count int64
	rows  func(name string, at int64) (tensor.Tensor, error)
	close func() error
}

func openRows(path string) (rowFile, error) {
	f := rowFile{close: func() error { return nil }}
	var info func(name string) tensor.Info
	if strings.ToLower(filepath.Ext(path)) == ".npz" {
		tensors, err := readNpz(path)
		if err != nil {
			return rowFile{}, err
		}
		for name := range tensors {
			f.names = append(f.names, name)
		}
		slices.Sort(f.names)
		f.rows = func(name string, at int64) (tensor.Tensor, error) { return tensors[name].Rows(at, at+1) }
		info = func(name string) tensor.Info { return tensors[name].Info() }
	} else {
		s, err := tensorfile.Open(path, tensorfile.Limits{})
		if err != nil {
			return rowFile{}, badCases(path, err)
		}
		f.names, f.close = s.Names(), s.Close
		f.rows = func(name string, at int64) (tensor.Tensor, error) { return s.Rows(name, at, at+1) }
		info = func(name string) tensor.Info { i, _ := s.Info(name); return i }
	}
	f.count = -1
	for _, name := range f.names {
		shape := info(name).Shape
		if len(shape) == 0 || f.count >= 0 && shape[0] != f.count {
			return rowFile{}, errors.Join(registry.Errorf(registry.CodeInvalid,
				"%s: tensor %q has the shape %v: want a row for each case", path, name, shape), f.close())
		}
		f.count = shape[0]
	}
	if f.count < 1 {
		return rowFile{}, errors.Join(registry.Errorf(registry.CodeInvalid, "%s: no cases", path), f.close())
	}
	return f, nil
}

func readNpz(path string) (map[string]tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, badCases(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tensors, err := tensorfile.ReadNpz(f, info.Size(), tensorfile.Limits{})
	if err != nil {
		return nil, badCases(path, err)
	}
	return tensors, nil
}

// textsOf are the names of the arrays of an npz file that are text; none for other files.
func textsOf(f *os.File) (map[string]bool, error) {
	if strings.ToLower(filepath.Ext(f.Name())) != ".npz" {
		return nil, nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	texts, err := tensorfile.NpzTexts(f, info.Size(), tensorfile.Limits{})
	return texts, badCases(f.Name(), err)
}

// FilesOf lists the files of cases in a folder, in the order in which a spec reads them. Errors:
// CodeInvalid if there are none.
func FilesOf(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "cases: %w", err)
	}
	var files []string
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		info, err := os.Stat(path)
		extension := filepath.Ext(entry.Name())
		if err == nil && info.Mode().IsRegular() && (extension == shardSuffix || extension == ".npz") {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: no cases: want .safetensors or .npz files", folder)
	}
	slices.Sort(files)
	return files, nil
}

// IsInput tells the inputs of cases without a model: all but labels and outputs of a
// service. labels is the name of the labels, or empty.
func IsInput(labels string) func(name string) bool {
	return func(name string) bool {
		return name != labels && !IsOutput(name) && !slices.Contains(labelNames, name)
	}
}
