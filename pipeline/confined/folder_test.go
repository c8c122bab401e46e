package confined_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/registry"
)

// place makes a project with the names that a hostile spec would use, and a folder outside of
// it.
func place(t *testing.T) (project string) {
	t.Helper()
	dir := t.TempDir()
	project = filepath.Join(dir, "project")
	for _, folder := range []string{"outside/keys", "project/data/deep", "project/.mlpromote/keys", "project/signing"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{"outside/secret", "project/own", "project/data/deep/own", "project/.mlpromote/keys/local.key", "project/signing/builder.key"}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(filepath.Base(file)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"project/file-out": "../outside/secret", "project/folder-out": "../outside", "project/data/deep/out": "../../../outside",
		"project/absolute": filepath.Join(dir, "project", "own"), "project/inside": "data/deep", "project/data/up": "../own",
		"project/to-key": ".mlpromote/keys/local.key", "project/to-keys": "signing", "project/loop": "loop", "project/dangling": "nothing",
		"project/environ": "/proc/self/environ", "project/back": "../project/own",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return project
}

func TestOpen(t *testing.T) {
	t.Parallel()
	project := place(t)
	if err := syscall.Mkfifo(filepath.Join(project, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	if socket, err := net.Listen("unix", filepath.Join(project, "socket")); err == nil {
		t.Cleanup(func() { socket.Close() })
	}
	for name, of := range map[string]string{"hard-link": "signing/builder.key", "twice": "data/deep/own"} {
		if err := os.Link(filepath.Join(project, of), filepath.Join(project, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := confined.New(project, "the folder of the spec", filepath.Join(project, "signing"), filepath.Join(project, "no-keys"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"own": "", "./own": "", "data//deep/own": "", "data/deep/../../own": "", "inside/own": "", "data/up": "", "twice": "", // opened
		"":                           "the path is empty",
		"/etc/passwd":                "an absolute path",
		project + "/own":             "an absolute path",
		"../outside/secret":          "leads out of the folder of the spec",
		"data/../../outside/secret":  "leads out of the folder of the spec",
		"..":                         "leads out of the folder of the spec",
		"file-out":                   "leads out of the folder of the spec",
		"folder-out/secret":          "leads out of the folder of the spec",
		"data/deep/out/secret":       "leads out of the folder of the spec",
		"inside/../up/../own":        "own is not a folder",
		"back":                       "leads out of the folder of the spec",
		"absolute":                   "the symbolic link absolute leads to an absolute path",
		"environ":                    "the symbolic link environ leads to an absolute path",
		"loop":                       "more than 40 symbolic links",
		"dangling":                   "no such file or folder (paths start from the folder of the spec)",
		"nothing":                    "no such file or folder",
		"own/below":                  "own is not a folder",
		"data":                       "want a file, found a folder",
		".":                          "want a file, found a folder",
		"pipe":                       "want a file, found a named pipe",
		"socket":                     "want a file, found a socket",
		".mlpromote/keys/local.key":  "is inside .mlpromote, which holds keys",
		"to-key":                     "is inside .mlpromote, which holds keys",
		"signing/builder.key":        "is inside signing, which holds keys",
		"to-keys/builder.key":        "is inside signing, which holds keys",
		"hard-link":                  "is a hard link to a file of the data directory or the keys",
		"data/../signing/../own":     "is inside signing, which holds keys",
		"data/deep/own\x00../secret": "cannot be read: invalid argument",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := f.Open(name)
			if want == "" {
				if err != nil {
					t.Fatalf("Open(%q): %v, want the file", name, err)
				}
				defer file.Close()
				if text, err := io.ReadAll(file); string(text) != "own" {
					t.Errorf("Open(%q) reads %q, %v, want own", name, text, err)
				}
				if info, err := os.Lstat(file.Name()); err != nil || !info.Mode().IsRegular() {
					t.Errorf("Open(%q).Name() is %s (%v), want the path without symbolic links", name, file.Name(), err)
				}
				return
			}
			if err == nil {
				file.Close()
			}
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), want) {
				t.Errorf("Open(%q): %v, want invalid, and %q", name, err, want)
			}
		})
	}
	if _, err := f.Open("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing file: %v, want fs.ErrNotExist", err)
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	project := place(t)
	f, err := confined.New(project, "the folder of the spec")
	if err != nil {
		t.Fatal(err)
	}
	if names, err := f.Names("inside/"); err != nil || strings.Join(names, " ") != "out own" {
		t.Errorf("Names of a link to a folder: %v, %v, want out and own", names, err)
	}
	for name, want := range map[string]string{
		"own": "want a folder, found a file", "folder-out": "leads out", "..": "leads out", ".mlpromote": "holds keys",
	} {
		if _, err := f.Names(name); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Names(%q): %v, want %q", name, err, want)
		}
		if err := f.Check(name, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%q, folder): %v, want %q", name, err, want)
		}
	}
	root, err := f.OpenRoot("data")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.Stat("deep/own"); err != nil {
		t.Errorf("a folder that was opened has no deep/own: %v", err)
	}
	if err := f.Check("own", false); err != nil {
		t.Errorf("Check(own): %v", err)
	}
}

// A folder that contains keys or stored models is not shown to a program.
func TestShow(t *testing.T) {
	t.Parallel()
	project := place(t)
	f, err := confined.New(project, "the folder of the spec", filepath.Join(project, "data", "deep"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"signing": "", "own": "", "signing/builder.key": "",
		".": "is the folder of the spec with everything in it", "signing/..": "is the folder of the spec with everything in it",
		"data": "has deep in it, which holds keys", "data/deep": "is inside data/deep", "inside": "is inside data/deep",
		"folder-out": "leads out", ".mlpromote": "holds keys", "nothing": "no such file",
	} {
		err := f.Show(name)
		if want == "" && err != nil || want != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("Show(%q): %v, want %q", name, err, want)
		}
	}
}

// The folder of a spec must not be inside one with keys or stored models.
func TestNewRefusesPrivateFolders(t *testing.T) {
	t.Parallel()
	project := place(t)
	for path, private := range map[string]string{
		filepath.Join(project, ".mlpromote"):         "",
		filepath.Join(project, ".mlpromote", "keys"): "",
		filepath.Join(project, "inside"):             filepath.Join(project, "data"),
		filepath.Join(project, "nothing"):            "",
	} {
		if _, err := confined.New(path, "the folder of the spec", private); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("New(%s) with %q private: %v, want invalid", path, private, err)
		}
	}
	if _, err := (confined.Folder{}).Open("own"); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("the zero Folder: %v, want invalid", err)
	}
}

