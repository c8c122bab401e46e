package blob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

func TestInterpretError(t *testing.T) {
	t.Parallel()
	dir := NewDir("data")
	for name, c := range map[string]struct {
		operation string
		err       error
		code      registry.Code
		says      string
	}{
		"full disk":   {"store", &os.PathError{Op: "write", Path: "data/incoming/x", Err: syscall.ENOSPC}, registry.CodeFull, "no space is left for data"},
		"quota":       {"store", syscall.EDQUOT, registry.CodeFull, "no space"},
		"permission":  {"store", syscall.EACCES, registry.CodeUnavailable, "must be writable"},
		"read-only":   {"store", syscall.EROFS, registry.CodeUnavailable, "must be writable"},
		"missing":     {"open", fs.ErrNotExist, registry.CodeNotFound, "not found"},
		"swept away":  {"store", fs.ErrNotExist, registry.CodeInternal, "store blob"},
		"coded":       {"store", registry.Errorf(registry.CodeDigest, "as it was"), registry.CodeDigest, "as it was"},
		"canceled":    {"store", context.Canceled, registry.CodeInternal, "canceled"},
		"other error": {"delete", errors.New("odd"), registry.CodeInternal, "delete blob sha256:"},
	} {
		err := dir.interpretError(c.operation, digest.FromString(""), c.err)
		if !errors.Is(err, c.err) && c.code != registry.CodeNotFound {
			t.Errorf("%s: the cause is lost: %v", name, err)
		}
		if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v (%s), want %q (%s)", name, err, registry.CodeOf(err), c.says, c.code)
		}
	}
	if err := dir.interpretError("store", digest.FromString(""), nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}
