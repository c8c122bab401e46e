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
//   - Only the words error, hint and warning have a color, and verdicts of results, and only on a terminal: see color.go, mark.go.
package ui

import (
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"golang.org/x/term"
)

// UI is where one run of the program prints.
type UI struct {
	Program        string    // begins the lines for people: "mlpromote"
	Stdout, Stderr io.Writer // what is written to them comes out as text that can be seen
	JSON           bool      // stdout is JSON
	Verbose        bool      // stderr says more
	Streams        bool      // documents are written as they come, one on a line

	Terminal bool      // stderr is a terminal
	bare     io.Writer // stderr for bars, which move by escape sequences
	colors   bool      // the terminal and the environment take colors
	// paintsResults is the same of stdout.
	paintsResults bool
	log           *slog.Logger // of a service that logs as JSON: takes what is for people
	document      any          // the result so far, with JSON

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
	u.paintsResults = wantsColors(term.IsTerminal(int(stdout.Fd())), getenv)
	wide, _, err := term.GetSize(int(stdout.Fd()))
	if err != nil { // no terminal
		wide = 0
	}
	columns.Store(int64(columnsOf(getenv, wide)))
	return u
}

// NewPlain writes without colors, and a line for each step that ended.
func NewPlain(program string, stdout, stderr io.Writer) *UI {
	return &UI{Program: program, Stdout: &printer{to: stdout}, Stderr: &printer{to: stderr}, bare: stderr}
}
