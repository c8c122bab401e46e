//go:build !linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Enter does nothing on this system, which has no keeper.
func Enter() (exit int, keeper bool) { return 0, false }

// grace is how long after the end of a process its pipes may stay open.
const grace = time.Minute

// Run runs the program of the job on copies of its files, and ends its process group when the
// program or ctx ends. There are no other restrictions. If ctx ends first, the error is that of
// ctx. Errors: CodeUnavailable for a program that does not start.
func Run(ctx context.Context, job Job) (End, error) {
	if job.Least != "" && job.Least != toolchain.SandboxNone {
		return End{}, registry.Errorf(registry.CodeUnavailable, "%s runs only in the sandbox %q, which there is on Linux", job.Args[0], job.Least)
	}
	if err := place(job.Files, false); err != nil {
		return End{}, err
	}
	cmd := exec.CommandContext(ctx, job.Path)
	cmd.Args, cmd.Env, cmd.Dir = job.Args, job.Env, job.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job.Stdin), job.Output, job.Output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, grace
	if err := cmd.Start(); err != nil {
		return End{}, registry.Errorf(registry.CodeUnavailable, "start %s: %w", job.Path, err)
	}
	err := cmd.Wait()
	_ = kill() // normally the process is gone already
	state := cmd.ProcessState
	var exited *exec.ExitError
	if state == nil || err != nil && !errors.As(err, &exited) &&
		!errors.Is(err, syscall.EPIPE) && !errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return End{}, err
	}
	end := End{Exit: state.ExitCode(), CPU: state.UserTime() + state.SystemTime(), Enforced: toolchain.Enforced{
		Sandbox: toolchain.SandboxNone, Inputs: toolchain.InputsCopied,
		Lacks: []string{"limits: on this system a process cannot limit another"}}}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Signal = status.Signal()
	}
	if ctx.Err() != nil && !state.Success() {
		return end, context.Cause(ctx)
	}
	return end, nil
}
