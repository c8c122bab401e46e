package export

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// Write writes a file that readers see whole or not at all. Errors: CodeInvalid.
func Write(path string, data []byte) error {
	if err := atomicfile.Write(path, data, 0o644); err != nil {
		return registry.Errorf(registry.CodeInvalid, "write %s: %w", path, err)
	}
	return nil
}
