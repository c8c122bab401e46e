package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// hostName is a toolchain whose driver needs one package, numpy.
const hostName = "pmml"

// hostPython is a virtual environment of this machine's Python, in which that version of numpy is described as installed.
// It returns the interpreter, and the folder with the packages.
func hostPython(t *testing.T, numpy string) (python, site string) {
	t.Helper()
	base, _, err := install.FindPython(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.CommandContext(t.Context(), base, "-I", "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sites, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages"))
	if err != nil || len(sites) != 1 {
		t.Fatalf("folders with packages: %v (%v)", sites, err)
	}
	addPackage(t, sites[0], "numpy", numpy)
	return filepath.Join(dir, "bin", "python3"), sites[0]
}

func addPackage(t *testing.T, site, name, version string) {
	t.Helper()
	dir := filepath.Join(site, name+"-"+version+".dist-info")
	for file, text := range map[string]string{
		"METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n", "RECORD": name + "/__init__.py,,\n",
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// locked is the version of numpy that the lock names.
func locked(t *testing.T) string {
	t.Helper()
	source, err := drivers.Find(hostName)
	if err != nil {
		t.Fatal(err)
	}
	return source.Version()
}

// A Python of the host that was registered is the install, for every process that uses the folder, until it is removed.
// Nothing of the host is removed with it.
func TestRegister(t *testing.T) {
	t.Parallel()
	folder, version := t.TempDir(), locked(t)
	python, _ := hostPython(t, version)
	r, err := (&install.Installer{Folder: folder}).Register(t.Context(), hostName, python)
	if err != nil {
		t.Fatal(err)
	}
	other := &install.Installer{Folder: folder}
	found, err := other.Find(hostName)
	if err != nil || found.Host == nil || !found.Adopted || found.Version != version || found.Interpreter() != python || found.Versions["numpy"] != version {
		t.Errorf("found %+v (%v), want the Python %s", found, err, python)
	}
	if found.Lock != r.Lock || found.Lock == "" || !slices.Contains(found.Folders(), filepath.Dir(filepath.Dir(python))) {
		t.Errorf("lock %s, folders %v; want the lock %s, and the folder of %s", found.Lock, found.Folders(), r.Lock, python)
	}
	all, err := other.Survey(t.Context(), nil)
	i := slices.IndexFunc(all, func(s install.Status) bool { return s.Name == hostName })
	if err != nil || i < 0 || all[i].State != install.StateInstalled || len(all[i].Installs) != 1 || all[i].Installs[0].Host == nil {
		t.Errorf("the survey has %+v (%v), want the Python of the host", all[max(i, 0)], err)
	}

	second, _ := hostPython(t, version)
	if _, err := other.Register(t.Context(), hostName, second); err != nil {
		t.Fatal(err)
	}
	if list, err := other.List(); err != nil || len(list) != 1 || list[0].Program != second {
		t.Errorf("installs %+v (%v), want the second Python in place of the first", list, err)
	}
	removed, err := other.Remove(t.Context(), hostName, false)
	if err != nil || len(removed) != 1 {
		t.Fatalf("removed %v (%v)", removed, err)
	}
	if _, err := os.Stat(second); err != nil {
		t.Errorf("the Python of the host was removed: %v", err)
	}
	if _, err := other.Find(hostName); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("after removal: error %v, want %s", err, registry.CodeUnavailable)
	}
}

// What changes at the host after it was registered is an error, which says what to do, and no reason to install silently.
func TestRegisteredHostChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, python, site string){
		"another package": func(t *testing.T, _, site string) { addPackage(t, site, "another", "1.0") },
		"a package less":  func(t *testing.T, _, site string) { removeAll(t, filepath.Join(site, "numpy-"+locked(t)+".dist-info")) },
		"other files": func(t *testing.T, _, site string) {
			write(t, filepath.Join(site, "numpy-"+locked(t)+".dist-info", "RECORD"))
		},
		"other folders":               func(t *testing.T, _, site string) { write(t, filepath.Join(site, "more.pth")) },
		"a module that it runs first": func(t *testing.T, _, site string) { write(t, filepath.Join(site, "sitecustomize.py")) },
		"an environment of another Python": func(t *testing.T, python, _ string) {
			write(t, filepath.Join(filepath.Dir(filepath.Dir(python)), "pyvenv.cfg"))
		},
		"no interpreter":        func(t *testing.T, python, _ string) { removeAll(t, python) },
		"another interpreter":   func(t *testing.T, python, _ string) { removeAll(t, python); write(t, python) },
		"no folder of packages": func(t *testing.T, _, site string) { removeAll(t, site) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			python, site := hostPython(t, locked(t))
			if _, err := (&install.Installer{Folder: folder}).Register(t.Context(), hostName, python); err != nil {
				t.Fatal(err)
			}
			change(t, python, site)
			_, err := (&install.Installer{Folder: folder}).Find(hostName)
			if !registry.HasCode(err, registry.CodeDigest) || !strings.Contains(strings.Join(registry.Hints(err), "\n"), "toolchain install "+hostName+" --python "+python) {
				t.Errorf("error %v (hints %v), want %s and how to register it again", err, registry.Hints(err), registry.CodeDigest)
			}
		})
	}
}

