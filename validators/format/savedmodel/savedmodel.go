// Package savedmodel checks the folders of TensorFlow SavedModels.
package savedmodel

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
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// graphFile is the file of a SavedModel that contains its graphs. The rest of the model is
// in the folders of its variables and assets (tensorflow/core/protobuf/saved_model.proto,
// tensorflow.org/guide/saved_model).
const graphFile = "saved_model.pb"

// maxFiles is the maximum number of files of a SavedModel.
const maxFiles = 1024

// Check checks the folder of a TensorFlow SavedModel. It returns the files that
// belong to the model, saved_model.pb first, as paths below dir with slashes. It ignores other
// files in the folder.
//
// If a graph or a function in it has operators that access files, the network or Python,
// the error is [registry.CodeUnsafe]. The same applies to a link or a special file. A folder
// that is not a SavedModel, or is beyond lim, is refused with [registry.CodeInvalid].
func Check(dir string, lim bound.Limits) ([]string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, registry.Errorf(registry.CodeInvalid, "%s is not a folder; name the one that has %s", dir, graphFile)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open model folder: %w", err)
	}
	defer root.Close()
	return CheckIn(root, lim)
}

// CheckIn does [Check] for an open folder.
func CheckIn(root *os.Root, lim bound.Limits) ([]string, error) {
	file := filepath.Join(root.Name(), graphFile)
	if info, err := root.Lstat(graphFile); err == nil && !info.Mode().IsRegular() {
		return nil, registry.Errorf(registry.CodeUnsafe,
			"%s is not a regular file (%v); replace it with the data itself", file, info.Mode().Type())
	}
	f, err := root.OpenFile(graphFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s cannot be read; check the path: %w", file, err)
	}
	defer f.Close()
	if err := format.CheckFile(f, format.SavedModel, lim); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	size := info.Size()
	ops, err := Read(f, size, lim)
	if err != nil {
		return nil, bound.InFile(file, err)
	}
	if found := slices.DeleteFunc(slices.Sorted(maps.Keys(ops)),
		func(op string) bool { return !reachesOut(op) }); len(found) > 0 {
		return nil, registry.Errorf(registry.CodeUnsafe,
			"%s: its graph has %s, which can reach for files, the network or Python when the model is loaded or run; export the model without them",
			file, strings.Join(found, ", "))
	}
	return listFiles(root, lim.WithDefaults().MaxBytes-size)
}

// listFiles lists the files of a SavedModel. Beside its graphs they may have at most the given
// number of bytes.
func listFiles(root *os.Root, room int64) ([]string, error) {
	dir := root.Name()
	names := []string{graphFile}
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
			if room -= info.Size(); room < 0 || len(names) > maxFiles {
				return registry.Errorf(registry.CodeInvalid,
					"%s: with %s it has more than %d files, or more bytes than a model may have", dir, folder, maxFiles)
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

// Read counts the operators in the graphs and functions of a SavedModel's
// saved_model.pb, and all names at places where operators may be. Errors: CodeInvalid for bytes
// that are not a SavedModel with a graph, or are beyond lim; errors of r have no code.
func Read(r io.ReaderAt, size int64, lim bound.Limits) (map[string]int, error) {
	lim = lim.WithDefaults()
	s := protobuf.NewScanner(r, size, lim)
	ops, graphs := make(map[string]int), 0
	count := func(f protobuf.Field) error {
		op, err := s.Text(f)
		if err != nil {
			return err
		}
		if ops[op]++; ops[op] == 1 {
			return s.Keep(f.At, int64(len(op)))
		}
		return nil
	}
	err := s.Each(s.All(), "SavedModel", func(meta protobuf.Field) error {
		if meta.Num != 2 || meta.Type != protowire.BytesType {
			return nil
		}
		graphs++
		for _, nodes := range toNodes {
			for _, operators := range toOperators {
				if err := s.Descend("SavedModel", meta.Span, slices.Concat(nodes, operators), count); err != nil {
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
