// Package ui prints what a program says: results on stdout, and notes, progress and errors on
// stderr. The rules:
//
//   - stdout is the result and nothing else: $(mlpromote build) is a ref. With
//     --output json it is one JSON document, also on failure: see output.go.
//   - stderr is for people: progress, notes, "mlpromote: error:" and "mlpromote: hint:",
//     which begin with the name of the program.
//   - Progress moves only on a terminal. Elsewhere it is one plain line for each step
//     that ended, and one every 15 seconds of a step that runs, so that a CI log reads well.
//   - Messages have no final period and no exclamation mark.
//   - What comes from elsewhere is plain: see printer.go.
//   - Only the words error, hint and warning have a color, and only on a terminal: see color.go.
package ui

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"golang.org/x/term"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// UI is where one run of the program prints.
type UI struct {
	Program        string    // begins the lines for people: "mlpromote"
	Stdout, Stderr io.Writer // what is written to them comes out as text that can be seen
	JSON           bool      // stdout is JSON
	Verbose        bool      // stderr says more
	Streams        bool      // documents are written as they come, one on a line

	Terminal bool         // stderr is a terminal
	bare     io.Writer    // stderr for bars, which move by escape sequences
	colors   bool         // the terminal and the environment take colors
	log      *slog.Logger // of a service that logs as JSON: takes what is for people
	document any          // the result so far, with JSON

	mu    sync.Mutex
	bars  *mpb.Progress
	open  map[string]*mpb.Bar
	beats map[string]time.Duration // by step: when a line said last that it goes on
	notes sync.Map                 // by step, how far it is; bars read it when they are drawn
}

// New writes to files of this process. If stderr is a terminal, steps move and words have colors.
func New(program string, stdout, stderr *os.File, getenv func(string) string) *UI {
	u := NewPlain(program, stdout, stderr)
	u.Terminal = term.IsTerminal(int(stderr.Fd()))
	u.colors = wantsColors(u.Terminal, getenv)
	return u
}

// NewPlain writes without colors, and a line for each step that ended.
func NewPlain(program string, stdout, stderr io.Writer) *UI {
	return &UI{Program: program, Stdout: &printer{to: stdout}, Stderr: &printer{to: stderr}, bare: stderr}
}

// Result is the answer: text, whose lines are ours, or value as JSON. With JSON it is
// written when the verb ends, together with the error that it may end with.
func (u *UI) Result(text string, value any) error {
	u.Close()
	if u.JSON {
		u.document = value
		return nil
	}
	_, err := io.WriteString(u.Stdout, strings.TrimRight(text, "\n")+"\n")
	return err
}

// Line is one of many answers, which are written as they come: with JSON, each on a line.
func (u *UI) Line(text string, value any) error {
	u.Close()
	if u.Streams = true; u.JSON {
		return u.write(value, "")
	}
	_, err := io.WriteString(u.Stdout, strings.TrimRight(text, "\n")+"\n")
	return err
}

// Note says something to people.
func (u *UI) Note(format string, args ...any) {
	u.Close()
	text := fmt.Sprintf(format, plainArguments(args)...)
	if u.log != nil {
		u.logNote(text)
		return
	}
	if ours := string(wordWarning) + " "; strings.HasPrefix(format, ours) {
		u.say(wordWarning, strings.TrimPrefix(text, ours))
		return
	}
	fmt.Fprintln(u.Stderr, u.Program+": "+text)
}

// Warn tells people to look at something, although the verb goes on.
func (u *UI) Warn(text string) { u.Note("warning: %s", text) }

// Fail writes an error and what to do about it.
func (u *UI) Fail(err error) {
	if err == nil {
		return
	}
	if u.log != nil {
		u.logFailure(err)
		return
	}
	for _, line := range messages(err) {
		u.say(wordError, line)
	}
	for _, hint := range registry.Hints(err) {
		u.say(wordHint, errorText(hint))
	}
}

// messages splits joined errors, so that each stands for itself.
func messages(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []string
		for _, e := range joined.Unwrap() {
			out = append(out, messages(e)...)
		}
		return out
	}
	// What only adds a hint says no more than what it wraps, which can be joined errors.
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error() {
		return messages(inner)
	}
	var document *strictyaml.Error
	if errors.As(err, &document) && document.Error() == err.Error() {
		return []string{document.Error()} // its lines are ours, and each quotes one of the document
	}
	return []string{errorText(err.Error())}
}
