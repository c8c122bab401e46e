// Command toolchainstable measures every toolchain that is installed, and writes what it finds as three tables
// between marks of a document: engines of a zoo of small models, built twice and verified; models that are imported, likewise;
// and what each install takes. Without a document it prints the tables.
//
//	toolchainstable -mlpromote bin/mlpromote [-missing] [-only REGEXP] [docs/toolchains.md]
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
	flag.Parse()
	if err := run(*program, flag.Arg(0), *missing, *only); err != nil {
		fmt.Fprintln(os.Stderr, "toolchainstable:", err)
		os.Exit(1)
	}
}

// row is a line of a table: the cells that say what it is about, and what measures the others.
type row struct {
	title   string // "| digits | iree 3.13.0 | fp32 |"
	absent  bool   // its toolchain is not installed, so that the row stays as it is
	measure func() (string, error)
}

// table is one of the tables: its name in the marks, and its header with the line below.
type table struct {
	name, header string
	rows         []row
}

func run(program, path string, missing bool, only string) error {
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
	d, err := openDocument(path)
	if err != nil {
		return err
	}
	for _, t := range []table{p.engines(), p.sources(), p.installs()} {
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
		if err := d.write(t, lines); err != nil {
			return err
		}
	}
	return nil
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
