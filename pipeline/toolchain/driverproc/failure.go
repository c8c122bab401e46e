package driverproc

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
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
func (p *process) coded(e *Error, job toolchain.Job) error {
	const messageBytes = 4 << 10
	e.Message = line(e.Message, messageBytes)
	e.Subject = known(e.Subject, job)
	code, ok := codes[e.Code]
	if !ok {
		code = registry.CodeInternal
	}
	err := registry.Errorf(code, "%s: %w", p.program.Name, &toolchain.Failure{Subject: e.Subject, Err: e})
	if code == registry.CodeUnavailable {
		return registry.WithExit(err, registry.ExitFailed) // a retry would fail in the same way
	}
	if code != registry.CodeInternal {
		return err
	}
	return withLog(err, e.Log)
}

// line makes one line of a driver's text: others drop newlines.
func line(text string, maxBytes int) string {
	return strings.Join(strings.Fields(visible(text[:min(len(text), maxBytes)])), " ")
}

// known drops the engines and shards that the job does not have, and cases without a shard.
func known(s toolchain.Subject, job toolchain.Job) toolchain.Subject {
	const nameBytes = 200
	s.Op, s.DType = line(s.Op, nameBytes), line(s.DType, nameBytes)
	if job.Run == nil || !slices.ContainsFunc(job.Run.Engines, func(e toolchain.RunEngine) bool { return e.ID == s.Engine }) {
		s.Engine = ""
	}
	if !slices.ContainsFunc(job.Inputs, func(in toolchain.Input) bool { return in.Role == toolchain.RoleCases && in.Name == s.Shard }) {
		s.Shard = ""
	}
	if s.Shard == "" || s.Case == nil || s.Row < 0 || *s.Case < s.Row {
		s.Row, s.Case = 0, nil
	}
	return s
}

func withLog(err error, log string) error {
	if last := lastLines(log); last != "" {
		return registry.WithHint(err, "the end of the driver's log:\n    %s", strings.ReplaceAll(last, "\n", "\n    "))
	}
	return err
}
