package torch

import (
	"io"
	"path"
	"strings"

	"mlpromote.dev/mlpromote/validators/format/bound"
)

// IsScript reports whether the size bytes of r are an archive that torch.jit.save wrote: one folder with
// data.pkl, constants.pkl and code (torch/csrc/jit/serialization/export_module.cpp).
func IsScript(r io.ReaderAt, size int64) bool {
	archive, err := bound.Zip(r, size)
	if err != nil {
		return false
	}
	var data, constants, code string // the folder that each is in
	for _, f := range archive.File {
		folder, name := path.Split(f.Name)
		top := strings.Count(folder, "/") == 1
		switch {
		case top && name == "data.pkl":
			data = folder
		case top && name == "constants.pkl":
			constants = folder
		case strings.HasSuffix(name, ".py") && strings.Contains(folder, "/code/"):
			code = folder[:strings.Index(folder, "/")+1]
		}
	}
	return data != "" && data == constants && data == code
}
