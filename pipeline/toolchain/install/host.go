package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
