package install

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// Record describes an install. Reading it starts no process.
type Record = installed.Record

// Find returns the adopted install of a toolchain, or that of the host which was registered for it, or the newest one
// that was made from the embedded lock file. Errors: CodeUnavailable with how to install it; CodeDigest for an install
// of the host that is not as it was registered; CodeNotFound for an unknown toolchain.
func (i *Installer) Find(name string) (Record, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, err
	}
	i.mu.Lock()
	adopted, ok := i.adopted[name]
	i.mu.Unlock()
	if ok {
		return adopted, nil
	}
	all, err := i.records(source)
	if err != nil {
		return Record{}, err
	}
	if at := slices.IndexFunc(all, func(r Record) bool { return r.Host != nil }); at >= 0 {
		return all[at], i.unchanged(all[at])
	}
	for _, r := range all {
		if r.Lock == source.LockDigest() {
			return r, nil
		}
	}
	return Record{}, notInstalled(name)
}

// records returns the installs of a toolchain, newest first: those from lock files, which it may share, and those of the
// host, which are its own.
func (i *Installer) records(source drivers.Source) ([]Record, error) {
	all, err := installed.Records(i.folder(), source.Name)
	if err != nil || source.Shares == "" {
		return all, err
	}
	shared, err := installed.Records(i.folder(), source.Shares)
	for _, r := range shared {
		if r.Host == nil {
			all = append(all, named(r, source.Name))
		}
	}
	return all, err
}

func notInstalled(name string) error {
	return registry.Lastingf(registry.CodeUnavailable, "%s is not installed: run `mlpromote toolchain install %s`", name, name)
}

// List returns all complete installs, also those from older lock files, by name and newest
// first.
func (i *Installer) List() ([]Record, error) {
	var all []Record
	for _, name := range drivers.Names() {
		source, err := drivers.Find(name)
		if err != nil {
			return nil, err
		}
		some, err := i.records(source)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
