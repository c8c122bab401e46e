package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
)

// lockFile is what processes on one data directory agree on. Verbs share it, but for gc; a
// service has it to itself and writes its URL into it.
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
		return nil, errors.Join(lockFailed(f, err), f.Close())
	}
	url := servedAt(f)
	if url == "" {
		return nil, errors.Join(registry.Errorf(registry.CodeUnavailable, "%s belongs to a collection, or to a service that is just starting or stopping: try again", dir), f.Close())
	}
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
		return nil, nil, errors.Join(inUse(dir, f, err), f.Close())
	}
	if err := f.Truncate(0); err != nil { // what a service left that was killed
		return nil, nil, errors.Join(lockFailed(f, err), f.Close())
	}
	announce = func(url string) error {
		_, err := f.WriteAt([]byte(url+"\n"), 0)
		return err
	}
	return announce, func() error { return errors.Join(f.Truncate(0), f.Close()) }, nil
}

// inUse says who has the directory: a service, or verbs, which can share it. Verbs leave
// the file as a service that was killed left it.
func inUse(dir string, f *os.File, cause error) error {
	if !errors.Is(cause, unix.EWOULDBLOCK) {
		return lockFailed(f, cause)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil || servedAt(f) == "" {
		return registry.Errorf(registry.CodeUnavailable, "%s is in use by another process: wait until it is done", dir)
	}
	url := servedAt(f)
	return registry.WithHint(registry.Errorf(registry.CodeUnavailable, "%s is served already, at %s", dir, url), "stop that service first, or use %s", url)
}

func lockFailed(f *os.File, err error) error {
	return registry.Errorf(registry.CodeUnavailable, "lock %s: %w", f.Name(), err)
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
