package install

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
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

// Install returns the install of a toolchain and creates it if necessary, for which it needs
// the network. It calls progress, which may be nil, for each stage with the number of bytes
// received, from another goroutine. Errors: CodeNotFound for an unknown name; CodeUnavailable
// if Python, its venv module or the packages are not available, with a hint.
func (i *Installer) Install(ctx context.Context, name string, progress func(Progress)) (Record, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, err
	}
	interpreter, err := i.interpreter(ctx, source)
	if err != nil {
		return Record{}, err
	}
	dir := filepath.Join(i.folder(), source.Install()+"-"+key(source, interpreter.version))
	if r, err := installed.Read(dir); err == nil {
		return named(r, name), nil // jobs may hold its lock
	}
	unlock, err := toolchain.LockFile(ctx, dir+lockSuffix, true,
		func() { progress(Progress{Stage: "waiting for another install of " + name}) })
	if err != nil && ctx.Err() == nil {
		err = registry.WithHint(registry.Errorf(registry.CodeOf(err), "install %s: %w", name, err),
			"installs are in %s: name another folder in MLPROMOTE_INSTALLS", i.folder())
	}
	if err != nil {
		return Record{}, err
	}
	defer unlock()
	r, err := installed.Read(dir)
	if err == nil {
		return named(r, name), nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !registry.HasCode(err, registry.CodeDigest) {
		return Record{}, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return Record{}, err
	}
	r = Record{Name: source.Install(), Lock: source.LockDigest(), Created: time.Now().UTC().Truncate(time.Second), Dir: dir}
	fill := fillPython
	if source.Language == drivers.JavaScript {
		fill = fillNode
	}
	if r, err = fill(ctx, source, interpreter, r, progress); err != nil {
		return Record{}, errors.Join(err, os.RemoveAll(dir)) // it may be gigabytes
	}
	return named(r, name), nil
}

// named is the record of an install for one of the toolchains that share it.
func named(r Record, toolchain string) Record {
	r.Name = toolchain
	return r
}

// interpreter is a program that runs drivers of a language.
type interpreter struct {
	path    string
	version string // "3.12.1"
}

func (i *Installer) interpreter(ctx context.Context, source drivers.Source) (interpreter, error) {
	if source.Language == drivers.JavaScript {
		return node(ctx, source)
	}
	return i.python(ctx, source)
}

// fillPython creates the environment and writes the record.
func fillPython(ctx context.Context, source drivers.Source,
	python interpreter, r Record, progress func(Progress)) (Record, error) {
	r.Python = python.version
	progress(Progress{Stage: "making an environment with Python " + python.version})
	if err := python.venv(ctx, filepath.Join(r.Dir, installed.VenvDir)); err != nil {
		return Record{}, err
	}
	lockPath := filepath.Join(r.Dir, "requirements.lock")
	if err := os.WriteFile(lockPath, source.Lock, 0o666); err != nil {
		return Record{}, err
	}
	progress(Progress{Stage: "installing the packages of " + source.Name})
	temp := filepath.Join(r.Dir, "tmp")
	if err := os.Mkdir(temp, 0o777); err != nil {
		return Record{}, err
	}
	if err := pipInstall(ctx, source.Name, r.Interpreter(), lockPath, temp, progress); err != nil {
		return Record{}, err
	}
	if err := os.RemoveAll(temp); err != nil {
		return Record{}, err
	}
	if err := inspect(&r, source); err != nil {
		return Record{}, err
	}
	err := write(&r)
	return r, err
}

// key derives the name of an install from its lock, interpreter and platform.
func key(source drivers.Source, interpreterVersion string) string {
	what := source.LockDigest().String() + "\n" + interpreterVersion + "\n" + runtime.GOOS + "/" + runtime.GOARCH
	return digest.FromString(what).Encoded()[:installed.KeyLength]
}
