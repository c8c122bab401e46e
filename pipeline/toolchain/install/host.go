package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// Register makes a Python of the host the install of a toolchain, for everyone who uses this folder of installs, until
// it is removed. Like Adopt, it installs nothing. The record says that the packages are the host's, and has the version
// of each; Find looks whether they are still the same. Errors: those of Adopt; CodeInvalid for versions of packages that
// the driver does not know how to drive.
func (i *Installer) Register(ctx context.Context, name, python string) (Record, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, err
	}
	found, path, err := survey(ctx, source, Python{Path: python})
	if err != nil {
		return Record{}, err
	}
	r, err := found.locked(source, path)
	if err != nil {
		return Record{}, err
	}
	if err := drivable(source, r); err != nil {
		return Record{}, err
	}
	host := &installed.Host{Prefix: found.Prefix, Base: found.Base, Executable: found.Program, Sites: found.Sites}
	if host.Fingerprint, err = fingerprint(path, host); err != nil {
		return Record{}, err
	}
	r.Host, r.Created = host, time.Now().UTC().Truncate(time.Second)
	return i.keepRegistered(ctx, source, r)
}

// drivable refuses versions that a driver does not know.
func drivable(source drivers.Source, r Record) error {
	var wrong []string
	for _, known := range source.Known() {
		switch have := r.Versions[known.Package]; {
		case have == "" && known.Optional:
		case have == "":
			wrong = append(wrong, fmt.Sprintf("wanted %s, found none", known))
		case !known.Has(plainVersion(have)):
			wrong = append(wrong, fmt.Sprintf("wanted %s, found %s", known, have))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: %s has packages that its driver does not know: %s",
		source.Name, r.Program, strings.Join(wrong, "; ")),
		"name another Python, or leave --python out to install the versions of the lock file")
}

// plainVersion is a version without what its builder added: 2.11.0 of 2.11.0+cu130.
func plainVersion(version string) string {
	plain, _, _ := strings.Cut(version, "+")
	return plain
}

// keepRegistered writes the record in place of one of another Python.
func (i *Installer) keepRegistered(ctx context.Context, source drivers.Source, r Record) (Record, error) {
	dir := filepath.Join(i.folder(), source.Name+"-"+digest.FromString("host\n" + r.Program).Encoded()[:installed.KeyLength])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return Record{}, registry.WithHint(registry.Errorf(registry.CodeUnavailable, "register %s: %w", source.Name, err),
			"installs are in %s: name another folder in MLPROMOTE_INSTALLS", i.folder())
	}
	unlock, err := toolchain.LockFile(ctx, dir+lockSuffix, true, nil)
	if err != nil {
		return Record{}, err
	}
	defer unlock()
	if err := writeRecord(dir, &r); err != nil {
		return Record{}, err
	}
	all, err := installed.Records(i.folder(), source.Name)
	if err != nil {
		return Record{}, err
	}
	for _, other := range all {
		if other.Host != nil && other.Folder() != dir {
			if err := i.remove(ctx, other); err != nil {
				return Record{}, err
			}
		}
	}
	return installed.Read(dir)
}

// unchanged checks that a Python of the host has the packages that it had when it was registered.
func (i *Installer) unchanged(r Record) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err, ok := i.checked[r.Folder()]; ok {
		return err
	}
	now, err := fingerprint(r.Program, r.Host)
	switch {
	case err != nil:
		err = registry.Errorf(registry.CodeDigest, "%s: the Python of the host that was registered, %s, cannot be used: %w", r.Name, r.Program, err)
	case now != r.Host.Fingerprint:
		err = registry.Errorf(registry.CodeDigest, "%s: the packages of %s, or the interpreter, changed since it was registered on %s",
			r.Name, r.Program, r.Created.Format(time.DateOnly))
	}
	if err != nil {
		err = registry.WithHint(err, "run `mlpromote toolchain install %s --python %s` again, or `mlpromote toolchain remove %s`", r.Name, r.Program, r.Name)
	}
	if i.checked == nil {
		i.checked = make(map[string]error)
	}
	i.checked[r.Folder()] = err
	return err
}

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
