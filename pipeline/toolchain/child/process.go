package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	logBytes = 64 << 10
	// grace is how long after the end of a process its pipes may stay open.
	grace = 2 * time.Second
)

// process is one run of a program.
type process struct {
	program Program
	budget  Budget
	log     tail
}

// run starts the program, hands it the request and waits for its end: exit status
// 0 or 1. It leaves no process of the group behind.
func (p *process) run(ctx context.Context, request Request, s *scratch) (status int, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return 0, registry.Errorf(registry.CodeInvalid, "%s: options: %w", request.Verb, err)
	}
	bounded, cancel := context.WithTimeout(ctx, p.budget.Wall)
	defer cancel()
	cmd := exec.CommandContext(bounded, p.program.Path)
	cmd.Args = p.program.Args
	cmd.Dir, cmd.Env = s.work(), environment(s.work())
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = grace
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, registry.Errorf(registry.CodeUnavailable, "start %s: %w", p.program.Path, err)
	}
	// Nothing of the request is known to the child before its bounds are set.
	err = restrict(cmd.Process.Pid, p.budget)
	if err == nil {
		_, err = bytes.NewReader(text).WriteTo(stdin)
	}
	errStdin := errors.Join(err, stdin.Close())
	err = cmd.Wait()
	_ = killGroup(cmd) // it is gone where all ended well
	return p.judge(ctx, bounded, cmd, err, errStdin)
}

// killGroup ends the process and all that it started.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// judge says how the process ended.
func (p *process) judge(ctx, bounded context.Context, cmd *exec.Cmd, errWait, errStdin error) (int, error) {
	state := cmd.ProcessState
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case state == nil:
		return 0, errWait
	case bounded.Err() != nil && !state.Success():
		return 0, p.failure(Limit, "%s ran longer than %s and was stopped", p.program.Name, p.budget.Wall)
	}
	if status := state.ExitCode(); status == 0 || status == 1 {
		return status, nil
	}
	// The kernel's count, which ends the process, runs a little ahead of the one it reports.
	if state.UserTime()+state.SystemTime() >= p.budget.CPU*9/10 {
		return 0, p.failure(Limit, "%s computed for %s and was stopped", p.program.Name, p.budget.CPU)
	}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		if w.Signal() == syscall.SIGXFSZ {
			return 0, p.failure(Limit, "%s wrote a file of more than %d bytes and was stopped", p.program.Name, p.budget.FileBytes)
		}
		return 0, p.failure(ToolFailed, "%s crashed: %s", p.program.Name, w.Signal())
	}
	if errStdin != nil {
		return 0, p.failure(ToolFailed, "%s crashed: %s, before it read its request (%v)", p.program.Name, state, errStdin)
	}
	return 0, p.failure(ToolFailed, "%s crashed: %s", p.program.Name, state)
}
