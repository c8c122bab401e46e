package driverproc

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// failure is an error about the process itself, with the end of its log.
func (p *process) failure(code ErrorCode, format string, args ...any) error {
	e := Errorf(code, format, args...)
	e.Log = p.log.String()
	err := registry.Errorf(codes[code], "%w", e)
	if code == Limit {
		err = registry.WithExit(err, registry.ExitFailed) // a bound that stays
	}
	return withLog(err, e.Log)
}

// coded gives a driver's error the code that the rest of the program knows. A tool
// that failed says why in its log.
func (p *process) coded(e *Error) error {
	const messageBytes = 4 << 10
	e.Message = visible(e.Message[:min(len(e.Message), messageBytes)])
	code, ok := codes[e.Code]
	if !ok {
		code = registry.CodeInternal
	}
	err := registry.Errorf(code, "%s: %w", p.program.Name, e)
	if code == registry.CodeUnavailable {
		return registry.WithExit(err, registry.ExitFailed) // what a tool lacks stays away
	}
	if code != registry.CodeInternal {
		return err
	}
	return withLog(err, e.Log)
}

func withLog(err error, log string) error {
	if last := lastLines(log); last != "" {
		return registry.WithHint(err, "the driver's last words:\n    %s", strings.ReplaceAll(last, "\n", "\n    "))
	}
	return err
}
