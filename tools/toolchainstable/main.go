// Command toolchainstable measures every toolchain that is installed, and writes what it finds between marks of the toolchain's
// page, which is NAME.md in a folder: engines of a zoo of small models, built twice and verified; models that are imported, likewise;
// and what the install takes. Without a folder it prints these tables.
//
//	toolchainstable -mlpromote bin/mlpromote [-missing] [-only REGEXP] [docs/toolchains]
//	toolchainstable -rows docs/toolchains.md
//	toolchainstable -list routine|others|engines|importers
//
// With -rows it measures nothing: it writes the table of all toolchains, from their rows, between marks of a document. With -list it
// prints names of toolchains with an install of their own: those that make test installs, or the others; those that make engines, or
// that only import and quantize.
//
// It writes each row as soon as it has it. With -missing it keeps the rows that are there already, and so goes on
// where it was stopped. With -only it measures the rows whose beginning, such as "| digits | iree 3.13.0 | fp32 |",
// matches, and keeps the others. Rows of toolchains that are not installed stay as they are.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	program := flag.String("mlpromote", "bin/mlpromote", "the program")
	missing := flag.Bool("missing", false, "keep the rows that the document has")
	only := flag.String("only", "", "measure only rows that match")
	rows := flag.String("rows", "", "write the table of all toolchains into this document")
	list := flag.String("list", "", "print the toolchains that are routine, others, engines or importers")
	flag.Parse()
	var err error
	switch {
	case *list != "":
		err = printNames(os.Stdout, *list)
	case *rows != "":
		err = writeRows(*rows)
	default:
		err = run(*program, flag.Arg(0), *missing, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "toolchainstable:", err)
		os.Exit(1)
	}
}

// row is a line of a table: the cells that say what it is about, and what measures the others.
type row struct {
	tool    string // the toolchain whose page has it
	title   string // "| digits | iree 3.13.0 | fp32 |"
	absent  bool   // its toolchain is not installed, so that the row stays as it is
	measure func() (string, error)
}

// table is one of the tables: its name in the marks, and its header with the line below.
type table struct {
	name, header string
	rows         []row
}

func run(program, folder string, missing bool, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	p, err := newProgram(program)
	if err != nil {
		return err
	}
	for _, t := range []table{p.engines(), p.sources(), p.installs()} {
		if folder == "" {
			if err := t.measure(&document{}, missing, pattern); err != nil {
				return err
			}
			continue
		}
		for _, tool := range p.tools {
			own := table{t.name, t.header, slices.DeleteFunc(slices.Clone(t.rows), func(r row) bool { return r.tool != tool.Name })}
			if len(own.rows) == 0 {
				continue
			}
			d, err := openDocument(filepath.Join(folder, tool.Name+".md"))
			if err != nil {
				return err
			}
			if err := own.measure(d, missing, pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure measures the rows whose titles match, and writes each to the document at once. With missing it keeps the rows that are
// there.
func (t table) measure(d *document, missing bool, pattern *regexp.Regexp) error {
	kept, err := d.rows(t.name)
	if err != nil {
		return err
	}
	var lines []string
	for i, r := range t.rows {
		at := slices.IndexFunc(kept, func(line string) bool { return strings.HasPrefix(line, r.title) })
		if at >= 0 && (missing || r.absent || !pattern.MatchString(r.title)) {
			lines = append(lines, kept[at])
			continue
		}
		if r.absent || !pattern.MatchString(r.title) {
			continue
		}
		fmt.Fprintln(os.Stderr, r.title)
		cells, err := r.measure()
		if err != nil {
			return fmt.Errorf("%s %w", r.title, err)
		}
		lines = append(lines, r.title+" "+cells)
		if err := d.write(t, slices.Concat(lines, among(kept, t.rows[i+1:]))); err != nil {
			return err
		}
	}
	return d.write(t, lines)
}

// among returns the lines of rows that are still to come.
func among(lines []string, rows []row) []string {
	var found []string
	for _, r := range rows {
		if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, r.title) }); at >= 0 {
			found = append(found, lines[at])
		}
	}
	return found
}