// A folder without a package has files that a Python runs when it starts, too: here its packages are elsewhere.
func TestRegisteredHostWithPackagesElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"more.pth", "sitecustomize.py"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			python, site := hostPython(t, locked(t))
			elsewhere := filepath.Join(filepath.Dir(filepath.Dir(python)), "packages")
			removeAll(t, filepath.Join(site, "numpy-"+locked(t)+".dist-info"))
			addPackage(t, elsewhere, "numpy", locked(t))
			if err := os.WriteFile(filepath.Join(site, "elsewhere.pth"), []byte(elsewhere+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := (&install.Installer{Folder: folder}).Register(t.Context(), hostName, python); err != nil {
				t.Fatal(err)
			}
			if _, err := (&install.Installer{Folder: folder}).Find(hostName); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			write(t, filepath.Join(site, name))
			if _, err := (&install.Installer{Folder: folder}).Find(hostName); !registry.HasCode(err, registry.CodeDigest) {
				t.Errorf("error %v, want %s", err, registry.CodeDigest)
			}
		})
	}
}

// wrapped is a script beside an interpreter which starts it.
func wrapped(t *testing.T, python, first string) string {
	t.Helper()
	script := filepath.Join(filepath.Dir(python), "wrapped")
	if err := toolchaintest.WriteProgram(script, "#!/bin/sh\n"+first+"\nexec "+python+" \"$@\"\n"); err != nil {
		t.Fatal(err)
	}
	return script
}

// A script that starts a Python is not that Python, and neither is one that runs something else first, though both have the same
// packages: what one made must not be taken for what the other would make.
func TestInterpretersOfTheSamePackages(t *testing.T) {
	t.Parallel()
	lock := func(python string) registry.Digest {
		t.Helper()
		r, err := (&install.Installer{Folder: t.TempDir()}).Adopt(t.Context(), hostName, install.Python{Path: python})
		if err != nil {
			t.Fatal(err)
		}
		return r.Lock
	}
	python, _ := hostPython(t, locked(t))
	first := lock(python)
	if again, _ := hostPython(t, locked(t)); lock(again) != first {
		t.Error("the same Python in another folder has another lock, want the same")
	}
	if lock(wrapped(t, python, "")) == first {
		t.Error("a script that starts it has the same lock")
	}
	other, site := hostPython(t, locked(t))
	write(t, filepath.Join(site, "more.pth"))
	if lock(other) == first {
		t.Error("a Python with a .pth file has the same lock")
	}
}

// What an interrupted removal left of a package is no package, and no reason to refuse a Python.
func TestPythonWithALeftover(t *testing.T) {
	t.Parallel()
	python, site := hostPython(t, locked(t))
	if err := os.MkdirAll(filepath.Join(site, "gone-1.0.dist-info"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := (&install.Installer{Folder: t.TempDir()}).Register(t.Context(), hostName, python)
	if err != nil || r.Versions["numpy"] != locked(t) {
		t.Errorf("registered %+v (%v), want numpy %s", r.Versions, err, locked(t))
	}
	for _, name := range []string{"gone", ""} {
		if version, ok := r.Versions[name]; ok {
			t.Errorf("it has the package %q of version %q, which is the leftover", name, version)
		}
	}
}

// What a registered script starts may change although the script does not.
func TestRegisteredScriptStartsAnother(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	python, _ := hostPython(t, locked(t))
	if _, err := (&install.Installer{Folder: folder}).Register(t.Context(), hostName, wrapped(t, python, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := (&install.Installer{Folder: folder}).Find(hostName); err != nil {
		t.Fatalf("before the change: %v", err)
	}
	removeAll(t, python)
	write(t, python)
	if _, err := (&install.Installer{Folder: folder}).Find(hostName); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("error %v, want %s", err, registry.CodeDigest)
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("another\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// A Python whose packages the driver does not know is refused, with what was wanted and what was found.
func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	python, _ := hostPython(t, "1.26.0")
	parts := strings.Split(locked(t), ".")
	wanted := "wanted numpy " + parts[0] + "." + parts[1] + ", found 1.26.0"
	for name, c := range map[string]struct {
		toolchain, python, says string
		code                    registry.Code
	}{
		"another version":      {hostName, python, wanted, registry.CodeInvalid},
		"no package":           {"lightgbm", python, "has no package lightgbm", registry.CodeUnavailable},
		"no Python":            {hostName, filepath.Join(t.TempDir(), "none"), "none", registry.CodeUnavailable},
		"another language":     {"onnxruntime-web", python, "does not run on Python", registry.CodeInvalid},
		"an unknown toolchain": {"caffe", python, "caffe", registry.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			_, err := (&install.Installer{Folder: folder}).Register(t.Context(), c.toolchain, c.python)
			if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %s and %q", err, c.code, c.says)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("it left %v (%v)", left, err)
			}
		})
	}
}
