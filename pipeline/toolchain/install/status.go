package install

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

// State is what can be done with a toolchain on a machine.
type State string

// The states.
const (
	StateInstalled State = "installed"
	StateAvailable State = "available" // it can be installed
	StateLacking   State = "lacking"   // something must be there first
)

// Status is what a machine has of a toolchain, and what it lacks.
type Status struct {
	Name     string    `json:"name"`
	Version  string    `json:"version"` // that this program would install
	State    State     `json:"state"`
	Command  string    `json:"command,omitempty"` // that installs it
	Installs []Found   `json:"installs"`          // newest first
	Missing  []Missing `json:"missing,omitempty"`
}

// Found is an install that is there.
type Found struct {
	Record
	Dir         string `json:"dir"`
	Interpreter string `json:"interpreter"`
	LibraryPath string `json:"libraryPath,omitempty"`
	Current     bool   `json:"current"` // made from the lock that this program carries
}

// Missing is something that a machine does not have.
type Missing struct {
	What string `json:"what"` // "Python 3.12 or later"
	Hint string `json:"hint,omitempty"`
	For  string `json:"for,omitempty"` // what it is needed for; empty for everything
}

// Survey says of every toolchain what this machine has of it. gpus are the vendors of
// its accelerators.
func (i *Installer) Survey(ctx context.Context, gpus []string) ([]Status, error) {
	var all []Status
	for _, name := range drivers.Names() {
		status, err := i.status(ctx, name, gpus)
		if err != nil {
			return nil, err
		}
		all = append(all, status)
	}
	return all, nil
}

func (i *Installer) status(ctx context.Context, name string, gpus []string) (Status, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Status{}, err
	}
	records, err := i.records(name)
	if err != nil {
		return Status{}, err
	}
	s := Status{Name: name, Version: source.Version(), State: StateAvailable,
		Command: "mlpromote toolchain install " + name, Installs: []Found{}}
	for _, r := range records {
		found, err := r.found(source)
		if err != nil {
			return Status{}, err
		}
		s.Installs = append(s.Installs, found)
		if found.Current {
			s.State, s.Command = StateInstalled, ""
		}
	}
	s.Missing = missing(source, gpus)
	if s.State != StateInstalled {
		s.Missing = append(i.missingInterpreter(ctx, source), s.Missing...)
	}
	if s.State == StateAvailable && slices.ContainsFunc(s.Missing, func(m Missing) bool { return m.For == "" }) {
		s.State = StateLacking
	}
	return s, ctx.Err()
}

// found adds where things are, and counts the bytes where the install did not.
func (r Record) found(source drivers.Source) (Found, error) {
	f := Found{r, r.Dir, r.Interpreter(), r.LibraryPath(), r.Lock == source.LockDigest()}
	if f.Size > 0 {
		return f, nil
	}
	var err error
	f.Size, err = treeSize(r.Dir)
	return f, err
}

// treeSize is the bytes of the files below dir.
func treeSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// missing lists what the machine does not have of what the toolchain needs.
func missing(source drivers.Source, gpus []string) []Missing {
	var all []Missing
	for _, need := range source.Needs {
		if need.Library != "" && !hasLibrary(need.Library) {
			all = append(all, Missing{What: "the system's library " + need.Library,
				Hint: "on Debian: apt-get install " + need.Package, For: need.For})
		}
		has := func(vendor string) bool { return slices.Contains(gpus, vendor) }
		if len(need.GPUs) > 0 && !slices.ContainsFunc(need.GPUs, has) {
			all = append(all, Missing{What: "a GPU of " + strings.Join(need.GPUs, " or "), For: need.For})
		}
	}
	return all
}

// Lacks lists what the machine does not have of what an installed toolchain needs for all
// of its work; nothing for a toolchain that there is none of.
func (i *Installer) Lacks(name string) []Missing {
	source, err := drivers.Find(name)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(missing(source, nil), func(m Missing) bool { return m.For != "" })
}

// hasLibrary asks the dynamic linker's cache, or else the usual folders.
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

// missingInterpreter says what is missing to make an environment.
func (i *Installer) missingInterpreter(ctx context.Context, source drivers.Source) []Missing {
	language := "Python "
	if source.Language == drivers.JavaScript {
		language = "Node.js "
	}
	python, err := i.interpreter(ctx, source)
	if err != nil {
		return []Missing{{What: language + source.Oldest + " or later", Hint: strings.Join(registry.Hints(err), "; ")}}
	}
	if source.Language == drivers.JavaScript {
		return nil
	}
	if _, err := command(ctx, python.path, "-I", "-c", "import venv, ensurepip"); err != nil {
		return []Missing{{What: "the venv module of " + python.path, Hint: "on Debian: apt-get install python3-venv"}}
	}
	return nil
}
