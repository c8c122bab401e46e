package classical

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"

	"mlpromote.dev/mlpromote/registry"
)

// lightGBMHead is how a model of LightGBM begins (gbdt_model_text.cpp, SaveModelToString).
var lightGBMHead = regexp.MustCompile(`^tree\r?\nversion=v[0-9]+\r?\n`)

// IsLightGBM recognizes what Booster.save_model writes.
func IsLightGBM(head []byte) bool { return lightGBMHead.Match(head) }

// lightGBMEnd stands behind the last tree.
var lightGBMEnd = []byte("end of trees")

// CheckLightGBM reads the text of LightGBM to its end. Errors: CodeInvalid for a file that is no text or
// is cut.
func CheckLightGBM(r io.ReaderAt, size int64) error {
	text := newText(r, size)
	lineStart, matched, ended := true, 0, false
	for {
		c, err := text.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && !ended:
			return registry.Errorf(registry.CodeInvalid, "the text ends at byte %d, without the line %q: copy or save it again", size, lightGBMEnd)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c < ' ' && c != '\n' && c != '\r' && c != '\t':
			return registry.Errorf(registry.CodeInvalid, "byte %d is a control character, which no model of LightGBM has", text.at)
		case c == '\n':
			ended = ended || matched == len(lightGBMEnd)
			lineStart, matched = true, 0
		case c == '\r':
		default:
			if lineStart && matched < len(lightGBMEnd) && c == lightGBMEnd[matched] {
				matched++
			} else {
				lineStart, matched = false, 0
			}
		}
	}
}

// countedText is a buffered text that knows how far it was read.
type countedText struct {
	*bufio.Reader
	at int64
}

func newText(r io.ReaderAt, size int64) *countedText {
	return &countedText{Reader: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16)}
}

// ReadByte returns the next byte.
func (t *countedText) ReadByte() (byte, error) {
	c, err := t.Reader.ReadByte()
	if err == nil {
		t.at++
	}
	return c, err
}

// utf8Mark may stand at the beginning of a text.
var utf8Mark = []byte("\xef\xbb\xbf")

func trimMark(head []byte) []byte { return bytes.TrimPrefix(head, utf8Mark) }
