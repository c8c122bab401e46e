package blob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Remover = (*Dir)(nil)

const (
	// awaitTimeout bounds the wait for permits. A process closes its permit within moments,
	// unless it is suspended.
	awaitTimeout = 10 * time.Second
	awaitPause   = 10 * time.Millisecond
)

// Permit locks the folder of all blobs, shared with other permits. A suspended process keeps
// the lock, so Await waits for it; a killed one loses it. This works between the processes of
// one machine.
func (dir *Dir) Permit(ctx context.Context) (storage.Permit, error) {
	folder := filepath.Join(dir.path, blobsFolder)
	if err := dir.makeFolder(folder); err != nil {
		return nil, dir.interpret("delete", "blobs", err)
	}
	f, err := dir.lockBlobs(ctx, folder, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	return permit{dir, f}, nil
}

// Await waits until no permit is open: it takes their lock exclusively and releases it.
func (dir *Dir) Await(ctx context.Context) error {
	f, err := dir.lockBlobs(ctx, filepath.Join(dir.path, blobsFolder), unix.LOCK_EX)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return dir.interpret("unlock", "blobs", f.Close())
}

// Repeatable is false: a file is unlinked once, under the permit's lock.
func (dir *Dir) Repeatable() bool { return false }

// lockBlobs opens and locks the folder of all blobs. Closing the file unlocks it.
func (dir *Dir) lockBlobs(ctx context.Context, folder string, how int) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(dir.interpret("lock", "blobs", err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(registry.WithHint(
				registry.Errorf(registry.CodeUnavailable,
					"another process has been deleting blobs in %s for more than %v: %w", dir.path, awaitTimeout, context.Cause(ctx)),
				"if that process is suspended, resume it or end it"), f.Close())
		case <-time.After(awaitPause):
		}
	}
}

// permit is the locked folder of all blobs.
type permit struct {
	dir    *Dir
	folder *os.File
}

func (p permit) Delete(ctx context.Context, d registry.Digest) error { return p.dir.Delete(ctx, d) }

func (p permit) Close() error { return p.folder.Close() }
