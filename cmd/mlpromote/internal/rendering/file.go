package rendering

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"mlpromote.dev/mlpromote/registry"
)

// maxBytes is how large a file may be.
const maxBytes = 4 << 20

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
	tokens, err := tokenize(name, data)
	if err != nil {
		return file{}, err
	}
	for i, t := range tokens {
		if t.Type != token.CommentType {
			continue
		}
		marker, ok, err := parseMarker(t.Value)
		if !ok {
			continue
		}
		line := t.Position.Line
		if err == nil {
			err = f.place(tokens[:i], marker, line)
		}
		if err != nil {
			return file{}, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	return f, nil
}

// tokenize runs the lexer, which is not ours: a panic of it over some file is a problem of that file.
func tokenize(name string, data []byte) (tokens token.Tokens, err error) {
	defer func() {
		if r := recover(); r != nil {
			tokens, err = nil, registry.Errorf(registry.CodeInvalid, "%s cannot be read as YAML", name)
		}
	}()
	return lexer.Tokenize(strings.ReplaceAll(string(data), "\r\n", "\n")), nil
}

// place notes the value in front of a marker. It must be one value in that line, and the only thing that the text
// between it and the marker is.
func (f *file) place(tokens token.Tokens, m Marker, line int) error {
	refused := registry.Errorf(registry.CodeInvalid, "the marker of %s has no value in front of it: want KEY: VALUE  # MARKER", m.Model)
	if len(tokens) == 0 || line > len(f.lines) {
		return refused
	}
	value, text := tokens[len(tokens)-1], f.lines[line-1]
	if value.Position.Line != line {
		return refused
	}
	before, _, _ := strings.Cut(text, `"`+markerKey+`"`)
	end := strings.LastIndex(before, "#")
	if end < 0 {
		return refused
	}
	p := Place{File: f.name, Line: line, Marker: m, Was: value.Value}
	p.from = byteOf(text, value.Position.Column)
	p.to = len(strings.TrimRight(text[:end], " \t"))
	if starts(value) { // a key or an item without a value
		p.Was, p.from = "", p.to
		f.places = append(f.places, p)
		return nil
	}
	if len(tokens) < 2 || !starts(tokens[len(tokens)-2]) {
		return refused
	}
	switch value.Type {
	case token.SingleQuoteType:
		p.quote = "'"
	case token.DoubleQuoteType:
		p.quote = `"`
	case token.StringType, token.NullType, token.IntegerType, token.FloatType:
	default:
		return refused
	}
	if p.from > p.to || p.quote+p.Was+p.quote != text[p.from:p.to] {
		return refused
	}
	f.places = append(f.places, p)
	return nil
}

// starts reports whether a value begins behind a token.
func starts(t *token.Token) bool {
	return t.Type == token.MappingValueType || t.Type == token.SequenceEntryType
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
		return nil, registry.Errorf(registry.CodeInvalid, "%s: this way of writing values cannot be changed by a command: want KEY: VALUE  # MARKER in lines of their own", f.name)
	}
	return data, nil
}
