package ui

import (
	"io"
	"log/slog"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// AsksForJSONLog reports whether a command line starts a service whose log is JSON. It looks
// before the command line is parsed, so that an error in that is JSON too. What serve.yaml
// says is known later.
func AsksForJSONLog(args []string, getenv func(string) string) bool {
	if !slices.Contains(args, "serve") {
		return false
	}
	format := getenv("MLPROMOTE_LOG_FORMAT")
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--log-format="); ok {
			format = value
		} else if arg == "--log-format" && i+1 < len(args) {
			format = args[i+1]
		}
	}
	return format == "json"
}

// NewLogger makes the log of a service, on stderr.
func (u *UI) NewLogger(format, level string) (*slog.Logger, error) {
	if format == "json" {
		return telemetry.NewLogger(jsonLines{u.Stderr}, format, level)
	}
	return telemetry.NewLogger(u.Stderr, format, level)
}

// LogAs makes every message for people a line of a log, where the log is JSON: whoever reads
// it line by line can read all of them.
func (u *UI) LogAs(format string) {
	u.log = nil
	if format == "json" {
		u.log, _ = u.NewLogger(format, "info") // both are known
	}
}

// jsonLines escapes what cannot be seen so that a line stays JSON.
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
