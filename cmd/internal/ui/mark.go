package ui

import (
	"regexp"
	"slices"
	"strings"
)

// A Tone is how good a verdict is.
type Tone int

// The tones.
const (
	Plainly Tone = iota // no verdict
	Good
	Bad
	Unsure
)

// Sign shows a tone without a color.
func (t Tone) Sign() string {
	switch t {
	case Good:
		return mark(t, "✓")
	case Bad:
		return mark(t, "✗")
	case Unsure:
		return mark(t, "?")
	}
	return ""
}

// color is the sequence with which a terminal begins to paint a verdict: green, red or yellow.
func (t Tone) color() string {
	switch t {
	case Good:
		return "\x1b[32m"
	case Bad:
		return "\x1b[1;31m"
	case Unsure:
		return "\x1b[33m"
	}
	return ""
}

// Mark is a verdict for a cell of a table or a line of a result, which is painted on a terminal. Only the words that [marks] lists can
// be marked: what comes from elsewhere cannot be painted, whatever bytes it has.
func (t Tone) Mark(word string) string {
	if t == Plainly || !slices.Contains(marks, word) {
		return Plain(word)
	}
	return mark(t, word)
}

// marks are the texts that can be painted.
var marks = []string{"✓", "✗", "?", "pass", "fail", "undecided", "met", "skipped", "UNMET", "REFUSED"}

// The bytes around a marked text: the first has the tone. A terminal never gets them.
const (
	markBegin = "\x01"
	markEnd   = "\x02"
)

func mark(t Tone, word string) string { return markBegin + string(rune('0'+int(t))) + word + markEnd }

var markPattern = func() *regexp.Regexp {
	var words []string
	for _, word := range marks {
		words = append(words, regexp.QuoteMeta(word))
	}
	return regexp.MustCompile(markBegin + "([123])(" + strings.Join(words, "|") + ")" + markEnd)
}()

// isMarked reports whether a cell is a marked text and nothing else.
func isMarked(cell string) bool {
	at := markPattern.FindStringIndex(cell)
	return at != nil && at[0] == 0 && at[1] == len(cell)
}

// bare is a text without the bytes around what is marked.
func bare(text string) string {
	if !strings.Contains(text, markBegin) {
		return text
	}
	return markPattern.ReplaceAllString(text, "$2")
}

// Bare is a result without colors, as it is written to a file.
func Bare(text string) string { return bare(text) }

// writeMarked writes a result, whose marked texts are painted if stdout is a terminal with colors.
func (u *UI) writeMarked(text string) error {
	to, ok := u.Stdout.(*printer)
	if !ok || !u.paintsResults {
		_, err := u.Stdout.Write([]byte(bare(text)))
		return err
	}
	from := 0
	for _, at := range markPattern.FindAllStringSubmatchIndex(text, -1) {
		tone := Tone(text[at[2]] - '0')
		if err := to.painted(text[from:at[0]], tone.color(), text[at[4]:at[5]], ""); err != nil {
			return err
		}
		from = at[1]
	}
	_, err := to.Write([]byte(text[from:]))
	return err
}
