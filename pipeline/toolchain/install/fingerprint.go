package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// described are the files that describe an installed package: a list of its files with their digests, and its name,
// version and needs (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
var described = []string{"RECORD", "METADATA", "PKG-INFO"}

// fingerprint is the digest of an interpreter, of what says which Python its environment is of, and of what describes the packages
// in its folders. It starts no process.
func fingerprint(program string, host *installed.Host) (registry.Digest, error) {
	interpreter, err := interpreterDigest(program, host.Executable, host.Sites)
	if err != nil {
		return "", err
	}
	found := map[string]string{"": interpreter.String()}
	if err := describe(found, filepath.Join(host.Prefix, "pyvenv.cfg")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, site := range host.Sites {
		entries, err := os.ReadDir(site)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".dist-info") || strings.HasSuffix(name, ".egg-info") {
				if err := describe(found, filepath.Join(site, name)); err != nil {
					return "", err
				}
			}
		}
	}
	var all bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&all, "%s\n%s\n", path, found[path])
	}
	return digest.FromBytes(all.Bytes()), nil
}

// startup are the modules that a Python runs when it starts, before any program, beside what its .pth files say
// (https://docs.python.org/3/library/site.html).
var startup = []string{"sitecustomize.py", "usercustomize.py"}

// interpreterDigest is the digest of what runs when a Python starts: the bytes of the program that was named, which may be a
// script that starts another; those of the interpreter itself; and the files in its folders of packages that it runs first.
// Steps of two Pythons that differ in these do not share what they made. It has no paths, so that a Python is the same in
// another folder.
func interpreterDigest(program, executable string, sites []string) (registry.Digest, error) {
	var lines []string
	add := func(name, path string) error {
		d, _, err := toolchain.HashFile(path)
		lines = append(lines, fmt.Sprintf("%s\n%s\n", name, d))
		return err
	}
	if err := add("program", program); err != nil {
		return "", err
	}
	if executable != "" && executable != program {
		if err := add("executable", executable); err != nil {
			return "", err
		}
	}
	for _, site := range sites {
		entries, err := os.ReadDir(site)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".pth") || slices.Contains(startup, name) {
				if err := add(name, filepath.Join(site, name)); err != nil {
					return "", err
				}
			}
		}
	}
	slices.Sort(lines) // the folders are in the order of their paths
	return digest.FromString(strings.Join(lines, "")), nil
}

// describe adds the digests of the files that describe a package, or of the file itself.
func describe(found map[string]string, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	files := []string{path}
	if info.IsDir() {
		files = nil
		for _, name := range described {
			files = append(files, filepath.Join(path, name))
		}
	}
	found[path] = "there"
	for _, file := range files {
		d, _, err := toolchain.HashFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found[file] = d.String()
	}
	return nil
}
