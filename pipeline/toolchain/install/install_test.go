package install_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

const name = "onnxruntime"

func TestRealInstall(t *testing.T) {
	t.Parallel()
	installer := toolchaintest.Installer(t, name)
	r, err := installer.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	source, err := drivers.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "1.30.0" || r.Versions["onnx"] != "1.23.1" || r.Versions["ml-dtypes"] == "" || r.Lock != source.LockDigest() {
		t.Errorf("record %+v", r)
	}
	d, size, err := toolchain.HashFile(r.LibraryPath())
	if err != nil || d != r.LibraryDigest || size != r.LibrarySize {
		t.Errorf("library %s: %s, %d bytes (%v); the record says %s, %d", r.LibraryPath(), d, size, err, r.LibraryDigest, r.LibrarySize)
	}
	all, err := installer.List()
	if err != nil || len(all) == 0 || all[0].Name != name {
		t.Errorf("list %v (%v), want the install in it", all, err)
	}
}

// The lock names what is needed, with hashes, and no address.
func TestLocks(t *testing.T) {
	t.Parallel()
	for _, name := range drivers.Names() {
		source, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		lock := string(source.Lock)
		if source.Language == drivers.JavaScript {
			if strings.Contains(lock, "://") || strings.Count(lock, `"version":`) != strings.Count(lock, `"integrity": "sha512-`) {
				t.Errorf("%s: the lock holds an address, or a package without its digest", name)
			}
			continue
		}
		if strings.Contains(lock, "://") || !strings.Contains(lock, source.Package+"==") {
			t.Errorf("%s: the lock holds an address, or not the package %s", name, source.Package)
		}
		for block := range strings.SplitSeq(strings.ReplaceAll(lock, "\\\n", ""), "\n") {
			if strings.Contains(block, "==") && !strings.Contains(block, "--hash=sha256:") {
				t.Errorf("%s: no hash: %s", name, block)
			}
		}
	}
}

// fakePython is a script that does what an install asks of Python: it says its version,
// makes an environment whose interpreter it is, and "installs" one package. It adds a line to
// the file pips for every call of pip.
const fakePython = `#!/bin/sh
case "$*" in
*platform.python_version*) echo "${VERSION}" ;;
*"-m venv"*)
	for dir; do :; done
	${VENV}
	mkdir -p "$dir/bin" "$dir/lib/python3.12/site-packages"
	cp "$0" "$dir/bin/python" ;;
*ensurepip*) ;;
*"-m pip install"*)
	echo pip >> "${PIPS}"
	${PIP}
	site="${0%/bin/python}/lib/python3.12/site-packages"
	mkdir -p "$site/onnxruntime/capi" "$site/onnxruntime-1.30.0.dist-info"
	echo library > "$site/onnxruntime/capi/libonnxruntime.so.1.30.0" ;;
*) exit 64 ;;
esac
`

// newFake is an installer with a fake Python. Its second result is the file that gets
// a line for every call of pip.
func newFake(t *testing.T, version, venv, pip string) (*install.Installer, string) {
	t.Helper()
	dir := t.TempDir()
	pips := filepath.Join(dir, "pips")
	script := strings.NewReplacer("${VERSION}", version, "${VENV}", venv, "${PIPS}", pips, "${PIP}", pip).Replace(fakePython)
	path := filepath.Join(dir, "python3")
	if err := toolchaintest.WriteProgram(path, script); err != nil {
		t.Fatal(err)
	}
	return &install.Installer{Root: filepath.Join(dir, "cache"), Python: path}, pips
}

func TestInstallOnce(t *testing.T) {
	t.Parallel()
	installer, pips := newFake(t, "3.12.1", "", "")
	if _, err := installer.Find(name); !registry.HasCode(err, registry.CodeUnavailable) ||
		!strings.Contains(err.Error(), "run `mlpromote toolchain install onnxruntime`") {
		t.Errorf("before the install: error %v", err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			r, err := installer.Install(t.Context(), name, nil)
			if err != nil || r.Version != "1.30.0" || r.Python != "3.12.1" {
				t.Errorf("record %+v (%v)", r, err)
			}
		})
	}
	group.Wait()
	if text, err := os.ReadFile(pips); err != nil || string(text) != "pip\n" {
		t.Errorf("pip ran %q (%v), want once", text, err)
	}
	if _, err := installer.Find(name); err != nil {
		t.Error(err)
	}
}

