package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// rowsTable is the name of the table of all toolchains.
const rowsTable = "toolchains"

// toolchains is the table of all toolchains, from their rows.
func toolchains() (table, []string, error) {
	t := table{name: rowsTable, header: "| toolchain | version | engines | also makes | compiles for | run here | needs the runtime | two builds | imports | install |\n|---|---|---|---|---|---|---|---|---|--:|"}
	var lines []string
	for _, name := range drivers.Names() {
		source, err := drivers.Find(name)
		if err != nil {
			return t, nil, err
		}
		lines = append(lines, line(source))
	}
	return t, lines, nil
}

func line(s drivers.Source) string {
	install := fmt.Sprintf("%d MiB", s.Installed)
	if s.Shares != "" {
		install = "that of `" + s.Shares + "`"
	}
	cells := []string{fmt.Sprintf("[`%s`](toolchains/%s.md)", s.Name, s.Name), s.Version(), "-", "-", "-", "-", "-", "-", cmp.Or(strings.Join(s.Imports, ", "), "-"), install}
	if p := s.Profile; p.Name != "" {
		cells[2] = fmt.Sprintf("%s: `%s`", p.Format, p.Entry)
		var forms []string
		for _, f := range p.Forms {
			forms = append(forms, "`form: "+f.Name+"`")
		}
		cells[3] = cmp.Or(strings.Join(forms, ", "), "-")
		cells[4], cells[5], cells[6], cells[7] = machines(s), "yes", "this version or a later one", "equal bytes"
		if p.CompileOnly {
			cells[5] = "no"
		}
		if p.ExactRuntime {
			cells[6] = "this version"
		}
		switch p.Reproducible {
		case evidence.ReproducibleSemantic:
			cells[7] = "equal outputs"
		case evidence.ReproducibleNone:
			cells[7] = "may differ"
		}
	}
	if s.Quantizes {
		cells[3] = strings.TrimPrefix(cells[3]+", quantized models", "-, ")
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// machines are the machines that a toolchain compiles for.
func machines(s drivers.Source) string {
	switch e := s.Example; {
	case e.Accelerator != nil:
		return "accelerators"
	case e.OS != "":
		return "processors with " + e.OS
	case s.Accelerators:
		return "processors, accelerators"
	}
	return "processors"
}

// printNames writes the names of toolchains of a kind that have an install of their own.
func printNames(out io.Writer, kind string) error {
	holds, ok := map[string]func(drivers.Source) bool{
		"routine":   func(s drivers.Source) bool { return s.Routine },
		"others":    func(s drivers.Source) bool { return !s.Routine },
		"engines":   func(s drivers.Source) bool { return s.Profile.Name != "" },
		"importers": func(s drivers.Source) bool { return s.Profile.Name == "" },
	}[kind]
	if !ok {
		return fmt.Errorf("-list %q: want routine, others, engines or importers", kind)
	}
	for _, name := range drivers.Names() {
		if s := rowOf(name); s.Shares == "" && holds(s) {
			fmt.Fprintln(out, name)
		}
	}
	return nil
}

// writeRows writes the table into a document.
func writeRows(path string) error {
	d, err := openDocument(path)
	if err != nil {
		return err
	}
	t, lines, err := toolchains()
	if err != nil {
		return err
	}
	return d.write(t, lines)
}
