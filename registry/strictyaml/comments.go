package strictyaml

import (
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"mlpromote.dev/mlpromote/registry"
)

// Comment is a comment of a file, with the value in front of it.
type Comment struct {
	Text string // without '#'
	Line int    // from 1
	// Found reports whether a value in one line is right in front of it, of a key or an item of a block.
	Found  bool
	Value  string // as it is read
	Quote  string // around it: ' or ", or empty
	Column int    // where value or quote begin, from 1 and in characters; 0 for a key or an item without a value
	// Path has the keys of the blocks around the value, from the outermost one to its own.
	Path []string
}

// Comments lists the comments of a file. It reads tokens alone, and so any number of documents, and anchors and whatever else
// [Decode] refuses. Errors: CodeInvalid for more than [MaxBytes], and for text that the lexer does not understand.
func Comments(name string, data []byte) (all []Comment, err error) {
	if len(data) > MaxBytes {
		return nil, registry.Errorf(registry.CodeInvalid, "%s has %d bytes: want at most %d", name, len(data), MaxBytes)
	}
	defer func() { // the lexer is not ours: a panic of it over some file is a problem of that file
		if r := recover(); r != nil {
			all, err = nil, registry.Errorf(registry.CodeInvalid, "%s cannot be read as YAML", name)
		}
	}()
	tokens := lexer.Tokenize(strings.ReplaceAll(string(data), "\r\n", "\n"))
	var path keys
	for i, t := range tokens {
		if t.Type == token.CommentType {
			c := comment(tokens[:i], t)
			c.Path = path.names()
			all = append(all, c)
		}
		path.read(tokens, i)
	}
	return all, nil
}

// keys are those of the blocks around a token, the outermost one first.
type keys struct {
	blocks []*token.Token
	flow   int // depth of braces and brackets, in which keys end with their line
}

func (k *keys) read(tokens token.Tokens, i int) {
	switch t := tokens[i]; t.Type {
	case token.DocumentHeaderType, token.DocumentEndType:
		*k = keys{}
	case token.MappingStartType, token.SequenceStartType:
		k.flow++
	case token.MappingEndType, token.SequenceEndType:
		k.flow = max(k.flow-1, 0)
	case token.MappingValueType:
		if k.flow > 0 || i == 0 {
			return
		}
		key := tokens[i-1]
		for len(k.blocks) > 0 && k.blocks[len(k.blocks)-1].Position.Column >= key.Position.Column {
			k.blocks = k.blocks[:len(k.blocks)-1]
		}
		k.blocks = append(k.blocks, key)
	}
}

func (k *keys) names() (all []string) {
	for _, key := range k.blocks {
		all = append(all, key.Value)
	}
	return all
}

// comment reads what is in front of a comment.
func comment(before token.Tokens, t *token.Token) Comment {
	c := Comment{Text: t.Value, Line: t.Position.Line}
	if len(before) == 0 {
		return c
	}
	value := before[len(before)-1]
	if value.Position.Line != c.Line {
		return c
	}
	if starts(value) {
		c.Found = true
		return c
	}
	if len(before) < 2 || !starts(before[len(before)-2]) {
		return c
	}
	switch value.Type {
	case token.SingleQuoteType:
		c.Quote = "'"
	case token.DoubleQuoteType:
		c.Quote = `"`
	case token.StringType, token.NullType, token.IntegerType, token.FloatType:
	default:
		return c
	}
	c.Found, c.Value, c.Column = true, value.Value, value.Position.Column
	return c
}

// starts reports whether a value begins behind a token.
func starts(t *token.Token) bool {
	return t.Type == token.MappingValueType || t.Type == token.SequenceEntryType
}
