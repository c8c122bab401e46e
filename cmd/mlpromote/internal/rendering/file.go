package rendering

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// maxBytes is how large a file may be.
const maxBytes = strictyaml.MaxBytes

// Place is a marked value.
type Place struct {
	File   string          `json:"file"`
	Line   int             `json:"line"`
	Was    string          `json:"was"`
	Is     string          `json:"is"` // what the environment resolves to
	Target registry.Digest `json:"digest"`
	Ref    string          `json:"ref"` // of the target, for people

	Marker Marker `json:"-"`
	from   int    // bytes of the value in the line, quotes included
	to     int
	quote  string
}

// Current reports whether the file has what the environment resolves to.
func (p Place) Current() bool { return p.Was == p.Is }

// file is a YAML file with marked values.
type file struct {
	name   string
	lines  []string // with their ends
	places []Place
}

// parse finds the marked values of a file. It reads tokens alone, so that several documents, anchors and whatever else
// Kubernetes takes stay as they are. Errors: CodeInvalid, with file and line.
func parse(name string, data []byte) (f file, err error) {
	if len(data) > maxBytes {
		return file{}, registry.Errorf(registry.CodeInvalid, "%s has %d bytes: want at most %d", name, len(data), maxBytes)
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return file{}, registry.Errorf(registry.CodeInvalid, "%s is not UTF-8 text", name)
	}
	f = file{name: name, lines: strings.SplitAfter(string(data), "\n")}
	comments, err := strictyaml.Comments(name, data)
	if err != nil {
		return file{}, err
	}
	for _, c := range comments {
		marker, ok, err := parseMarker(c.Text)
		if !ok {
			continue
		}
		if err == nil {
			err = errors.Join(marker.checkPlace(c.Path), f.place(c, marker))
		}
		if err != nil {
			return file{}, fmt.Errorf("%s:%d: %w", name, c.Line, err)
		}
	}
	return f, nil
}

// place notes the value in front of a marker. It must be the only thing that the text between it and the marker is.
func (f *file) place(c strictyaml.Comment, m Marker) error {
	refused := registry.Errorf(registry.CodeInvalid, "the marker of %s has no value in front of it: want KEY: VALUE  # MARKER", m.Model)
	if !c.Found || c.Line > len(f.lines) {
		return refused
	}
	text := f.lines[c.Line-1]
	before, _, _ := strings.Cut(text, `"`+markerKey+`"`)
	end := strings.LastIndex(before, "#")
	if end < 0 {
		return refused
	}
	p := Place{File: f.name, Line: c.Line, Marker: m, Was: c.Value, quote: c.Quote}
	p.to = len(strings.TrimRight(text[:end], " \t"))
	p.from = p.to
	if c.Column > 0 {
		p.from = byteOf(text, c.Column)
	}
	if p.from > p.to || p.quote+p.Was+p.quote != text[p.from:p.to] {
		return refused
	}
	f.places = append(f.places, p)
	return nil
}

// byteOf is the byte of a column, from 1 and in characters.
func byteOf(line string, column int) int {
	runes := []rune(line)
	return len(string(runes[:min(max(column-1, 0), len(runes))]))
}

// rendered is the file with what its places are to be. It is read again: a file in which something else changed, or
// in which a value is not read as it was written, is an error.
func (f file) rendered() ([]byte, error) {
	lines := slices.Clone(f.lines)
	for _, p := range f.places {
		text := p.quote + p.Is + p.quote
		if p.from == p.to {
			text = " " + text
		}
		line := lines[p.Line-1]
		lines[p.Line-1] = line[:p.from] + text + line[p.to:]
	}
	data := []byte(strings.Join(lines, ""))
	again, err := parse(f.name, data)
	if err != nil || !slices.EqualFunc(again.places, f.places, func(got, want Place) bool {
		return got.Was == want.Is && got.Line == want.Line && got.Marker == want.Marker
	}) {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: this way of writing values cannot be changed by a command: want KEY: VALUE  # MARKER in lines of their own", f.name)
	}
	return data, nil
}
