package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

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
	interpreter, err := i.interpreter(ctx, source, command)
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

// interpreter finds what runs the driver of a toolchain. run starts the programs that are asked for their versions.
func (i *Installer) interpreter(ctx context.Context, source drivers.Source, run runner) (interpreter, error) {
	if source.Language == drivers.JavaScript {
		return node(ctx, source, run)
	}
	return i.python(ctx, source, run)
}

// key derives the name of an install from its lock, interpreter and platform.
func key(source drivers.Source, interpreterVersion string) string {
	what := source.LockDigest().String() + "\n" + interpreterVersion + "\n" + runtime.GOOS + "/" + runtime.GOARCH
	return digest.FromString(what).Encoded()[:installed.KeyLength]
}
