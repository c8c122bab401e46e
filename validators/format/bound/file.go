package bound

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"mlpromote.dev/mlpromote/registry"
)

// Open opens a file. It does not block on a pipe.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: there is no such file; check the path", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open model file: %w", err)
	}
	return f, nil
}

// InFile adds the file's name to an error and keeps the error's code.
func InFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return registry.Errorf(registry.CodeOf(err), "%s: %w", path, err)
}
