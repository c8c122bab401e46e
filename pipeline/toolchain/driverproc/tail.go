package driverproc

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	max  int
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-t.max):]...)
	if len(t.text) > 2*t.max {
		t.text = bytes.Clone(t.text[len(t.text)-t.max:])
	}
	return len(p), nil
}

// String returns the end of the text, at most max bytes, as [visible] text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return visible(string(t.text[max(0, len(t.text)-t.max):]))
}

// escapeSequence is a command to a terminal, such as a change of color or of the window's title
// (ECMA-48, 5.4 and 5.6).
var escapeSequence = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// visible converts a program's output to valid UTF-8 without terminal escape sequences and
// other control characters. It keeps newlines and tabs; a carriage return becomes the end of a
// line.
func visible(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	text = escapeSequence.ReplaceAllString(text, "")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// crashedGo finds the name of the signal in what a program in Go prints of a crash in a library:
// "SIGSEGV: segmentation violation", then stacks and registers.
var crashedGo = regexp.MustCompile(`(?m)^SIG[A-Z]+: ([a-z][a-z ]*)$`)

// progressBar finds what tqdm writes of how far something has come: "50%|#####     | 3/6 [00:01<00:01,  2.9it/s]".
var progressBar = regexp.MustCompile(`(?m)^.*\[(?:\d+:)?\d+:\d\d(?:<[^,\]\n]*)?, [^\]\n]*/\w+[^\]\n]*\][ \t]*\n?`)

// lastLines returns the last few lines of a log, for a message, without progress bars; where a program in
// Go crashed, what it said of that and before.
func lastLines(log string) string {
	const lines, bytes = 8, 1200
	if at := crashedGo.FindStringIndex(log); at != nil {
		log = log[:at[1]]
	}
	log = strings.TrimSpace(progressBar.ReplaceAllString(log, ""))
	all := strings.Split(log, "\n")
	short := strings.Join(all[max(0, len(all)-lines):], "\n")
	return strings.ToValidUTF8(short[max(0, len(short)-bytes):], "?")
}
