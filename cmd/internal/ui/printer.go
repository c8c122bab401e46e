package ui

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
)

// What is printed comes from elsewhere too: reasons in a history, the errors of a service,
// the log of a tool. A terminal obeys escape sequences, and a reader believes lines that
// look like ours. So everything goes through two gates:
//
//   - printer, behind which stdout and stderr lie, lets through characters that are seen
//     and ends of lines, and escapes the rest.
//   - plain makes one line of a text, so that nobody but us ends lines: for every argument
//     of a note, cell of a table, line of an error, and name of a step.

// printer writes what can be seen, and ends of lines. It is safe for concurrent use.
type printer struct {
	to io.Writer

	mu   sync.Mutex
	rest []byte // the beginning of a character whose end is still to come
}

// Write writes all of p, escaped. It gives the length of p, not what that became.
func (w *printer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 && isPlain(p) {
		return w.to.Write(p)
	}
	if _, err := io.WriteString(w.to, w.escaped(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// painted writes text of ours and one of our words in color before what else is to be said.
func (w *printer) painted(before, color, painted, after string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.to, w.escaped(before)+color+painted+uncolored+w.escaped(after))
	return err
}

// escaped gives text as it is to be written, behind what is left of the last one. Whoever calls it
// holds the lock.
func (w *printer) escaped(text string) string {
	text = string(w.rest) + text
	w.rest = nil
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) && !utf8.FullRuneInString(end) {
			text, w.rest = text[:len(text)-n], []byte(end)
			break
		}
	}
	return seen(text, "\n", registry.PlainText)
}

// isPlain reports whether a text is lines of visible ASCII and of durations in µs, as nearly all
// lines of a log are.
func isPlain(text []byte) bool {
	const micro = "µ"
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case ' ' <= c && c <= '~' || c == '\n':
		case c == micro[0] && i+1 < len(text) && text[i+1] == micro[1]:
			i++
		default:
			return false
		}
	}
	return true
}

// seen gives a text with every character escaped that is not seen and not among keep.
func seen(text, keep string, escape func(string) string) string {
	isSeen := func(r rune) bool { return registry.Visible(r) || strings.ContainsRune(keep, r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !isSeen(r) }) {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if isSeen(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			b.WriteString(escape(text[:size]))
		}
		text = text[size:]
	}
	return b.String()
}

// SeenJSON is a JSON document in which every character can be seen, and which says the same.
func SeenJSON(document string) string { return seenJSON(document) }

// seenJSON is seen for a JSON document, which then says the same.
func seenJSON(document string) string {
	return seen(document, "\n", func(character string) string {
		escaped := ""
		for _, unit := range utf16.Encode([]rune(character)) {
			escaped += fmt.Sprintf(`\u%04x`, unit)
		}
		return escaped
	})
}

// Plain is a text from elsewhere on one line, cut where it is longer than texts may be.
func Plain(text string) string { return registry.PlainText(text) }

// Layout is text whose lines are ours: what comes from elsewhere is plain in it.
type Layout string

// plainArguments makes texts and errors among the arguments of a format plain.
func plainArguments(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch a := arg.(type) {
		case Layout:
			out[i] = string(a)
		case string:
			out[i] = Plain(a)
		case error:
			out[i] = Plain(a.Error())
		default:
			out[i] = arg
		}
	}
	return out
}

// Bounds of an error on a terminal.
const (
	maxErrorLine  = 4 << 10 // bytes
	maxErrorLines = 200
)

// indented begins the lines of our errors that go on below the first.
const indented = "\n  "

// errorText gives the lines of an error: those that go on are indented, and any other end
// of a line is not ours.
func errorText(text string) string {
	first, rest, more := strings.Cut(text, indented)
	lines := []string{errorLine(first)}
	for more {
		var next string
		next, rest, more = strings.Cut(rest, indented)
		if len(lines) == maxErrorLines {
			lines = append(lines, "  …")
			break
		}
		lines = append(lines, "  "+errorLine(next))
	}
	return strings.Join(lines, "\n")
}

func errorLine(line string) string {
	if len(line) > maxErrorLine {
		line = strings.ToValidUTF8(line[:maxErrorLine], "") + "…"
	}
	return seen(line, "", Plain)
}
