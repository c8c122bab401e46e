package install

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

// FindPython finds an interpreter that works in the sandbox, for programs of users: the one that is named,
// by path or by name, or else the first of the usual ones. reads are the folders that it needs beside system
// software. Errors: CodeUnavailable.
func FindPython(ctx context.Context, named string) (path string, reads []string, err error) {
	names := append(usual(), "/usr/bin/python3")
	if named != "" {
		names = []string{named}
	}
	var tried []string
	for _, name := range names {
		found, err := exec.LookPath(name)
		if err == nil {
			found, err = filepath.Abs(found)
		}
		if err != nil {
			continue
		}
		reads := beginnings(found)
		program := driverproc.Program{Name: "python", Path: found, Args: []string{found, "-I", "-B", "-c", "import json"}, Reads: reads}
		if _, err = driverproc.Query(ctx, program, surveyTime); err == nil {
			return found, reads, nil
		}
		if ctx.Err() != nil {
			return "", nil, err
		}
		tried = append(tried, found)
	}
	if len(tried) == 0 {
		tried = []string{"found none of " + strings.Join(names, ", ")}
	}
	return "", nil, registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "no Python works in the sandbox: %s", strings.Join(tried, ", ")),
		"install it (on Debian: apt-get install python3), or name one with --python program=PATH")
}

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
