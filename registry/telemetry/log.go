package telemetry

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
)

// NewLogger returns a logger with a format, "text" or "json", and a minimum level: "debug",
// "info", "warn" or "error". It adds the request ID to lines about a request. In JSON,
// durations are in seconds. Errors: CodeInvalid.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	options, all := new(slog.HandlerOptions), &lines{to: w}
	var least slog.Level
	switch level {
	case "debug":
		least = slog.LevelDebug
	case "info":
	case "warn":
		least = slog.LevelWarn
	case "error":
		least = slog.LevelError
	default:
		return nil, registry.Errorf(registry.CodeInvalid, "log-level %q: want debug, info, warn or error", level)
	}
	options.Level = least
	switch format {
	case "text":
		return slog.New(named{slog.NewTextHandler(all, options), all}), nil
	case "json":
		options.ReplaceAttr = inSeconds
		return slog.New(named{slog.NewJSONHandler(all, options), all}), nil
	}
	return nil, registry.Errorf(registry.CodeInvalid, "log-format %q: want text or json", format)
}

// inSeconds writes durations in seconds, as metrics do. The JSON handler writes nanoseconds.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// The keys of a line about a request.
const (
	requestKey = "request"
	traceKey   = "trace"
)

// named adds the IDs of the request and of its trace to each line.
type named struct {
	slog.Handler
	lines *lines
}

// Handle adds the IDs of the request and of its trace, unless the line already has them.
func (n named) Handle(ctx context.Context, line slog.Record) error {
	has := false
	line.Attrs(func(a slog.Attr) bool {
		has = a.Key == requestKey
		return !has
	})
	if id := requestid.Of(ctx); id != "" && !has {
		line = line.Clone()
		line.AddAttrs(slog.String(requestKey, id))
		if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
			line.AddAttrs(slog.String(traceKey, span.TraceID().String()))
		}
	}
	if err := n.Handler.Handle(ctx, line); err != nil {
		return err
	}
	return n.lines.flush()
}

// WithAttrs keeps adding the IDs.
func (n named) WithAttrs(attributes []slog.Attr) slog.Handler {
	return named{n.Handler.WithAttrs(attributes), n.lines}
}

// WithGroup keeps adding the IDs, inside the group.
func (n named) WithGroup(name string) slog.Handler { return named{n.Handler.WithGroup(name), n.lines} }
