package ort

import (
	"context"
	"embed"
	"os"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/registry"
)

// Name is the toolchain's name, in installs, identities and errors.
const Name = "onnxruntime"

// sources are the code that decides what the child computes and writes, with package caserun. Their digest is
// part of every key, so that a changed driver does not use cached results of an older one.
//
//go:embed *.go
var sources embed.FS

// binding is the version of github.com/yalue/onnxruntime_go, for the same reason.
const binding = "onnxruntime_go v1.35.0"

// Args returns the arguments with which the program must call [Main]. The first is its own
// name.
func Args() []string { return []string{"mlpromote", "driver", Name} }

// Options say how the child is started.
type Options struct {
	Installs   *install.Installer // finds the shared library; required
	Executable string             // the program whose Args lead to Main; empty means this one
	Budget     driverproc.Budget  // of one job; zero fields have large defaults
}

// New returns the driver. It looks for the install at each job.
func New(o Options) toolchain.Driver { return driver{o} }

type driver struct{ Options }

func (d driver) Identity(context.Context) (toolchain.Identity, error) {
	record, err := d.Installs.Find(Name)
	if err != nil {
		return toolchain.Identity{}, err
	}
	code, err := driverproc.GoCodeDigest(binding, sources, caserun.Sources())
	return toolchain.Identity{
		Name: Name, Version: record.Version, Lock: record.Lock, Adopted: record.Adopted, Code: code,
		Library: record.LibraryPath(), LibraryDigest: record.LibraryDigest,
		Versions: map[string]string{Name: record.Version},
	}, err
}

func (d driver) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	record, err := d.Installs.Find(Name)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	release, err := install.Hold(ctx, record)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	defer release()
	executable := d.Executable
	if executable == "" {
		if executable, err = os.Executable(); err != nil {
			return toolchain.Outcome{}, registry.Lastingf(registry.CodeUnavailable,
				"find this program, to start it as a driver: %w", err)
		}
	}
	program := driverproc.Program{Name: Name, Path: executable, Args: Args(),
		Library: record.LibraryPath(), Reads: []string{record.Dir}}
	return driverproc.Do(ctx, program, d.Budget, job, outDir)
}
