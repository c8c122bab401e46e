// Package script runs drivers that are scripts: a few files of code, in an environment made by
// package install.
//
// Python is started with -s -P -B: no packages of the user, no modules from the program's
// folder, no bytecode files. Unlike -I, this keeps PYTHONHASHSEED, which fixes the order of
// sets. No other environment variable of Python or Node.js is set, because package driverproc
// gives drivers a clean environment.
package script

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Program is a driver program with its interpreter.
type Program struct {
	Interpreter string   // path
	Flags       []string // of the interpreter
	Main        string   // the module that is started: "driver.py"
	Args        []string // of the program
	Folders     []string // with the program and its packages
	// Hold protects these files until release is called; nil if no other process changes them.
	Hold     func(context.Context) (release func(), err error)
	Code     map[string][]byte // Main, and the modules that it imports
	Identity toolchain.Identity
	Run      driverproc.Runner // nil for a sandbox on this machine
}

// Installed returns the function that [New] needs: it finds the program of that name in the
// current install. Errors of the function: those of Installer.Find.
func Installed(installer *install.Installer, name string) func() (Program, error) {
	return func() (Program, error) {
		source, err := drivers.Find(name)
		if err != nil {
			return Program{}, err
		}
		record, err := installer.Find(name)
		if err != nil {
			return Program{}, err
		}
		versions := maps.Clone(record.Versions)
		flags, args := []string{"-s", "-P", "-B"}, []string(nil)
		if source.Language == drivers.JavaScript {
			flags, args = nil, []string{record.Dir}
			versions["node"] = record.Node
		} else {
			versions["python"] = record.Python
		}
		return Program{
			Interpreter: record.Interpreter(), Flags: flags, Main: source.Program(), Args: args,
			Folders: record.Folders(), Hold: func(ctx context.Context) (func(), error) { return install.Hold(ctx, record) }, Code: source.Code,
			Identity: toolchain.Identity{
				Name: name, Version: record.Version, Lock: record.Lock, Adopted: record.Adopted,
				Image: record.Image, Code: driverproc.CodeDigest(source.Modules()...),
				Library: record.LibraryPath(), LibraryDigest: record.LibraryDigest, Versions: versions,
			},
		}, nil
	}
}

// In makes locate's programs run through run; if run is nil, they stay as they are.
func In(run driverproc.Runner, locate func() (Program, error)) func() (Program, error) {
	return func() (Program, error) {
		p, err := locate()
		p.Run = run
		return p, err
	}
}

// New returns a driver. At each job, locate returns the program to run.
func New(locate func() (Program, error), budget driverproc.Budget) toolchain.Driver {
	return driver{locate, budget}
}

type driver struct {
	locate func() (Program, error)
	budget driverproc.Budget
}

func (d driver) Identity(context.Context) (toolchain.Identity, error) {
	p, err := d.locate()
	return p.Identity, err
}

func (d driver) Do(ctx context.Context, job toolchain.Job, outDir string) (_ toolchain.Outcome, err error) {
	p, err := d.locate()
	if err != nil {
		return toolchain.Outcome{}, err
	}
	if p.Hold != nil {
		release, err := p.Hold(ctx)
		if err != nil {
			return toolchain.Outcome{}, err
		}
		defer release()
	}
	temp, err := tempdir.New("driver")
	if err != nil {
		return toolchain.Outcome{}, err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	dir := temp.Path
	for name, code := range p.Code {
		if err := os.WriteFile(filepath.Join(dir, name), code, 0o600); err != nil {
			return toolchain.Outcome{}, err
		}
	}
	return driverproc.Do(ctx, driverproc.Program{
		Name: p.Identity.Name, Path: p.Interpreter, Library: p.Identity.Library,
		Run: p.Run, Reads: append(slices.Clone(p.Folders), dir),
		Args: slices.Concat([]string{p.Interpreter}, p.Flags, []string{filepath.Join(dir, p.Main)}, p.Args),
	}, d.budget, job, outDir)
}
