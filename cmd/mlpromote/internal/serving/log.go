package serving

import (
	"log/slog"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
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
func NewLogger(u *ui.UI, format, level string) (*slog.Logger, error) {
	if format == "json" {
		return telemetry.NewLogger(ui.JSONLines(u.Stderr), format, level)
	}
	return telemetry.NewLogger(u.Stderr, format, level)
}

// LogAs makes every message for people a line of a log, where the log is JSON.
func LogAs(u *ui.UI, format string) {
	if format != "json" {
		u.LogTo(nil)
		return
	}
	log, _ := NewLogger(u, format, "info") // both are known
	u.LogTo(log)
}
