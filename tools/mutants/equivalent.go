package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// equivalents are mutants that no test could kill, because they behave like the original.
type equivalents struct {
	entries []equivalent
}

// equivalent names a mutant by its file, its line and its change, since line numbers move.
type equivalent struct {
	file, source, change string
	used                 bool
}

func (e equivalent) String() string { return strings.Join([]string{e.file, e.source, e.change}, " | ") }

// readEquivalent reads the list. A line has four fields with a tab between them: file, line of code, change as
// this program prints it, and reason. Lines that start with # are comments. A missing file is an empty list.
func readEquivalent(name string) (*equivalents, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return new(equivalents), nil
	}
	if err != nil {
		return nil, err
	}
	list := new(equivalents)
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || slices.Contains(fields, "") {
			return nil, fmt.Errorf("%s:%d: want file, line of code, change and reason with a tab between them", name, i+1)
		}
		list.entries = append(list.entries, equivalent{file: fields[0], source: fields[1], change: fields[2]})
	}
	return list, nil
}

func (l *equivalents) has(m mutant) bool {
	for i, e := range l.entries {
		if e.file == m.file && e.source == m.source && e.change == m.change {
			l.entries[i].used = true
			return true
		}
	}
	return false
}

// unused lists the entries for files of the packages that no mutant fitted.
func (l *equivalents) unused(packages []pkg) []equivalent {
	var out []equivalent
	for _, e := range l.entries {
		in := func(p pkg) bool { return p.name() == path.Dir(e.file) }
		if !e.used && slices.ContainsFunc(packages, in) {
			out = append(out, e)
		}
	}
	return out
}
