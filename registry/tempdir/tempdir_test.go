package tempdir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/tempdir"
)

// holdIn is where a process of the test holds a folder until it is killed.
const holdIn = "TEMPDIR_TEST_HOLD"

func TestMain(m *testing.M) {
	if parent := os.Getenv(holdIn); parent != "" {
		d, err := tempdir.In(parent, "run-")
		if err == nil {
			err = os.WriteFile(filepath.Join(d.Path, "file"), []byte("x"), 0o600)
		}
		if err == nil {
			_, err = os.Stdout.WriteString(d.Path + "\n")
		}
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// What a killed process leaves is removed by the next folder that is made, and what a living one has is not.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holdIn+"="+parent)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	n, err := out.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	left := string(buffer[:n-1])
	others := map[string]bool{"other": true, "run-file": true, "run-link": true}
	if err := os.Mkdir(filepath.Join(parent, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "run-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", filepath.Join(parent, "run-link")); err != nil {
		t.Fatal(err)
	}
	own := in(t, parent)
	if !exists(filepath.Join(left, "file")) {
		t.Fatal("the folder of a process that lives is gone")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	second := in(t, parent)
	if exists(left) {
		t.Error("the folder of a process that was killed is still there")
	}
	for name := range others {
		if !exists(filepath.Join(parent, name)) {
			t.Errorf("%s is gone, which is no folder of a process", name)
		}
	}
	for _, d := range []*tempdir.Dir{own, second} {
		if !exists(d.Path) {
			t.Errorf("%s is gone, and this process has it", d.Path)
		}
		if err := d.Remove(); err != nil || exists(d.Path) {
			t.Errorf("removing %s: %v", d.Path, err)
		}
	}
}

func in(t *testing.T, parent string) *tempdir.Dir {
	t.Helper()
	d, err := tempdir.In(parent, "run-")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Folders that are made at the same time do not remove each other.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				d, err := tempdir.In(parent, "run-")
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(d.Path, "file"), []byte("x"), 0o600); err != nil {
					t.Errorf("a folder was removed that is in use: %v", err)
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left %v, error %v; want nothing", left, err)
	}
}

// New makes the folder where the system has such.
func TestNew(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := tempdir.New("verify")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(d.Path) != os.TempDir() || d.Remove() != nil {
		t.Errorf("%s, want a folder in %s that can be removed", d.Path, os.TempDir())
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := tempdir.New("verify"); err == nil {
		t.Error("no error where there is no folder for temporary files")
	}
}
