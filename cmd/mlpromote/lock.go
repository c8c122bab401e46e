package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
)

// lockFile is what processes on one data directory agree on. Verbs share it; a service
// has it to itself and writes its URL into it.
const lockFile = "lock"

// lockShared lets other verbs in and services out. It gives what ends that.
func lockShared(dir string) (func() error, error) {
	f, err := openLock(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		return f.Close, nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(registry.Errorf(registry.CodeUnavailable, "lock %s: %w", f.Name(), err), f.Close())
	}
	url := servedAt(f)
	return nil, errors.Join(registry.WithHint(
		registry.Errorf(registry.CodeUnavailable, "%s is served at %s, which has it to itself", dir, url),
		"--registry %s, or MLPROMOTE_REGISTRY=%s", url, url), f.Close())
}

// lockExclusive keeps everybody else out as long as the service runs. announce writes
// where it is.
func lockExclusive(dir string) (announce func(url string) error, unlock func() error, err error) {
	f, err := openLock(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		text := "%s is in use by another process: stop it, or wait until it is done"
		if url := servedAt(f); url != "" {
			text += " (a service at " + url + ")"
		}
		return nil, nil, errors.Join(registry.Errorf(registry.CodeUnavailable, text, dir), f.Close())
	}
	announce = func(url string) error {
		if err := f.Truncate(0); err != nil {
			return err
		}
		_, err := f.WriteAt([]byte(url+"\n"), 0)
		return err
	}
	return announce, func() error { return errors.Join(f.Truncate(0), f.Close()) }, nil
}

func openLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "open the data directory: %w", err)
	}
	return f, nil
}

// servedAt reads where the service is that holds the lock.
func servedAt(f *os.File) string {
	text := make([]byte, 512)
	n, _ := f.ReadAt(text, 0)
	return strings.TrimSpace(string(text[:n]))
}
