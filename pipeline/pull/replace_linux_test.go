package pull_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// TestPullOntoMountPoint refuses what could not be replaced in the end, before anything is
// asked of the registry: the Puller has none.
func TestPullOntoMountPoint(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]func(dir string) error{
		"a file system":                    func(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") },
		"a folder of the same file system": func(dir string) error { return unix.Mount(filepath.Dir(dir), dir, "", unix.MS_BIND, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := mount(dir); err != nil {
				t.Skipf("nothing can be mounted here: %v", err)
			}
			t.Cleanup(func() {
				if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			_, err := pull.Puller{}.Pull(t.Context(), api.ResolveQuery{}, dir, pull.Expectation{})
			if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "is a mount point") {
				t.Errorf("error %v, want CodeInvalid and that it is a mount point", err)
			}
		})
	}
}

// A pull to where nothing can be written says so, although the registry answers.
func TestPullToWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"no folder beside it can be made": "/proc/engine",
		"no folder above it can be made":  "/proc/models/engine",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.Promoted(t, registrytest.Build{})
			w.Step = func(string) func(error) {
				t.Error("a download began, want an error before it")
				return func(error) {}
			}
			if _, err := w.Pull(t.Context(), query("prod"), dir, pull.Expectation{}); err == nil {
				t.Error("the pull succeeds, want an error")
			}
		})
	}
}

// A folder that cannot be exchanged stays as it is, and the pull says that it failed.
func TestPullOntoWhatCannotBeExchanged(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	freeze(t, w.dir)
	before := tree(t, filepath.Dir(w.dir))
	_, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if err == nil || !strings.Contains(err.Error(), "exchange") {
		t.Errorf("error %v, want that the exchange failed", err)
	}
	if after := tree(t, filepath.Dir(w.dir)); !slices.Equal(before, after) {
		t.Errorf("%q became %q, want it untouched", before, after)
	}
}

// A folder that cannot be put in place is not said to be pulled.
func TestPullOfAFolderThatCannotBeMoved(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	_, err := w.afterCheck(func(staged string) error {
		freeze(t, staged)
		return nil
	}).Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v, want that it is not permitted", err)
	}
	if _, err := os.Stat(w.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder after it: %v, want none", err)
	}
}

// immutable is FS_IMMUTABLE_FL of linux/fs.h.
const immutable = 0x10

// freeze makes a folder immutable until the end of the test.
func freeze(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|immutable)
	}
	if err != nil {
		t.Skipf("no folder can be made immutable here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
			t.Error(err)
		}
		f.Close()
	})
}
