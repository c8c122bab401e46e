package main

import (
	"fmt"
	"os"
	"strings"
)

// document is the file with the tables. Without a path, tables are printed once they are complete.
type document struct {
	path string
	text string
}

func openDocument(path string) (*document, error) {
	if path == "" {
		return &document{}, nil
	}
	text, err := os.ReadFile(path)
	return &document{path, string(text)}, err
}

func marks(name string) (begin, end string) {
	by := "make toolchains-table"
	if name == rowsTable {
		by = "make generate"
	}
	return "<!-- table of " + name + ": " + by + " -->\n", "<!-- end of table -->\n"
}

// parts returns what is before the content of a table, the content, and what is behind it.
func (d *document) parts(name string) (before, content, after string, err error) {
	begin, end := marks(name)
	before, rest, ok := strings.Cut(d.text, begin)
	content, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("%s: no lines %q and %q", d.path, begin, end)
	}
	return before + begin, content, end + after, nil
}

// rows returns the lines of a table that the document has, without its header.
func (d *document) rows(name string) ([]string, error) {
	if d.path == "" {
		return nil, nil
	}
	_, content, _, err := d.parts(name)
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(content) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "| ") {
			found = append(found, line)
		}
	}
	return found[min(1, len(found)):], nil
}

// write replaces the lines of a table.
func (d *document) write(t table, lines []string) error {
	text := "\n" + t.header + "\n" + strings.Join(append(lines, ""), "\n") + "\n"
	if d.path == "" {
		if len(lines) < len(t.rows) {
			return nil
		}
		_, err := os.Stdout.WriteString(text)
		return err
	}
	before, _, after, err := d.parts(t.name)
	if err != nil {
		return err
	}
	d.text = before + text + after
	return os.WriteFile(d.path, []byte(d.text), 0o644)
}
