package datadir

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
)

// lockPause is the time between two attempts to lock.
const lockPause = 50 * time.Millisecond

// LockShared locks the directory for a command. Other commands may use it too, but not a
// service. unlock releases the lock. While another process, such as a collection, has an
// exclusive lock, LockShared waits and calls waiting once with the reason. Errors:
// CodeUnavailable if a service uses the directory.
func (d Dir) LockShared(ctx context.Context, waiting func(why string)) (unlock func() error, err error) {
	f, err := d.openLock()
	if err != nil {
		return nil, err
	}
	err = d.wait(ctx, waiting, func() (busy string, err error) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return "", lockFailed(f, err)
		}
		if url := servedAt(f); url != "" {
			return "", registry.WithHint(
				registry.Lastingf(registry.CodeUnavailable, "%s is served at %s, which uses it exclusively", d.Path, url),
				"use --registry %s, or MLPROMOTE_REGISTRY=%s", url, url)
		}
		return d.Path + " is locked by a collection, or by a service that is starting or stopping", nil
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// LockExclusive locks out all other processes. announce writes the address at which the
// directory is served. While commands use the directory LockExclusive waits, and calls waiting
// once with the reason; with a nil waiting it fails at once. Errors: CodeUnavailable if the
// directory is served, or in use.
func (d Dir) LockExclusive(
	ctx context.Context,
	waiting func(why string),
) (announce func(url string) error, unlock func() error, err error) {
	f, err := d.openLock()
	if err != nil {
		return nil, nil, err
	}
	err = d.wait(ctx, waiting, func() (busy string, err error) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return "", lockFailed(f, err)
		}
		return d.inUse(f)
	})
	if err == nil {
		err = lockFailed(f, f.Truncate(0)) // a killed service leaves its address there
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	announce = func(url string) error {
		_, err := f.WriteAt([]byte(url+"\n"), 0)
		return err
	}
	return announce, func() error { return errors.Join(f.Truncate(0), f.Close()) }, nil
}

// wait calls try until it returns an error or is no longer busy.
func (d Dir) wait(ctx context.Context, waiting func(why string), try func() (busy string, err error)) error {
	ticker := time.NewTicker(lockPause)
	defer ticker.Stop()
	for told := false; ; {
		busy, err := try()
		if err != nil || busy == "" {
			return err
		}
		if waiting == nil {
			return registry.Errorf(registry.CodeUnavailable, "%s: wait until it ends", busy)
		}
		if !told {
			waiting(busy)
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// inUse says what uses the directory. It returns an error for a service. Commands are
// recognized by their shared lock, because the file may still have the address of a killed
// service.
func (d Dir) inUse(f *os.File) (busy string, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		return d.Path + " is in use by another process", lockFailed(f, err)
	}
	url := servedAt(f)
	if url == "" {
		return d.Path + " is in use by another process", nil
	}
	return "", registry.WithHint(
		registry.Lastingf(registry.CodeUnavailable, "%s is already served at %s", d.Path, url),
		"stop that service first, or use %s", url)
}

func lockFailed(f *os.File, err error) error {
	if err == nil {
		return nil
	}
	return registry.Errorf(registry.CodeUnavailable, "lock %s: %w", f.Name(), err)
}

func (d Dir) openLock() (*os.File, error) {
	f, err := os.OpenFile(d.file(LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if full := d.interpret(err); registry.HasCode(full, registry.CodeFull) {
			return nil, full
		}
		if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
			return nil, registry.WithHint(
				registry.Errorf(registry.CodeUnavailable, "data directory %s: this user cannot write %s: %w", d.Path,
					LockFile, err),
				"reading also locks the directory: run this as the directory's user, or serve it and use --registry",
			)
		}
		return nil, registry.Errorf(registry.CodeUnavailable, "open the data directory: %w", err)
	}
	return f, nil
}

// servedAt reads the address of the service that holds the lock.
func servedAt(f *os.File) string {
	text := make([]byte, 512)
	n, _ := f.ReadAt(text, 0)
	return strings.TrimSpace(string(text[:n]))
}
