package install

import "mlpromote.dev/mlpromote/pipeline/toolchain/drivers"

// Known makes Find return a record of a toolchain that is not installed, with the version and
// lock that Install would give it. It cannot run, but that is enough to plan a build. bytes is
// the approximate size of an install. Errors: CodeNotFound for an unknown toolchain.
func (i *Installer) Known(name string) (r Record, bytes int64, err error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, 0, err
	}
	r = Record{Name: name, Version: source.Version(),
		Lock: source.LockDigest(), Known: true, Versions: map[string]string{}}
	i.keep(r)
	return r, source.Installed << 20, nil
}
