package format

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
)

// savedModelFile is the file of a SavedModel that contains its graphs. The rest of the model is
// in the folders of its variables and assets (tensorflow/core/protobuf/saved_model.proto,
// tensorflow.org/guide/saved_model).
const savedModelFile = "saved_model.pb"

// maxSavedFiles is the maximum number of files of a SavedModel.
const maxSavedFiles = 1024

// CheckSavedModel checks the folder of a TensorFlow SavedModel. It returns the files that
// belong to the model, saved_model.pb first, as paths below dir with slashes. It ignores other
// files in the folder.
//
// If a graph or one of its functions has operators that access files, the network or Python,
// the error is [registry.CodeUnsafe]. The same applies to a link or a special file. A folder
// that is not a SavedModel, or is beyond lim, gives [registry.CodeInvalid].
func CheckSavedModel(dir string, lim Limits) ([]string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, registry.Errorf(registry.CodeInvalid, "%s is not a folder; name the one that has %s", dir, savedModelFile)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open model folder: %w", err)
	}
	defer root.Close()
	return CheckSavedModelIn(root, lim)
}

// CheckSavedModelIn does [CheckSavedModel] for an open folder.
func CheckSavedModelIn(root *os.Root, lim Limits) ([]string, error) {
	file := filepath.Join(root.Name(), savedModelFile)
	if info, err := root.Lstat(savedModelFile); err == nil && !info.Mode().IsRegular() {
		return nil, registry.Errorf(registry.CodeUnsafe,
			"%s is not a regular file (%v); replace it with the data itself", file, info.Mode().Type())
	}
	f, err := root.OpenFile(savedModelFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s cannot be read; check the path: %w", file, err)
	}
	defer f.Close()
	if err := CheckFile(f, SavedModel, lim); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	size := info.Size()
	ops, err := ReadSavedModel(f, size, lim)
	if err != nil {
		return nil, withPath(file, err)
	}
	if found := slices.DeleteFunc(slices.Sorted(maps.Keys(ops)),
		func(op string) bool { return !reachesOut(op) }); len(found) > 0 {
		return nil, registry.Errorf(registry.CodeUnsafe,
			"%s: its graph has %s, which can reach for files, the network or Python when the model is loaded or run; export the model without them",
			file, strings.Join(found, ", "))
	}
	return savedFiles(root, lim.withDefaults().MaxBytes-size)
}

// savedFiles lists the files of a SavedModel. Beside its graphs they may have at most the given
// number of bytes.
func savedFiles(root *os.Root, room int64) ([]string, error) {
	dir := root.Name()
	names := []string{savedModelFile}
	for _, folder := range []string{"assets", "variables"} {
		err := fs.WalkDir(root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case name == folder && errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return fmt.Errorf("look at model folder: %w", err)
			case entry.IsDir():
				return nil
			case !entry.Type().IsRegular():
				return registry.Errorf(registry.CodeUnsafe,
					"%s: %s is not a regular file or folder (%v); replace it with the data itself", dir, name, entry.Type())
			}
			info, err := entry.Info()
			if err != nil {
				return fmt.Errorf("look at model folder: %w", err)
			}
			names = append(names, path.Clean(name))
			if room -= info.Size(); room < 0 || len(names) > maxSavedFiles {
				return registry.Errorf(registry.CodeInvalid,
					"%s: with %s it has more than %d files, or more bytes than a model may have", dir, folder, maxSavedFiles)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// reaching are operators that open what their arguments name, or call Python. The operators
// with which every SavedModel saves and restores its own variables are not included.
var reaching = map[string]bool{
	"ReadFile": true, "WriteFile": true, "MatchingFiles": true, "PrintV2": true, "FileSystemSetConfiguration": true,
	"GeneratorDataset": true, "CSVDataset": true, "SqlDataset": true, "LMDBDataset": true, "TextLineDataset": true,
	"TFRecordDataset": true, "FixedLengthRecordDataset": true, "CacheDataset": true, "LoadDataset": true, "SaveDataset": true,
	"SnapshotDataset": true, "DataServiceDataset": true, "RegisterDataset": true, "DistributedSave": true, "MatchingFilesDataset": true,
	"WholeFileReader": true, "TextLineReader": true, "TFRecordReader": true, "FixedLengthRecordReader": true, "LMDBReader": true,
	"CreateSummaryFileWriter": true, "CreateSummaryDbWriter": true, "DebugIdentity": true, "DebugNanCount": true, "DebugNumericSummary": true,
	"PyFunc": true, "PyFuncStateless": true, "EagerPyFunc": true, "RemoteCall": true, "RpcCall": true, "RpcClient": true, "RpcServer": true,
}

// reachesOut reports whether an operator, in any version, is one of reaching.
func reachesOut(op string) bool {
	name := strings.TrimRight(op, "0123456789")
	return reaching[op] || reaching[strings.TrimSuffix(name, "V")] || strings.HasPrefix(op,
		"Experimental") && reaching[strings.TrimPrefix(name, "Experimental")]
}

// Paths of field numbers to the names of operators in a MetaGraphDef: to the nodes of the graph
// and of its functions, and from a node to its operator and to the functions that its
// attributes name, which may be operators too (graph.proto, function.proto, node_def.proto,
// attr_value.proto in tensorflow/core/framework).
var (
	toNodes     = [][]protowire.Number{{2, 1}, {2, 2, 1, 3}}
	toOperators = [][]protowire.Number{{2}, {5, 2, 10, 1}, {5, 2, 1, 9, 1}}
)

// ReadSavedModel counts the operators in the graphs and functions of a SavedModel's
// saved_model.pb, and all names at places where operators may be. Errors: CodeInvalid for bytes
// that are not a SavedModel with a graph, or are beyond lim; those of r without a code.
func ReadSavedModel(r io.ReaderAt, size int64, lim Limits) (map[string]int, error) {
	lim = lim.withDefaults()
	s := newScanner(r, size, lim)
	ops, graphs := make(map[string]int), 0
	count := func(f field) error {
		op, err := s.text(f)
		if err != nil {
			return err
		}
		if ops[op]++; ops[op] == 1 {
			return s.keep(f.at, int64(len(op)))
		}
		return nil
	}
	err := s.each(span{0, s.size}, "SavedModel", func(meta field) error {
		if meta.num != 2 || meta.typ != protowire.BytesType {
			return nil
		}
		graphs++
		for _, nodes := range toNodes {
			for _, operators := range toOperators {
				if err := s.descend("SavedModel", meta.span, slices.Concat(nodes, operators), count); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil && graphs == 0 {
		err = registry.Errorf(registry.CodeInvalid, "a SavedModel without a graph; save it again")
	}
	if err != nil {
		return nil, err
	}
	return ops, nil
}
