package install

import (
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// Record describes an install. Reading it starts no process.
type Record = installed.Record

// Find returns the adopted install of a toolchain, or the newest one that was made from the
// embedded lock file. Errors: CodeUnavailable with how to install it; CodeNotFound for an
// unknown toolchain.
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
	all, err := installed.Records(i.folder(), name)
	if err != nil {
		return Record{}, err
	}
	for _, r := range all {
		if r.Lock == source.LockDigest() {
			return r, nil
		}
	}
	return Record{}, notInstalled(name)
}

func notInstalled(name string) error {
	return registry.Lastingf(registry.CodeUnavailable, "%s is not installed: run `mlpromote toolchain install %s`", name, name)
}

// List returns all complete installs, also those from older lock files, by name and newest
// first.
func (i *Installer) List() ([]Record, error) {
	var all []Record
	for _, name := range drivers.Names() {
		some, err := installed.Records(i.folder(), name)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