// Views of the kernel are regular files, and some contain the environment of the process.
func TestKernelFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no /proc")
	}
	for folder, name := range map[string]string{"/proc/self": "environ", "/sys/devices/system": "cpu/online"} {
		f, err := confined.New(folder, "the folder of the spec")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Open(name); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "is a view of the kernel") {
			t.Errorf("%s/%s: %v, want that it is a view of the kernel", folder, name, err)
		}
	}
}

// Replacing files while they are opened does not give access to a secret. Open returns the
// file or an error.
func TestExchangedWhileOpened(t *testing.T) {
	t.Parallel()
	project := place(t)
	f, err := confined.New(project, "the folder of the spec", filepath.Join(project, "signing"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(project, name) }
	for _, name := range []string{"swapped", "swapped-key"} {
		if err := os.WriteFile(at(name), []byte("own"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("folder/builder.key"), []byte("own"), 0o666); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var swapping sync.WaitGroup
	defer swapping.Wait()
	defer close(done)
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Symlink("../outside/secret", at("next"))
			_ = os.Rename(at("next"), at("swapped"))
			_ = os.Symlink("signing/builder.key", at("next"))
			_ = os.Rename(at("next"), at("swapped-key"))
			_ = os.Rename(at("folder"), at("aside"))
			_ = os.Symlink("signing", at("folder"))
			_ = os.Remove(at("folder"))
			_ = os.Rename(at("aside"), at("folder"))
			for _, name := range []string{"swapped", "swapped-key"} {
				_ = os.WriteFile(at("next"), []byte("own"), 0o666)
				_ = os.Rename(at("next"), at(name))
			}
		}
	})
	opened := 0
	for range 3000 {
		for _, name := range []string{"swapped", "swapped-key", "folder/builder.key"} {
			file, err := f.Open(name)
			if err != nil {
				continue
			}
			text, err := io.ReadAll(file)
			file.Close()
			if opened++; err != nil || string(text) != "own" {
				t.Fatalf("Open(%q) reads %q (%v), want own or an error", name, text, err)
			}
		}
	}
	if opened == 0 {
		t.Error("no file was opened, so the test tried nothing")
	}
}
