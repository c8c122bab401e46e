package driverproc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What a driver says of its progress is read, and a file that is something else says nothing, waits for
// nobody and leads nowhere.
func TestReadProgress(t *testing.T) {
	t.Parallel()
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for name, c := range map[string]struct {
		make     func(path string) error
		done, of int
		ok       bool
	}{
		"half way":         {write("120 600\n"), 120, 600, true},
		"all":              {write("600 600\n"), 600, 600, true},
		"nothing yet":      {write(""), 0, 0, false},
		"more than all":    {write("601 600\n"), 0, 0, false},
		"a negative count": {write("-1 600\n"), 0, 0, false},
		"no numbers":       {write("soon\n"), 0, 0, false},
		"no file":          {func(string) error { return nil }, 0, 0, false},
		"a pipe":           {func(path string) error { return syscall.Mkfifo(path, 0o600) }, 0, 0, false},
		"a link": {func(path string) error {
			if err := os.WriteFile(path+"-other", []byte("1 2\n"), 0o600); err != nil {
				return err
			}
			return os.Symlink(path+"-other", path)
		}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "progress")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			done, of, ok := readProgress(path)
			if ok != c.ok || (ok && (done != c.done || of != c.of)) {
				t.Errorf("read %d of %d, %t; want %d of %d, %t", done, of, ok, c.done, c.of, c.ok)
			}
		})
	}
}
