package driverproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	load    loadEnvironment
	devices accelerators
	log     tail
}

// run sends the program the request and waits until it ends with exit status 0 or 1. No process
// of it remains.
func (p *process) run(ctx context.Context, request Request, s *scratch) (status int, e toolchain.Enforced, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return 0, e, registry.Errorf(registry.CodeInvalid, "%s: options: %w", request.Verb, err)
	}
	end, e, err := p.start(ctx, s, sandbox.Job{Stdin: text, Files: s.files(), Write: []string{request.OutDir}})
	if err != nil {
		return 0, e, err
	}
	status, err = p.evaluate(end)
	return status, e, err
}

// start runs the program in its sandbox until it ends. The files of job are added to the
// program's own files and its scratch folder.
func (p *process) start(ctx context.Context, s *scratch, job sandbox.Job) (sandbox.End, toolchain.Enforced, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, p.budget.Wall, errWall)
	defer cancel()
	run := p.program.Run
	if run == nil {
		run = sandbox.Run
	}
	job.Path, job.Args, job.Env, job.Dir, job.Output = p.program.Path, p.program.Args,
		p.devices.environment(environment(s.work(), p.load)), s.work(), &p.log
	job.Devices = p.devices.devices
	job.Read, job.Inputs, job.Temp = p.program.Reads, s.in(), s.temp()
	job.Write = append([]string{s.work(), s.answer()}, job.Write...)
	job.Limits, job.Most, job.Least = p.budget.limits(), p.budget.Sandbox, p.budget.Least
	if job.Loopback = p.program.Loopback; job.Loopback {
		job.Least = toolchain.SandboxNamespaces
	}
	end, err := run(bounded, job)
	e := end.Enforced
	e.WallSeconds = int64(p.budget.Wall / time.Second)
	if errors.Is(err, errWall) && ctx.Err() == nil {
		err = p.failure(Limit, "%s ran longer than %s and was stopped", p.program.Name, short(p.budget.Wall))
	}
	return end, e, err
}

// short is a duration with at most one digit after the point: a part of what is left of a budget has nine.
func short(d time.Duration) time.Duration {
	unit := time.Second
	for unit > max(d.Abs(), 1) {
		unit /= 1000
	}
	return d.Round(max(unit/10, 1))
}

// errWall is the reason to stop a program that exceeds the time of its budget.
var errWall = errors.New("the time of the budget is used up")

// evaluate returns an error that says how the process ended, or nil.
func (p *process) evaluate(end sandbox.End) (int, error) {
	switch {
	case end.Exit == 0 || end.Exit == 1:
		return end.Exit, nil
	// The kernel enforces the limit on another figure than it reports in the end.
	case end.Signal == syscall.SIGXCPU, end.Signal == syscall.SIGKILL &&
		end.CPU >= p.budget.CPU/2, end.CPU >= p.budget.CPU*9/10:
		return 0, p.failure(Limit, "%s computed for %s and was stopped", p.program.Name, p.budget.CPU)
	case end.Signal == syscall.SIGXFSZ:
		return 0, p.failure(Limit,
			"%s wrote a file of more than %d bytes and was stopped", p.program.Name, p.budget.FileBytes)
	}
	if end.Signal == syscall.SIGKILL { // not by us: the kernel ran out of memory, or somebody ended it
		return 0, p.failure(Limit, "%s was killed from outside, as happens when the machine has no memory left", p.program.Name)
	}
	return 0, p.failure(ToolFailed, "%s crashed: %s", p.program.Name, ending(end, p.log.String()))
}

// ending describes how a program ended. A program in Go reports a signal itself and exits with 2.
func ending(end sandbox.End, log string) string {
	if end.Signal != 0 {
		return end.Signal.String()
	}
	if at := crashedGo.FindStringSubmatch(log); end.Exit == 2 && at != nil {
		return at[1]
	}
	return fmt.Sprintf("exit status %d", end.Exit)
}

// Program is what to start.
type Program struct {
	Name    string   // name in messages: "onnxruntime"
	Path    string   // of the executable
	Args    []string // its arguments; the first is its own name
	Library string   // for Request.Library
	Run     Runner   // nil for sandbox.Run
	Reads   []string // files and folders that it consists of, without system software
	// Loopback lets its processes reach each other by 127.0.0.1. It needs a sandbox with a network of its own.
	Loopback bool
}

// Runner runs a program somewhere else, such as in a container. It follows the contract of
// sandbox.Run.
type Runner func(context.Context, sandbox.Job) (sandbox.End, error)
