package driverproc

import (
	"context"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
)

// queryBytes bounds the output of a queried program; the end of it is kept.
const queryBytes = 4 << 20

// Query runs a program and returns its output, such as its version. Sandbox and environment are
// those of a job: the program's own files, no network, a clean environment. Errors:
// CodeUnavailable if it does not start, takes longer than wall or ends with a status other than
// 0. The output is returned in every case.
func Query(ctx context.Context, program Program, wall time.Duration) (output string, err error) {
	s, err := newScratch()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	p := &process{program: program, budget: Budget{Wall: wall, CPU: wall}.withDefaults(), log: tail{max: queryBytes}}
	end, _, err := p.start(ctx, s, sandbox.Job{})
	output = p.log.String()
	if err != nil {
		return output, err
	}
	if end.Exit != 0 {
		return output, withLog(registry.Errorf(registry.CodeUnavailable, "%s ended with %s", program.Path, ending(end, p.log.String())),
			output)
	}
	return output, nil
}
