package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is the interval between attempts to take a lock.
const lockPoll = 50 * time.Millisecond

// ErrLocked means that another process has the lock.
var ErrLocked = errors.New("another process has the lock")

// LockFile takes the file lock of path, exclusively or shared with others. It calls waiting,
// which may be nil, once if another process holds the lock. The operating system releases the
// lock when the process ends.
func LockFile(ctx context.Context, path string, alone bool, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for first := true; ; first = false {
		unlock, err := TryLockFile(path, alone)
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// TryLockFile is [LockFile] without waiting. Errors: ErrLocked.
func TryLockFile(path string, alone bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if errors.Is(err, os.ErrPermission) && !alone {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// A child process that is just being started has a copy of f, so closing alone would leave the
	// file locked until that child runs its program.
	return func() { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN); f.Close() }, nil
}
