package install

import (
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
)

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

// named is the record of an install for one of the toolchains that share it.
func named(r Record, toolchain string) Record {
	r.Name = toolchain
	return r
}
