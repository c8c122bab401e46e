package ui

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"mlpromote.dev/mlpromote/pipeline/progress"
)

// Step shows the start of work outside the pipeline, and returns what shows its end.
func (u *UI) Step(name string) (done func(error)) {
	running := progress.Begin(u.Progress, name, time.Now)
	return func(err error) { running.End("", err) }
}

// Piece is a part of a verb's work that takes long, and how it goes.
type Piece = progress.Step

// The states of a [Piece] that goes well.
const (
	Started = progress.Started
	Moving  = progress.Moving
)

// EndState is the state of a piece that ended with err.
func EndState(err error) progress.State { return progress.EndState(err) }

// Progress shows the steps of the pipeline.
func (u *UI) Progress(s progress.Step) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.Terminal && u.log == nil {
		u.move(s)
		return
	}
	switch s.State {
	case progress.Started:
	case progress.Moving:
		switch {
		case s.Elapsed > 0:
			u.beat(s)
		case u.Verbose:
			fmt.Fprintf(u.Stderr, "    %s: %s\n", Plain(s.Name), Plain(s.Note))
		}
	default:
		delete(u.beats, s.Name)
		if u.log != nil {
			u.log.Info(s.Name, "duration", s.Elapsed, "note", s.Note, "failed", s.State != progress.Done)
			return
		}
		fmt.Fprintln(u.Stderr, u.lines(s))
	}
}

// stillRunning is how often a line says that a step goes on, where no terminal shows it, and firstSaid is when the first one does.
const (
	stillRunning = 15 * time.Second
	firstSaid    = 5 * time.Second
)

// beat says now and then that a step goes on, and how far it is.
func (u *UI) beat(s progress.Step) {
	next := firstSaid
	if last, said := u.beats[s.Name]; said {
		next = last + stillRunning
	}
	if s.Elapsed < next {
		return
	}
	if u.beats == nil {
		u.beats = make(map[string]time.Duration)
	}
	u.beats[s.Name] = s.Elapsed
	if u.log != nil {
		u.log.Info(s.Name, "running", s.Elapsed, "note", s.Note)
		return
	}
	s.Note = strings.TrimSuffix("still running, "+s.Note, ", ")
	fmt.Fprintln(u.Stderr, line(s))
}

// lines is what is said of a step that ended.
func (u *UI) lines(s progress.Step) string {
	text := line(s)
	if u.Verbose {
		for _, d := range s.Details {
			text += "\n    " + Plain(d)
		}
	}
	return text
}

// Hashing shows the re-hash of content that takes longer than a moment as a step.
func (u *UI) Hashing() func(done, total int64) {
	var mu sync.Mutex
	var began time.Time
	return func(done, total int64) {
		if total < longHash {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		step := progress.Step{Name: "hash " + Size(total), State: progress.Started}
		switch {
		case began.IsZero():
			began = time.Now()
			u.Progress(step)
		case done == total:
			step.State, step.Elapsed = progress.Done, time.Since(began)
			u.Progress(step)
			began = time.Time{}
		}
	}
}

// longHash is the number of bytes that take a second or so to hash.
const longHash = 512 << 20

// Bytes shows how much of a long step is done.
func (u *UI) Bytes(verb string) func(done, total int64) {
	step := progress.Step{State: progress.Started}
	began := time.Now()
	return func(done, total int64) {
		if step.Name == "" {
			step.Name = verb + " " + Size(total)
			u.Progress(step)
		}
		step.State, step.Note = progress.Moving, Size(done)
		if done >= total {
			step.State, step.Note, step.Elapsed = progress.Done, "", time.Since(began)
		}
		u.Progress(step)
	}
}

func line(s progress.Step) string {
	text := fmt.Sprintf("  %-44s %8s", Plain(s.Name), Seconds(s.Elapsed))
	switch {
	case s.State == progress.Failed:
		text += "  failed"
	case s.State == progress.Interrupted:
		text += "  interrupted"
	case s.Note != "":
		text += "  " + Plain(s.Note)
	}
	return text
}

// move shows a step as a spinner with its time while it runs, and as a line after.
func (u *UI) move(s progress.Step) {
	if u.bars == nil {
		u.bars = mpb.New(mpb.WithOutput(u.bare), mpb.WithRefreshRate(120*time.Millisecond))
		u.open = make(map[string]*mpb.Bar)
	}
	switch s.State {
	case progress.Started:
		u.open[s.Name] = u.bars.New(1, mpb.SpinnerStyle(), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(Plain(s.Name), decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), decor.Any(func(decor.Statistics) string { return u.noteOf(s.Name) })))
		return
	case progress.Moving:
		u.notes.Store(s.Name, Plain(s.Note))
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
func (u *UI) noteOf(step string) string {
	if note, ok := u.notes.Load(step); ok {
		return fmt.Sprintf("  %s", note)
	}
	return ""
}

// Close ends what moves, so that what follows stands below it.
func (u *UI) Close() {
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
