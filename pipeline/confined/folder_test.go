package confined_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	for name, opens := range map[string]bool{"own": true, "data": false, "file-out": false, "nothing": false} {
		if err := f.Check(name, false); (err == nil) != opens || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("Check(%q): error %v, want it to open: %t", name, err, opens)
		}
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

// Opened lists what was opened, by this folder or a copy of it, and nothing that was only looked at or refused.
func TestOpened(t *testing.T) {
	t.Parallel()
	project := place(t)
	f, err := confined.New(project, "the folder of the spec")
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Opened(); len(got) != 0 {
		t.Errorf("at first %q was opened", got)
	}
	again := f
	for _, name := range []string{"own", "./own", "data/up", "inside/own", "file-out", "nothing"} {
		if file, err := again.Open(name); err == nil {
			file.Close()
		}
	}
	if err := f.Check("own", false); err != nil {
		t.Error(err)
	}
	want := []string{filepath.Join(f.Path(), "data", "deep", "own"), filepath.Join(f.Path(), "own")}
	if got := f.Opened(); !slices.Equal(got, want) {
		t.Errorf("%q was opened, want %q", got, want)
	}
	var zero confined.Folder
	if file, err := zero.Open("own"); err == nil || len(zero.Opened()) != 0 {
		t.Errorf("the zero folder opens %v, and says that %q was opened", file, zero.Opened())
	}
}

// A name may lead through as many links as on Linux, which bounds loops.
func TestChainsOfLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "link0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 41 {
		if err := os.Symlink(fmt.Sprintf("link%d", i), filepath.Join(dir, fmt.Sprintf("link%d", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	f, err := confined.New(dir, "the folder of the spec")
	if err != nil {
		t.Fatal(err)
	}
	for links, opens := range map[int]bool{1: true, 40: true, 41: false} {
		file, err := f.Open(fmt.Sprintf("link%d", links))
		if err == nil {
			file.Close()
		}
		if (err == nil) != opens || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("through %d links: error %v, want it to open: %t", links, err, opens)
		}
	}
}

// A tree has at most as many files and folders as a caller takes, and no names of what is outside.
func TestTree(t *testing.T) {
	t.Parallel()
	project := place(t)
	f, err := confined.New(project, "the folder of the spec", filepath.Join(project, "signing"))
	if err != nil {
		t.Fatal(err)
	}
	const all = 5 // data, data/deep, data/deep/out, data/deep/own, data/up
	for limit, fits := range map[int]bool{all: true, all - 1: false} {
		names, err := f.Tree("data", limit)
		if (err == nil) != fits || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("a limit of %d: %q, error %v, want it to fit: %t", limit, names, err, fits)
		}
		if want := []string{"data/deep/out", "data/deep/own", "data/up"}; fits && !slices.Equal(names, want) {
			t.Errorf("got %q, want %q", names, want)
		}
	}
	for name, says := range map[string]string{".": "has", "folder-out": "leads out", "nothing": "no such file", "own": "want a folder"} {
		if names, err := f.Tree(name, 100); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("Tree(%q): %q, error %v, want %q", name, names, err, says)
		}
	}
	if err := os.Link(filepath.Join(project, "signing", "builder.key"), filepath.Join(project, "data", "key")); err != nil {
		t.Fatal(err)
	}
	if names, err := f.Tree("data", 100); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "hard link") {
		t.Errorf("a tree with a hard link to a key: %q, error %v", names, err)
	}
}

// While a private folder cannot be searched, a file with several names may be one of its files.
func TestHardLinksWhilePrivateFoldersCannotBeRead(t *testing.T) {
	t.Parallel()
	project := place(t)
	if err := os.Link(filepath.Join(project, "data", "deep", "own"), filepath.Join(project, "twice")); err != nil {
		t.Fatal(err)
	}
	for private, opens := range map[string]bool{"signing": true, "no-keys": true, "later/keys": false} {
		f, err := confined.New(project, "the folder of the spec", filepath.Join(project, private))
		if err != nil {
			t.Fatal(err)
		}
		if !opens { // a file, so that nothing below it can be looked at
			if err := os.WriteFile(filepath.Join(project, "later"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, links := range map[string]bool{"twice": true, "own": false} {
			file, err := f.Open(name)
			if err == nil {
				file.Close()
			}
			if (err == nil) != (opens || !links) || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("%s with the private folder %s: error %v, want it to open: %t", name, private, err, opens || !links)
			}
		}
	}
}
