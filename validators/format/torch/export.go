// Package torch tells the zip archives of PyTorch apart.
package torch

import (
	"io"
	"path"
	"strings"

	"mlpromote.dev/mlpromote/validators/format/bound"
)

// IsExport reports whether the size bytes of r are an archive that torch.export.save wrote: one
// folder with the name of its format in archive_format, and a program in models
// (torch/export/pt2_archive/constants.py).
func IsExport(r io.ReaderAt, size int64) bool {
	archive, err := bound.Zip(r, size)
	if err != nil {
		return false
	}
	for _, f := range archive.File {
		folder, name := path.Split(f.Name)
		if name != "archive_format" || strings.Count(folder, "/") != 1 || f.UncompressedSize64 > 16 {
			continue
		}
		body, err := f.Open()
		if err != nil {
			return false
		}
		text, err := io.ReadAll(io.LimitReader(body, 16))
		_ = body.Close() // only read from
		if err != nil || string(text) != "pt2" {
			return false
		}
		for _, other := range archive.File {
			if strings.HasPrefix(other.Name, folder+"models/") && strings.HasSuffix(other.Name, ".json") {
				return true
			}
		}
	}
	return false
}
