package driverproc

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// failure returns an error about the process itself, with the end of its log.
func (p *process) failure(code ErrorCode, format string, args ...any) error {
	e := Errorf(code, format, args...)
	e.Log = p.log.String()
	err := registry.Errorf(codes[code], "%w", e)
	if code == Limit {
		err = registry.WithExit(err, registry.ExitFailed) // a retry would reach the same limit
	}
	return withLog(err, e.Log)
}

// coded converts a driver's error code to one of package registry. If the tool failed, it adds
// the end of the log.
func (p *process) coded(e *Error) error {
	const messageBytes = 4 << 10
	e.Message = strings.Join(strings.Fields(visible(e.Message[:min(len(e.Message), messageBytes)])), " ") // one line: others drop newlines
	code, ok := codes[e.Code]
	if !ok {
		code = registry.CodeInternal
	}
	err := registry.Errorf(code, "%s: %w", p.program.Name, e)
	if code == registry.CodeUnavailable {
		return registry.WithExit(err, registry.ExitFailed) // a retry would fail in the same way
	}
	if code != registry.CodeInternal {
		return err
	}
	return withLog(err, e.Log)
}

func withLog(err error, log string) error {
	if last := lastLines(log); last != "" {
		return registry.WithHint(err, "the end of the driver's log:\n    %s", strings.ReplaceAll(last, "\n", "\n    "))
	}
	return err
}
