package classical

import (
	"errors"
	"io"
	"regexp"

	"mlpromote.dev/mlpromote/registry"
)

// maxPMMLDepth is the deepest nesting of elements that is read: a tree of PMML has a level of XML for each
// of its own.
const maxPMMLDepth = 512

// pmmlHead is how PMML begins: a declaration and comments, then the root.
var pmmlHead = regexp.MustCompile(`^\s*(<\?xml[^>]*\?>)?(\s|<!--(?s:.*?)-->)*<([A-Za-z_][A-Za-z0-9_.-]*:)?PMML[\s>]`)

// declaredHead is XML that declares a type of document of its own in front of PMML.
var declaredHead = regexp.MustCompile(`(?s)^\s*(<\?xml[^>]*\?>)?\s*<!DOCTYPE.*<([A-Za-z_][A-Za-z0-9_.-]*:)?PMML[\s>]`)

// IsPMML recognizes XML whose root is PMML.
func IsPMML(head []byte) bool {
	head = trimMark(head)
	return pmmlHead.Match(head) || declaredHead.Match(head)
}

// CheckPMML reads XML to its end, for what harms its readers. Errors: CodeUnsafe for declarations, by which
// XML defines entities and names files, and for absurd nesting; CodeInvalid for a document that is cut.
func CheckPMML(r io.ReaderAt, size int64) error {
	x := xmlReader{text: newText(r, size)}
	for x.err == nil {
		c, err := x.text.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			if x.depth != 0 {
				return registry.Errorf(registry.CodeInvalid, "the XML ends at byte %d with %d of its elements open: copy or save it again", size, x.depth)
			}
			return nil
		case err != nil:
			return err
		case c == '<':
			x.markup()
		}
	}
	return x.err
}

// xmlReader walks XML until its first error.
type xmlReader struct {
	text  *countedText
	depth int
	err   error
}

func (x *xmlReader) next() byte {
	c, err := x.text.ReadByte()
	if err != nil && x.err == nil {
		if x.err = err; errors.Is(err, io.EOF) {
			x.err = registry.Errorf(registry.CodeInvalid, "the XML ends at byte %d in the middle of a tag: copy or save it again", x.text.at)
		}
	}
	return c
}

// until reads to the end of a comment, of a section of text, or of an instruction.
func (x *xmlReader) until(end string) {
	for matched := 0; x.err == nil && matched < len(end); {
		switch c := x.next(); {
		case c == end[matched]:
			matched++
		case matched == 2 && c == end[1] && end[0] == end[1]: // "--->" and "]]]>" end too
		case c == end[0]:
			matched = 1
		default:
			matched = 0
		}
	}
}

// markup reads what follows "<".
func (x *xmlReader) markup() {
	switch c := x.next(); {
	case x.err != nil:
	case c == '?':
		x.until("?>")
	case c == '!':
		x.bang()
	case c == '/':
		x.depth--
		x.tag(c)
	default:
		if x.depth++; x.depth > maxPMMLDepth {
			x.err = registry.Errorf(registry.CodeUnsafe,
				"at byte %d the XML is nested more than %d deep: prune the trees of the model", x.text.at, maxPMMLDepth)
			return
		}
		if last := x.tag(c); last == '/' {
			x.depth--
		}
	}
}

// tag reads to the end of a tag, and returns the last byte before that. Attributes may have ">" in them.
func (x *xmlReader) tag(last byte) byte {
	for quote := byte(0); x.err == nil; {
		c := x.next()
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return last
		}
		last = c
	}
	return 0
}

// bang reads a comment or a section of text. Nothing else that begins with "<!" is accepted.
func (x *xmlReader) bang() {
	at := x.text.at - 1
	for _, known := range []struct{ rest, end string }{{"--", "-->"}, {"[CDATA[", "]]>"}} {
		if ahead, _ := x.text.Peek(len(known.rest)); string(ahead) == known.rest {
			for range known.rest {
				x.next()
			}
			x.until(known.end)
			return
		}
	}
	x.err = registry.Errorf(registry.CodeUnsafe,
		"at byte %d the XML has a declaration (<!DOCTYPE or <!ENTITY), by which it could define entities and name other files: "+
			"remove it, PMML needs none", at)
}