// An install that ended before its record was written does not count, and neither does one that lost a
// file or whose library is not what it was.
func TestInstallAgain(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(r install.Record) error{
		"no record":      func(r install.Record) error { return os.Remove(filepath.Join(r.Dir, "record.json")) },
		"no interpreter": func(r install.Record) error { return os.Remove(r.Interpreter()) },
		"no library":     func(r install.Record) error { return os.Remove(r.LibraryPath()) },
		"other library":  func(r install.Record) error { return os.WriteFile(r.LibraryPath(), []byte("x"), 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			installer, pips := newFake(t, "3.12.1", "", "")
			r, err := installer.Install(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(r); err != nil {
				t.Fatal(err)
			}
			if _, err := installer.Find(name); err == nil {
				t.Error("the damaged install was found")
			}
			if _, err := installer.Install(t.Context(), name, nil); err != nil {
				t.Fatal(err)
			}
			if text, _ := os.ReadFile(pips); string(text) != strings.Repeat("pip\n", 2) {
				t.Errorf("pip ran %q, want twice", text)
			}
			if _, err := installer.Find(name); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInstallFailures(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		version, venv, pip, want, hint string
		code                           registry.Code // empty: CodeUnavailable
	}{
		"old Python": {version: "3.9.18", want: "3.11 or later"},
		"no version": {version: "pypy", want: "3.11 or later"},
		"no venv":    {version: "3.12.1", venv: "echo 'ensurepip is not available'; exit 1", want: "apt-get install python3-venv"},
		"no network": {version: "3.12.1", pip: "echo 'could not reach the index'; exit 1", want: "install onnxruntime: pip: could not reach the index"},
		"full disk": {version: "3.12.1",
			pip:  "echo 'ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device'; exit 1",
			want: "No space left on device", hint: "MLPROMOTE_INSTALLS", code: registry.CodeFull},
		"full disk, without pip": {version: "3.12.1", venv: "echo 'Error: [Errno 28] No space left on device'; exit 1",
			want: "No space left on device", code: registry.CodeFull},
		"wrong hashes": {version: "3.12.1", pip: "echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES'; exit 1", want: "DO NOT MATCH", hint: "other files than the lock file names"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			installer, _ := newFake(t, c.version, c.venv, c.pip)
			_, err := installer.Install(t.Context(), name, nil)
			if code := cmp.Or(c.code, registry.CodeUnavailable); registry.CodeOf(err) != code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want code %s and %q", err, code, c.want)
			}
			if hints := strings.Join(registry.Hints(err), "\n"); !strings.Contains(hints, c.hint) {
				t.Errorf("hints %q, want %q in them", hints, c.hint)
			}
			if left, err := filepath.Glob(filepath.Join(installer.Root, "toolchains", "*", "*")); err != nil || len(left) > 0 {
				t.Errorf("%q is left of the failed install (%v), want nothing", left, err)
			}
			if _, err := installer.Find(name); !registry.HasCode(err, registry.CodeUnavailable) {
				t.Errorf("what failed was found: %v", err)
			}
		})
	}
	none := &install.Installer{Root: t.TempDir(), Python: filepath.Join(t.TempDir(), "no-python")}
	if _, err := none.Install(t.Context(), name, nil); !registry.HasCode(err, registry.CodeUnavailable) || len(registry.Hints(err)) == 0 {
		t.Errorf("no Python: error %v, want CodeUnavailable and a hint", err)
	}
	full := &install.Installer{Folder: "/proc/nowhere", Python: "python3"}
	if _, err := full.Install(t.Context(), name, nil); err == nil ||
		!strings.HasPrefix(err.Error(), "install onnxruntime: mkdir /proc/nowhere") || len(registry.Hints(err)) == 0 {
		t.Errorf("a folder that cannot be made: error %v, want the toolchain, the folder and a hint", err)
	}
	if _, err := none.Install(t.Context(), "tensorrt", nil); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("an unknown toolchain: error %v, want CodeNotFound", err)
	}
}

// An install that waits for another gives up with its context.
func TestInstallCancelled(t *testing.T) {
	t.Parallel()
	installer, _ := newFake(t, "3.12.1", "", "exec sleep 3600")
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := installer.Install(ctx, name, func(install.Progress) {})
		first <- err
	}()
	_, err := installer.Install(ctx, name, func(p install.Progress) {
		stage := p.Stage
		if strings.HasPrefix(stage, "installing") || strings.HasPrefix(stage, "waiting") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the second: error %v, want that of the context", err)
	}
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: error %v, want that of the context", err)
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	given := t.TempDir()
	if root, err := installed.Root(given); err != nil || root != given {
		t.Errorf("root %s (%v), want %s", root, err, given)
	}
	other := t.TempDir()
	for _, c := range []struct{ installs, want string }{{"", filepath.Join(given, "toolchains")}, {other, other}} {
		if folder, err := installed.Folder(c.installs, given); err != nil || folder != c.want {
			t.Errorf("with %q for installs they are in %s (%v), want %s", c.installs, folder, err, c.want)
		}
	}
}
