package child

import (
	"context"
	"encoding/json"
	"errors"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
)

const logBytes = 64 << 10

// process is one run of a program.
type process struct {
	program Program
	budget  Budget
	log     tail
}

// run hands the program the request and waits for its end: exit status 0 or 1. It
// leaves no process behind.
func (p *process) run(ctx context.Context, request Request, s *scratch) (status int, e toolchain.Enforced, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return 0, e, registry.Errorf(registry.CodeInvalid, "%s: options: %w", request.Verb, err)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, p.budget.Wall, errWall)
	defer cancel()
	start := p.program.Run
	if start == nil {
		start = sandbox.Run
	}
	end, err := start(bounded, sandbox.Job{
		Path: p.program.Path, Args: p.program.Args, Env: environment(s.work()), Dir: s.work(), Stdin: text, Output: &p.log,
		Read: p.program.Reads, Files: s.files(), Inputs: s.in(), Temp: s.temp(), Write: []string{s.work(), s.answer(), request.OutDir},
		Limits: p.budget.limits(), Most: p.budget.Sandbox,
	})
	e = end.Enforced
	e.WallSeconds = int64(p.budget.Wall / time.Second)
	if errors.Is(err, errWall) && ctx.Err() == nil {
		return 0, e, p.failure(Limit, "%s ran longer than %s and was stopped", p.program.Name, p.budget.Wall)
	}
	if err != nil {
		return 0, e, err
	}
	status, err = p.judge(end)
	return status, e, err
}

// errWall is why a program is stopped that takes longer than its budget.
var errWall = errors.New("the wall-clock budget is spent")

// judge says how the process ended.
func (p *process) judge(end sandbox.End) (int, error) {
	switch {
	case end.Exit == 0 || end.Exit == 1:
		return end.Exit, nil
	// What the kernel counts towards the limit and what it reports in the end differ.
	case end.Signal == syscall.SIGXCPU, end.Signal == syscall.SIGKILL && end.CPU >= p.budget.CPU/2, end.CPU >= p.budget.CPU*9/10:
		return 0, p.failure(Limit, "%s computed for %s and was stopped", p.program.Name, p.budget.CPU)
	case end.Signal == syscall.SIGXFSZ:
		return 0, p.failure(Limit, "%s wrote a file of more than %d bytes and was stopped", p.program.Name, p.budget.FileBytes)
	case end.Signal != 0:
		return 0, p.failure(ToolFailed, "%s crashed: %s", p.program.Name, end.Signal)
	}
	return 0, p.failure(ToolFailed, "%s crashed: exit status %d", p.program.Name, end.Exit)
}
