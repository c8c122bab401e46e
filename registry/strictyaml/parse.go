package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// parse makes the tree, or notes why there is none.
func (d *Document) parse(data []byte) {
	if len(data) > MaxBytes {
		d.add(Problem{1, 1, fmt.Sprintf("the file has %d bytes: want at most %d", len(data), MaxBytes)})
		return
	}
	text := clean(data)
	d.lines = strings.Split(text, "\n")
	if len(d.lines) > MaxLines {
		d.add(Problem{MaxLines + 1, 1, fmt.Sprintf("the file has %d lines: want at most %d", len(d.lines), MaxLines)})
		return
	}
	if p, bad := unreadable(text); bad {
		d.add(p)
		return
	}
	file, err := parseText(text)
	var positioned *located
	if errors.As(err, &positioned) {
		d.add(positioned.Problem)
		return
	}
	d.root = d.node(body(file))
}

// clean drops a byte order mark and makes every line end with '\n': the parser
// counts lines wrongly otherwise.
func clean(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
}

// unreadable finds the first byte that is not text.
func unreadable(text string) (Problem, bool) {
	line, column := 1, 1
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return Problem{line, column, "this is not UTF-8 text"}, true
		case r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			return Problem{line, column, fmt.Sprintf("control character %U: want text", r)}, true
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return Problem{}, false
}

// located is a problem on its way up.
type located struct{ Problem }

func (l *located) Error() string { return l.Message }

// parseText runs the lexer and the parser. They are not ours, and a panic of theirs
// over some input is a problem of that input. Every error is a *located.
func parseText(text string) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, &located{Problem{1, 1, "the file cannot be read as YAML"}}
		}
	}()
	if p, bad := new(gate).check(lexer.Tokenize(text)); bad {
		return nil, &located{p}
	}
	file, err = parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, nil
	}
	p := Problem{1, 1, err.Error()}
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		p.Message = syntax.Message
		if at := syntax.Token; at != nil && at.Position != nil {
			p.Line, p.Column = max(at.Position.Line, 1), max(at.Position.Column, 1)
		}
	}
	return nil, &located{p}
}

// body returns the only document with content; gate has checked that there is no other.
func body(file *ast.File) ast.Node {
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			return doc.Body
		}
	}
	return nil
}

// Decode reads data, the bytes of the file that messages call name, into the
// non-nil pointer into.
//
// Structs are read by their `yaml:"key"` tags ("key,required" if a key must be
// there), with mappings, sequences, pointers, strings, booleans, numbers and types
// that are an [Unmarshaler] inside. A string is never made of a number or boolean, so
// that version 11.10 does not become 11.1. An empty value is a problem except for an
// Unmarshaler, which decides.
//
// Errors: CodeInvalid around an [*Error], which lists every problem; the Document is
// nil then. A syntax error is one problem.
func Decode(name string, data []byte, into any) (*Document, error) {
	d := &Document{name: name}
	d.parse(data)
	if d.root != nil {
		d.root.Decode(into)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return d, nil
}
