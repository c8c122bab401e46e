package strictyaml

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// refused names the parts of YAML that are not read.
var refused = map[token.Type]string{
	token.AnchorType:    "anchors are not read: write the value at each place",
	token.AliasType:     "aliases are not read: write the value at each place",
	token.TagType:       "tags are not read: write the value without '!'",
	token.MergeKeyType:  "merge keys are not read: write the keys where they are needed",
	token.DirectiveType: "directives are not read: remove the line",
}

// gate looks at the tokens before the parser does, which recurses as deep as they
// are nested and takes time with the square of it.
type gate struct {
	flow    int   // open brackets
	columns []int // of the block collections that are open, ascending
	content bool  // a token of the document was seen
	ended   bool  // the document's end was seen
}

// check gives the first problem in the tokens.
func (g *gate) check(tokens token.Tokens) (Problem, bool) {
	for _, t := range tokens {
		if message := g.next(t); message != "" {
			return Problem{t.Position.Line, max(t.Position.Column, 1), message}, true
		}
	}
	return Problem{}, false
}

func (g *gate) next(t *token.Token) string {
	if message := refused[t.Type]; message != "" {
		return message
	}
	switch t.Type {
	case token.CommentType:
		return ""
	case token.DocumentHeaderType:
		g.ended = g.ended || g.content
	case token.DocumentEndType:
		g.ended = true
	case token.SequenceStartType, token.MappingStartType:
		g.flow++
	case token.SequenceEndType, token.MappingEndType:
		g.flow--
	case token.SequenceEntryType, token.MappingKeyType:
		g.open(t.Position.Column)
	case token.MappingValueType:
		if t.Prev != nil {
			g.open(t.Prev.Position.Column)
		}
	}
	if t.Type != token.DocumentHeaderType && t.Type != token.DocumentEndType {
		g.content = true
		if g.ended {
			return "a second document: want one in a file"
		}
	}
	if g.flow+len(g.columns) > MaxDepth {
		return fmt.Sprintf("nested too deeply: want at most %d levels", MaxDepth)
	}
	return ""
}

// open notes a collection that starts in a column, which ends those to its right.
func (g *gate) open(column int) {
	if g.flow > 0 {
		return
	}
	for len(g.columns) > 0 && g.columns[len(g.columns)-1] >= column {
		g.columns = g.columns[:len(g.columns)-1]
	}
	g.columns = append(g.columns, column)
}
