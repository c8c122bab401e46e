package run

import (
	"bytes"
	"io"
	"os"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
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
func BytesFile(name string, d registry.Digest, data []byte) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: name, Digest: d, Size: int64(len(data))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

func DiskFile(name, path string, d registry.Digest, size int64) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: name, Digest: d, Size: size},
		Open: func() (io.ReadCloser, error) { return os.Open(path) },
	}
}

// SettledFile is a file that a finished step wrote. It does not change any more.
func SettledFile(name, path string, d registry.Digest, size int64) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: name, Digest: d, Size: size},
		Open: func() (io.ReadCloser, error) {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			return registry.Settled{File: f}, nil
		},
	}
}

// InputFile is the file of an input, opened again through [toolchain.Input.Open].
func InputFile(in toolchain.Input) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: in.Name, Digest: in.Digest, Size: in.Size},
		Open: func() (io.ReadCloser, error) { return in.Open() },
	}
}

func InputFiles(inputs []toolchain.Input) []registry.PartFile {
	files := make([]registry.PartFile, len(inputs))
	for i, in := range inputs {
		files[i] = InputFile(in)
	}
	return files
}

func OutputFiles(outputs []toolchain.OutputFile) []registry.PartFile {
	files := make([]registry.PartFile, len(outputs))
	for i, out := range outputs {
		files[i] = SettledFile(out.Name, out.Path, out.Digest, out.Size)
	}
	return files
}

func ShardFiles(set registry.CaseSet, outputs []toolchain.OutputFile) []registry.PartFile {
	files := make([]registry.PartFile, len(outputs))
	for i, out := range outputs {
		files[i] = SettledFile(set.Shards[i].File, out.Path, out.Digest, out.Size)
	}
	return files
}
