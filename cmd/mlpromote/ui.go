package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// The rules of the terminal:
//
//   - stdout is the result and nothing else: $(mlpromote build) is a reference. With
//     --output json it is one JSON document, also on failure: see output.go.
//   - stderr is for people: progress, notes, "mlpromote: error:" and "mlpromote: hint:".
//   - Progress moves only on a terminal. Elsewhere it is one plain line for each step
//     that ended, so that a CI log reads well.
//   - Messages have no final period and no exclamation mark.
//   - What comes from elsewhere is plain: see printer.go.
//   - Only the words error, hint and warning have a color, and only on a terminal: see color.go.
type ui struct {
	stdout, stderr io.Writer // printers
	bare           io.Writer // stderr for bars, which move by escape sequences
	terminal       bool
	colors         bool // the terminal and the environment take colors
	json, verbose  bool
	log            *slog.Logger // of a service that logs as JSON: takes what is for people
	document       any          // the result so far, with JSON
	streams        bool         // documents are written as they come, one on a line

	mu    sync.Mutex
	bars  *mpb.Progress
	open  map[string]*mpb.Bar
	notes sync.Map // by step, how far it is; bars read it when they are drawn
}

func newUI(stdout, stderr *os.File, getenv func(string) string) *ui {
	terminal := term.IsTerminal(int(stderr.Fd()))
	return &ui{stdout: &printer{to: stdout}, stderr: &printer{to: stderr}, bare: stderr, terminal: terminal, colors: wantsColors(terminal, getenv)}
}

func (u *ui) configure(json, verbose bool) { u.json, u.verbose = json, verbose }

// result is the answer: text, whose lines are ours, or value as JSON. With JSON it is
// written when the verb ends, together with the error that it may end with.
func (u *ui) result(text string, value any) error {
	u.close()
	if u.json {
		u.document = value
		return nil
	}
	_, err := io.WriteString(u.stdout, strings.TrimRight(text, "\n")+"\n")
	return err
}

// line is one of many answers, which are written as they come: with JSON, each on a line.
func (u *ui) line(text string, value any) error {
	u.close()
	if u.streams = true; u.json {
		return u.write(value, "")
	}
	_, err := io.WriteString(u.stdout, strings.TrimRight(text, "\n")+"\n")
	return err
}

// note says something to people.
func (u *ui) note(format string, args ...any) {
	u.close()
	text := fmt.Sprintf(format, plainArguments(args)...)
	if u.log != nil {
		u.logNote(text)
		return
	}
	if ours := string(wordWarning) + " "; strings.HasPrefix(format, ours) {
		u.say(wordWarning, strings.TrimPrefix(text, ours))
		return
	}
	fmt.Fprintln(u.stderr, "mlpromote: "+text)
}

// warn tells people to look at something, although the verb goes on.
func (u *ui) warn(text string) { u.note("warning: %s", text) }

// fail writes an error and what to do about it.
func (u *ui) fail(err error) {
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
	var document *strictyaml.Error
	if errors.As(err, &document) && document.Error() == err.Error() {
		return []string{document.Error()} // its lines are ours, and each quotes one of the document
	}
	return []string{errorText(err.Error())}
}

// step shows the start of work outside the pipeline, and returns what shows its end.
func (u *ui) step(name string) (done func(error)) {
	began := time.Now()
	u.progress(pipeline.Step{Name: name, State: pipeline.StepStarted})
	return func(err error) {
		u.progress(pipeline.Step{Name: name, State: pipeline.EndState(err), Elapsed: time.Since(began)})
	}
}

// progress shows the steps of the pipeline.
func (u *ui) progress(s pipeline.Step) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.terminal && u.log == nil {
		u.move(s)
		return
	}
	switch s.State {
	case pipeline.StepStarted:
	case pipeline.StepMoving:
		if u.verbose {
			fmt.Fprintf(u.stderr, "    %s: %s\n", plain(s.Name), plain(s.Note))
		}
	default:
		if u.log != nil {
			u.log.Info(s.Name, "duration", s.Elapsed, "note", s.Note, "failed", s.State != pipeline.StepDone)
			return
		}
		fmt.Fprintln(u.stderr, u.lines(s))
	}
}

// lines is what is said of a step that ended.
func (u *ui) lines(s pipeline.Step) string {
	text := line(s)
	if u.verbose {
		for _, d := range s.Details {
			text += "\n    " + plain(d)
		}
	}
	return text
}

// hashing shows the re-hash of content that takes longer than a moment as a step.
func (u *ui) hashing() func(done, total int64) {
	var mu sync.Mutex
	var began time.Time
	return func(done, total int64) {
		if total < longHash {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		step := pipeline.Step{Name: "hash " + size(total), State: pipeline.StepStarted}
		switch {
		case began.IsZero():
			began = now()
			u.progress(step)
		case done == total:
			step.State, step.Elapsed = pipeline.StepDone, now().Sub(began)
			u.progress(step)
			began = time.Time{}
		}
	}
}

// longHash is the number of bytes that take a second or so to hash.
const longHash = 512 << 20

func line(s pipeline.Step) string {
	text := fmt.Sprintf("  %-44s %8s", plain(s.Name), seconds(s.Elapsed))
	switch {
	case s.State == pipeline.StepFailed:
		text += "  failed"
	case s.State == pipeline.StepInterrupted:
		text += "  interrupted"
	case s.Note != "":
		text += "  " + plain(s.Note)
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// move shows a step as a spinner with its time while it runs, and as a line after.
func (u *ui) move(s pipeline.Step) {
	if u.bars == nil {
		u.bars = mpb.New(mpb.WithOutput(u.bare), mpb.WithRefreshRate(120*time.Millisecond))
		u.open = make(map[string]*mpb.Bar)
	}
	switch s.State {
	case pipeline.StepStarted:
		u.open[s.Name] = u.bars.New(1, mpb.SpinnerStyle(), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(plain(s.Name), decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), decor.Any(func(decor.Statistics) string { return u.noteOf(s.Name) })))
		return
	case pipeline.StepMoving:
		u.notes.Store(s.Name, plain(s.Note))
		return
	}
	u.notes.Delete(s.Name)
	if bar, ok := u.open[s.Name]; ok {
		bar.SetCurrent(1)
		delete(u.open, s.Name)
	}
	fmt.Fprintln(u.bars, u.lines(s))
}

// noteOf is how far a step is, behind its time.
func (u *ui) noteOf(step string) string {
	if note, ok := u.notes.Load(step); ok {
		return fmt.Sprintf("  %s", note)
	}
	return ""
}

// close ends what moves, so that what follows stands below it.
func (u *ui) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, bar := range u.open {
		bar.Abort(true)
	}
	if u.bars != nil {
		u.bars.Wait()
	}
	u.bars, u.open = nil, nil
}

// table lines up rows of cells, each of which becomes plain.
func table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a builder cannot fail
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}
