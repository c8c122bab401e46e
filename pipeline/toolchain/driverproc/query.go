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

// Query runs a program for its output, such as its version, in the same sandbox and
// environment as a job: with its own files, without the network and without our environment.
// Errors: CodeUnavailable if it does not start, takes longer than wall or ends with another
// status than 0. The output is returned in every case.
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
		return output, withLog(registry.Errorf(registry.CodeUnavailable, "%s ended with %s", program.Path, ending(end)),
			output)
	}
	return output, nil
}
