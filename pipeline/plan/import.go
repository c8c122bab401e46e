package plan

import (
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// NewImport returns how files of a format are imported by a toolchain with options.
func NewImport(format string, tool toolchain.Identity,
	options map[string]any, files []toolchain.Input) (*Import, error) {
	digest, err := registry.CanonicalDigest(options)
	return &Import{
		Format: format, Driver: tool.Code, Options: options, Files: Files(files),
		Toolchain: artifact.Toolchain{Name: tool.Name, Version: tool.Version, Lock: tool.Lock, Options: digest},
	}, err
}
