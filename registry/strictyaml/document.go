package strictyaml

import (
	"errors"
	"io"
	"os"

	"mlpromote.dev/mlpromote/registry"
)

// maxProblems bounds what one document can make us say.
const maxProblems = 50

// MaxBytes and MaxLines bound a document that is read. The parser's time grows with
// the square of some inputs: 64 KiB of blank lines in a block scalar take it two
// minutes. Within these bounds the worst input that was found takes less than a second.
const (
	MaxBytes = 32 << 10
	MaxLines = 2000
)

// MaxDepth is how deep mappings and sequences may be nested.
const MaxDepth = 32

// Document is a decoded document: its tree and the problems found in it so far. It
// is for one goroutine.
type Document struct {
	name     string
	lines    []string
	root     *Node
	problems []Problem
}

// ReadFile reads a regular file of at most [MaxBytes]. Errors: those of [os.Open],
// as they are; CodeInvalid for a file that is too large or no file.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: want a file, found %s", path, describeMode(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: want at most %d bytes", path, MaxBytes)
	}
	return data, nil
}

func describeMode(mode os.FileMode) string {
	if mode.IsDir() {
		return "a directory"
	}
	return "something special"
}

// Root is the document's one value.
func (d *Document) Root() *Node { return d.root }

// At returns the node at the end of path, which is made of keys (string) and indexes
// (int). If the path leaves the document, it returns the last existing node.
func (d *Document) At(path ...any) *Node {
	n := d.root
	for _, step := range path {
		next := n.child(step)
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// Position gives line and column, from 1, of [Document.At] the path.
func (d *Document) Position(path ...any) (line, column int) {
	n := d.At(path...)
	return n.line, n.column
}

// Err is nil without problems, else CodeInvalid around an [*Error] with all of them.
func (d *Document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return &registry.Error{Code: registry.CodeInvalid, Err: newError(d.name, d.lines, d.problems)}
}

func (d *Document) add(p Problem) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, p)
	}
}
