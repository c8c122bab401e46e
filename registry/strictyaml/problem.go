package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Problem is one thing that is wrong in a document.
type Problem struct {
	Line    int // from 1
	Column  int // in characters, from 1
	Message string
}

// Error is everything that is wrong in a document, in its order.
type Error struct {
	Name     string // of the file
	Problems []Problem

	lines []string
}

func newError(name string, lines []string, problems []Problem) *Error {
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Name: name, Problems: slices.Compact(sorted), lines: lines}
}

// Error writes a line "file:line:column: message" for each problem, and under it the
// line of the document, indented. Text of the document ends no line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", registry.PlainText(e.Name), p.Line, p.Column, registry.PlainText(p.Message))
		if quoted := e.quote(p.Line); quoted != "" {
			b.WriteString("\n    " + quoted)
		}
	}
	return b.String()
}

// maxQuoted is how many characters of a line are shown.
const maxQuoted = 120

// quote gives a line of the document without what could upset a terminal.
func (e *Error) quote(line int) string {
	if line < 1 || line > len(e.lines) {
		return ""
	}
	text := []rune(strings.TrimSpace(e.lines[line-1]))
	if len(text) > maxQuoted {
		text = append(text[:maxQuoted], '…')
	}
	for i, r := range text {
		if !registry.Visible(r) {
			text[i] = '�'
		}
	}
	return string(text)
}
