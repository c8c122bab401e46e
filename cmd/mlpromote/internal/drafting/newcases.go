package drafting

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/recording"
)

// casesFolder is the folder for imported cases, beside the spec. If it holds something else, its name gets a number.
const casesFolder = "cases"

// newCases is the folder that a run of init writes cases to. It is removed again unless the run writes a spec that names it.
type newCases struct {
	beside string // the folder of the spec
	path   string // the final name; empty before fill
	temp   string // that has the cases and is to be removed; empty if an earlier run left the same ones at path
}

// fill imports cases, and finds the folder that they belong to: the one that holds the same cases from an earlier run, or a new one.
func (c *newCases) fill(run func(to string) (recording.Imported, error)) (recording.Imported, error) {
	temp, err := os.MkdirTemp(c.beside, ".mlpromote-init-*")
	if err != nil {
		return recording.Imported{}, err
	}
	c.temp = temp
	imported, err := run(temp)
	if err != nil {
		c.temp = ""
		return recording.Imported{}, errors.Join(err, os.RemoveAll(temp))
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return recording.Imported{}, err
	}
	for i := 1; ; i++ {
		c.path = filepath.Join(c.beside, casesFolder)
		if i > 1 {
			c.path = fmt.Sprintf("%s-%d", c.path, i)
		}
		entries, err := os.ReadDir(c.path)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
			return imported, nil
		case err == nil && sameFiles(c.temp, c.path, entries):
			err := os.RemoveAll(c.temp)
			c.temp = ""
			return imported, err
		}
	}
}

// place gives the folder its final name, which the spec has.
func (c *newCases) place() error {
	if c.temp == "" {
		return nil
	}
	if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(c.temp, c.path)
	if err == nil {
		c.temp = c.path
	}
	return err
}

// keep keeps the folder, once a spec names it.
func (c *newCases) keep() { c.temp = "" }

// discard removes cases that were not kept.
func (c *newCases) discard() {
	if c.temp != "" {
		_ = os.RemoveAll(c.temp) // what stays does not stop the next run
	}
}

// sameFiles reports whether a folder with these entries has the files of another one, with the same bytes, and nothing else.
func sameFiles(made, folder string, entries []os.DirEntry) bool {
	own, err := os.ReadDir(made)
	if err != nil || len(own) != len(entries) {
		return false
	}
	for i, entry := range entries {
		if entry.Name() != own[i].Name() || !entry.Type().IsRegular() {
			return false
		}
		a, err := os.ReadFile(filepath.Join(made, entry.Name()))
		if err != nil {
			return false
		}
		if b, err := os.ReadFile(filepath.Join(folder, entry.Name())); err != nil || !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}
