package blob

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
)

// interpretError converts a failure of the file system to an error of the port. It returns nil
// and errors with a code unchanged.
func (dir *Dir) interpretError(operation string, d registry.Digest, err error) error {
	return dir.interpret(operation, "blob "+string(d), err)
}

func (dir *Dir) interpret(operation, subject string, err error) error {
	var coded *registry.Error
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist) && operation == "open":
		return registry.ForClients(registry.Errorf(registry.CodeNotFound,
			"%s: not found in %s", subject, dir.path), "%s: not found", subject)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		full := registry.WithHint(
			registry.Errorf(registry.CodeFull, "%s %s: no space is left for %s; nothing was stored: %w", operation, subject, dir.path, err),
			"free space there or use another data folder, then run the command again")
		return registry.ForClients(full, "%s %s: no space is left; nothing was stored; free space there and try again", operation, subject)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		denied := registry.Lastingf(registry.CodeUnavailable,
			"%s %s: %s must be writable and readable by this user: %w", operation, subject, dir.path, err)
		return registry.ForClients(denied, "%s %s: the storage refuses it; try again", operation, subject)
	}
	return registry.Errorf(registry.CodeInternal, "%s %s: %w", operation, subject, err)
}

// interpretError is interpretError of the directory, for uploads.
func (u *Uploads) interpretError(operation, id string, err error) error {
	var coded *registry.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return registry.Errorf(registry.CodeNotFound,
			"upload %s: not found; it has ended, or was idle for more than %v: begin a new one", id, LeftoverAge)
	case errors.Is(err, unix.EWOULDBLOCK):
		return registry.Errorf(registry.CodeConflict, "upload %s: another request is writing it; send one chunk at a time", id)
	}
	return u.dir.interpret(operation, "upload "+id, err)
}
