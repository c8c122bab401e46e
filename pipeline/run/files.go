package run

import (
	"bytes"
	"io"
	"os"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// SizeOf is what files take, in bytes.
func SizeOf(files []toolchain.Input) int64 {
	var n int64
	for _, f := range files {
		n += f.Size
	}
	return n
}

// BytesFile is a file of these bytes, in memory.
func BytesFile(name string, d registry.Digest, data []byte) storage.PartFile {
	return storage.PartFile{
		File: artifact.File{Path: name, Digest: d, Size: int64(len(data))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// DiskFile is a file of a folder, opened again by its path.
func DiskFile(name, path string, d registry.Digest, size int64) storage.PartFile {
	return storage.PartFile{
		File: artifact.File{Path: name, Digest: d, Size: size},
		Open: func() (io.ReadCloser, error) { return os.Open(path) },
	}
}

// SettledFile is a file that a finished step wrote. It does not change any more.
func SettledFile(name, path string, d registry.Digest, size int64) storage.PartFile {
	return storage.PartFile{
		File: artifact.File{Path: name, Digest: d, Size: size},
		Open: func() (io.ReadCloser, error) {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			return storage.Settled{File: f}, nil
		},
	}
}

// InputFile is the file of an input, opened again through [toolchain.Input.Open].
func InputFile(in toolchain.Input) storage.PartFile {
	return storage.PartFile{
		File: artifact.File{Path: in.Name, Digest: in.Digest, Size: in.Size},
		Open: func() (io.ReadCloser, error) { return in.Open() },
	}
}

// InputFiles is [InputFile] of each input, in order.
func InputFiles(inputs []toolchain.Input) []storage.PartFile {
	files := make([]storage.PartFile, len(inputs))
	for i, in := range inputs {
		files[i] = InputFile(in)
	}
	return files
}

// OutputFiles is [SettledFile] of each output, in order.
func OutputFiles(outputs []toolchain.OutputFile) []storage.PartFile {
	files := make([]storage.PartFile, len(outputs))
	for i, out := range outputs {
		files[i] = SettledFile(out.Name, out.Path, out.Digest, out.Size)
	}
	return files
}

// ShardFiles is [SettledFile] of each output, in order, under the names of the shards of the set. There are as many.
func ShardFiles(set artifact.CaseSet, outputs []toolchain.OutputFile) []storage.PartFile {
	files := make([]storage.PartFile, len(outputs))
	for i, out := range outputs {
		files[i] = SettledFile(set.Shards[i].File, out.Path, out.Digest, out.Size)
	}
	return files
}
