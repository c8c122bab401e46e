package ui

import (
	"io"
	"log/slog"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// LogTo makes every message for people a line of a log; nil ends that. Whoever reads a log that is JSON line
// by line can then read all of them.
func (u *UI) LogTo(log *slog.Logger) { u.log = log }

// JSONLines escapes what cannot be seen so that a line that is written to it stays JSON.
func JSONLines(to io.Writer) io.Writer { return jsonLines{to} }

// jsonLines is what JSONLines makes.
type jsonLines struct{ to io.Writer }

// Write writes whole lines.
func (w jsonLines) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, seenJSON(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// logNote is a note as a line of the log.
func (u *UI) logNote(text string) {
	if warning, ok := strings.CutPrefix(text, "WARNING: "); ok {
		u.log.Warn(warning)
		return
	}
	u.log.Info(text)
}

// logFailure is the error of a verb, with what to do about it, as lines of the log.
func (u *UI) logFailure(err error) {
	var hint []any
	if hints := registry.Hints(err); len(hints) > 0 {
		hint = []any{"hint", strings.Join(hints, "; ")}
	}
	for _, text := range messages(err) {
		u.log.Error(text, append(hint, "code", registry.CodeOf(err))...)
	}
}
