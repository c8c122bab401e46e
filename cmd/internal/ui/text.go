package ui

import (
	"errors"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Short is a digest, cut to a length that people can compare.
func Short(d registry.Digest) string {
	return Plain(string(d[:min(len(d), 19)]))
}

// Size is a number of bytes for people.
func Size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
}

// Seconds is a time for people.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Dash is a text for a cell of a table, where nothing is a dash.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
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
