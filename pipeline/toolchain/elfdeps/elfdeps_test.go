package elfdeps_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/elfdeps"
)

func everything(string) bool { return true }

// found returns what files load.
func found(t *testing.T, visible func(string) bool, files ...string) map[string][]string {
	t.Helper()
	f, err := elfdeps.New(visible)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := f.Add(file); err != nil {
			t.Fatalf("Add(%s): %v", file, err)
		}
	}
	return f.Found()
}

// The Finder finds the same libraries as the program's own loader.
func TestLoaderAgrees(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems load other files")
	}
	for _, program := range []string{"/bin/sh", "/bin/ls", "/usr/bin/git"} {
		target, err := filepath.EvalSymlinks(program)
		if err != nil {
			continue
		}
		out, err := exec.Command("ldd", target).Output()
		if err != nil {
			t.Skipf("ldd %s: %v", target, err)
		}
		got := found(t, everything, target)
		for line := range strings.Lines(string(out)) {
			name, rest, ok := strings.Cut(strings.TrimSpace(line), " => ")
			path, _, _ := strings.Cut(rest, " ")
			if !ok || path == "" {
				continue // of the kernel, or the loader
			}
			if !slices.Contains(got[name], path) {
				t.Errorf("%s loads %s from %s, found %v", target, name, path, got[name])
			}
		}
		if len(got) == 0 {
			t.Errorf("%s: found nothing", target)
		}
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := write("first", "#!/bin/sh -e\n")
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"shell":  {"#! /bin/sh\necho\n", []string{"/bin/sh"}},
		"env":    {"#!/usr/bin/env -S LC_ALL=C sh -e\n", []string{"/usr/bin/env", "/usr/bin/sh"}},
		"script": {"#!" + first + "\n", []string{first, "/bin/sh"}},
		"gone":   {"#!/nowhere/python\n", []string{"/nowhere/python"}},
		"text":   {"hello\n", nil},
		"empty":  {"", nil},
		"itself": {"#!" + filepath.Join(dir, "itself") + "\n", []string{filepath.Join(dir, "itself")}},
	} {
		got := found(t, everything, write(name, c.text))
		for _, interpreter := range c.want {
			if _, ok := got[interpreter]; !ok {
				t.Errorf("%s: found %v, want %s", name, got, interpreter)
			}
		}
		if len(c.want) == 0 && len(got) > 0 {
			t.Errorf("%s: found %v, want nothing", name, got)
		}
	}
	if got := found(t, everything, write("lost", "#!/nowhere/python\n")); len(got["/nowhere/python"]) > 0 {
		t.Errorf("a missing interpreter: found %v", got)
	}
}

// A library is taken from the run path of the program, and not from an invisible folder.
func TestRunPath(t *testing.T) {
	t.Parallel()
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("gcc is not installed")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(at("lib"), 0o700), os.WriteFile(at("own.c"), []byte("int own(void) { return 0; }\n"), 0o600),
		os.WriteFile(at("main.c"), []byte("int own(void); int main(void) { return own(); }\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", at("lib/libown.so"), at("own.c")},
		{"-o", at("main"), at("main.c"), "-L" + at("lib"), "-lown", "-Wl,-rpath,$ORIGIN/lib"},
	} {
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v: %s", err, out)
		}
	}
	if got := found(t, everything, at("main"))["libown.so"]; !slices.Equal(got, []string{at("lib/libown.so")}) {
		t.Errorf("libown.so is found at %v, want that of the run path", got)
	}
	system := func(path string) bool { return !strings.HasPrefix(path, dir) }
	got := found(t, system, at("main"))
	if paths, ok := got["libown.so"]; !ok || len(paths) > 0 {
		t.Errorf("libown.so in an invisible folder: found at %v (%t), want a name without a path", paths, ok)
	}
	if len(got["libc.so.6"]) == 0 {
		t.Errorf("libc.so.6 is not found: %v", got)
	}
}

// Damaged files return an error and never panic.
func FuzzAdd(f *testing.F) {
	if program, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(program)
	}
	f.Add([]byte("\x7fELF"))
	f.Add([]byte("#!/bin/sh"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		finder, err := elfdeps.New(func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		_ = finder.Add(path)
	})
}

func FuzzParseCache(f *testing.F) {
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		f.Add(cache[:min(len(cache), 4096)])
	}
	f.Add([]byte("glibc-ld.so.cache1.1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if cache, err := elfdeps.ParseCache(data); err != nil && cache != nil {
			t.Errorf("a cache %v and error %v", cache, err)
		}
	})
}
