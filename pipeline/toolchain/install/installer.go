package install

import (
	"cmp"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// Installer creates and finds installs. It is safe for concurrent use, also by several
// processes.
type Installer struct {
	Root   string // directory of all caches
	Folder string // of installs; empty means Root/toolchains
	Python string // interpreter from which environments are made; empty means "python3"

	mu      sync.Mutex
	adopted map[string]Record // adopted and merely known installs, by toolchain
	checked map[string]error  // installs of the host that were looked at, by folder: nil if they are as they were registered
}

// lockSuffix is appended to an install's name for its file lock.
const lockSuffix = ".lock"

// folder is that of installs.
func (i *Installer) folder() string { return cmp.Or(i.Folder, installed.In(i.Root)) }

// interpreter is a program that runs drivers of a language.
type interpreter struct {
	path    string
	version string // "3.12.1"
}

// Record describes an install. Reading it starts no process.
type Record = installed.Record

func notInstalled(name string) error {
	return registry.Lastingf(registry.CodeUnavailable, "%s is not installed: run `mlpromote toolchain install %s`", name, name)
}
