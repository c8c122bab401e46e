package install

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

// State is the state of a toolchain on a machine.
type State string

// The states.
const (
	StateInstalled State = "installed"
	StateAvailable State = "available" // it can be installed
	StateLacking   State = "lacking"   // a requirement is missing
)

// Status describes a toolchain on a machine: its installs, and missing requirements.
type Status struct {
	Name     string    `json:"name"`
	Version  string    `json:"version"` // version that this program would install
	State    State     `json:"state"`
	Command  string    `json:"command,omitempty"` // command that installs it
	Installs []Found   `json:"installs"`          // newest first
	Missing  []Missing `json:"missing,omitempty"`
}

// Found is an existing install.
type Found struct {
	Record
	Dir         string `json:"dir"`
	Interpreter string `json:"interpreter"`
	LibraryPath string `json:"libraryPath,omitempty"`
	Current     bool   `json:"current"` // made from the embedded lock file, or registered
}

// Missing is a requirement that a machine does not meet.
type Missing struct {
	What string `json:"what"` // "Python 3.12 or later"
	Hint string `json:"hint,omitempty"`
	For  string `json:"for,omitempty"` // purpose; empty for everything
}

// Survey returns the status of every toolchain on this machine. gpus are the vendors of its
// accelerators.
func (i *Installer) Survey(ctx context.Context, gpus []string) ([]Status, error) {
	var all []Status
	run := remembering(command) // most toolchains ask the same Python the same
	for _, name := range drivers.Names() {
		status, err := i.status(ctx, name, gpus, run)
		if err != nil {
			return nil, err
		}
		all = append(all, status)
	}
	return all, nil
}

func (i *Installer) status(ctx context.Context, name string, gpus []string, run runner) (Status, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Status{}, err
	}
	records, err := i.records(source)
	if err != nil {
		return Status{}, err
	}
	s := Status{Name: name, Version: source.Version(), State: StateAvailable,
		Command: "mlpromote toolchain install " + name, Installs: []Found{}}
	for _, r := range records {
		f, err := found(r, source)
		if err != nil {
			return Status{}, err
		}
		s.Installs = append(s.Installs, f)
		if f.Current {
			s.State, s.Command = StateInstalled, ""
		}
	}
	s.Missing = missing(source, gpus)
	if s.State != StateInstalled {
		s.Missing = append(i.missingInterpreter(ctx, source, run), s.Missing...)
	}
	if s.State == StateAvailable && slices.ContainsFunc(s.Missing, func(m Missing) bool { return m.For == "" }) {
		s.State = StateLacking
	}
	return s, ctx.Err()
}

// found adds the paths, and counts the bytes if the install did not.
func found(r Record, source drivers.Source) (Found, error) {
	f := Found{r, r.Dir, r.Interpreter(), r.LibraryPath(), r.Host != nil || r.Lock == source.LockDigest()}
	if f.Size > 0 || r.Host != nil {
		return f, nil
	}
	var err error
	f.Size, err = treeSize(r.Dir)
	return f, err
}

// missing lists the requirements of the toolchain that the machine does not meet.
func missing(source drivers.Source, gpus []string) []Missing {
	var all []Missing
	for _, need := range source.Needs {
		if need.Library != "" && !hasLibrary(need.Library) {
			all = append(all, Missing{What: "the system's library " + need.Library,
				Hint: "on Debian: apt-get install " + need.Package, For: need.For})
		}
		if need.Program != "" {
			if _, err := exec.LookPath(need.Program); err != nil {
				all = append(all, Missing{What: "the program " + need.Program,
					Hint: "on Debian: apt-get install " + need.Package, For: need.For})
			}
		}
		has := func(vendor string) bool { return slices.Contains(gpus, vendor) }
		if len(need.GPUs) > 0 && !slices.ContainsFunc(need.GPUs, has) {
			all = append(all, Missing{What: "a GPU of " + strings.Join(need.GPUs, " or "), For: need.For})
		}
	}
	return all
}

// Lacks lists the requirements of an installed toolchain that the machine does not meet. The
// list is empty for an unknown toolchain.
func (i *Installer) Lacks(name string) []Missing {
	source, err := drivers.Find(name)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(missing(source, nil), func(m Missing) bool { return m.For != "" })
}

// hasLibrary looks in the dynamic linker's cache, or else in the usual folders.
func hasLibrary(name string) bool {
	cache, err := os.ReadFile("/etc/ld.so.cache")
	if err == nil && bytes.Contains(cache, []byte("\x00"+name+"\x00")) {
		return true
	}
	for _, pattern := range []string{"/lib*/", "/usr/lib*/", "/usr/lib/*/", "/usr/local/lib/"} {
		if found, err := filepath.Glob(pattern + name); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// missingInterpreter returns what is missing to create an environment.
func (i *Installer) missingInterpreter(ctx context.Context, source drivers.Source, run runner) []Missing {
	language := "Python "
	if source.Language == drivers.JavaScript {
		language = "Node.js "
	}
	python, err := i.interpreter(ctx, source, run)
	if err != nil {
		return []Missing{{What: language + source.Oldest + " or later", Hint: strings.Join(registry.Hints(err), "; ")}}
	}
	if source.Language == drivers.JavaScript {
		return nil
	}
	if _, err := run(ctx, python.path, "-I", "-c", "import venv, ensurepip"); err != nil {
		return []Missing{{What: "the venv module of " + python.path, Hint: "on Debian: apt-get install python3-venv"}}
	}
	return nil
}
