package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// grace is how long the keeper may take to end a program, and how long after that its pipes may
// stay open.
const grace = time.Minute

func newOrders(job Job, l level) orders {
	return orders{Level: l, User: nobody(l.kept()), Job: wire{
		Path: job.Path, Args: job.Args, Env: job.Env, Dir: job.Dir, Read: readable(job), Files: job.Files,
		Inputs: job.Inputs, Write: job.Write, Devices: job.Devices, Temp: job.Temp, Loop: job.Loopback, Limits: job.Limits}}
}

// readable adds the program's executable to the files that it can see, if that file exists.
func readable(job Job) []string {
	if job.Path == "" {
		return job.Read
	}
	return append(slices.Clone(job.Read), job.Path)
}

// keeper is the parent's handle of a keeper process.
type keeper struct {
	orders orders
	group  cgroup
	cmd    *exec.Cmd
	alive  *os.File // closing it ends everything
	told   *os.File
}

// looseProcesses is how many processes and threads a program may have where nothing bounds the memory of all together.
const looseProcesses = 512

// run starts a keeper and waits for its reports.
func (k *keeper) run(ctx context.Context, job Job) (End, error) {
	var lacks []string
	if !k.orders.Probe {
		group, err := newCgroup(job.Limits)
		if err != nil {
			lacks = []string{"memory of all processes together: no control group can be made: " + withoutPath(err)}
			k.orders.Job.Limits.Processes = min(job.Limits.Processes, looseProcesses)
		}
		k.group = group
		defer group.remove()
	}
	end, err := k.attend(ctx, job)
	end.Enforced.Lacks = append(end.Enforced.Lacks, lacks...)
	return end, err
}

// withoutPath returns the text of an error without the path of a group, whose name is random.
func withoutPath(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return err.Error()
}

// attend starts a keeper and waits for its reports.
func (k *keeper) attend(ctx context.Context, job Job) (End, error) {
	stdin, err := k.start(job.Output)
	if err != nil {
		return End{}, registry.Errorf(registry.CodeInternal, "start the sandbox %s: %w", k.orders.Level, err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = k.alive.Close()
		_ = k.told.SetReadDeadline(time.Now().Add(grace)) // pipes that we create support deadlines
	})
	defer stop()
	end, err := k.listen(stdin, job)
	_ = k.alive.Close()
	_ = stdin.Close()
	_ = k.cmd.Process.Kill() // the keeper has nothing left to do
	_ = k.cmd.Wait()         // its exit status does not matter
	_ = k.told.Close()
	if ctx.Err() != nil && (err != nil || end.Exit != 0) {
		return end, context.Cause(ctx)
	}
	return end, err
}

func (k *keeper) start(output io.Writer) (stdin *os.File, err error) {
	pipes := make([]*os.File, 0, 6)
	defer func() {
		for i, f := range pipes {
			if err != nil || i%2 == 0 { // the keeper has these now
				f.Close()
			}
		}
	}()
	pipe := func(forKeeper int) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		ends := []*os.File{r, w}
		pipes = append(pipes, ends[forKeeper], ends[1-forKeeper])
		return nil
	}
	if err := errors.Join(pipe(0), pipe(0), pipe(1)); err != nil {
		return nil, err
	}
	k.alive, stdin, k.told = pipes[1], pipes[3], pipes[5]
	k.cmd = exec.Command(self) //nolint:noctx // run ends it, after the processes that it started
	k.cmd.Args, k.cmd.Env = []string{keeperName}, []string{noGC}
	k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = pipes[2], output, output
	k.cmd.ExtraFiles = []*os.File{ordersFD - 3: pipes[0], reportFD - 3: pipes[4]}
	k.cmd.SysProcAttr = k.orders.Level.attributes()
	k.cmd.WaitDelay = grace
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	if err := k.group.add(k.cmd.Process.Pid); err != nil { // it waits for its orders, and has started nothing
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		return nil, errors.Join(err, k.alive.Close(), stdin.Close(), k.told.Close())
	}
	return stdin, nil
}

// attributes are the process attributes of a keeper for the level.
func (l level) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if l.Sandbox != toolchain.SandboxNamespaces {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !l.UserNamespace {
		return attr
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	uid, gid := os.Geteuid(), os.Getegid()
	if uid != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Exec removes the capabilities of a new user namespace from all users but its root.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE, unix.CAP_NET_ADMIN}
		return attr
	}
	attr.UidMappings, attr.GidMappings = sameIDs("/proc/self/uid_map"), sameIDs("/proc/self/gid_map")
	attr.GidMappingsEnableSetgroups = true
	return attr
}

// listen sends the keeper its orders and the program its input, and reads the reports.
func (k *keeper) listen(stdin *os.File, job Job) (End, error) {
	if err := json.NewEncoder(k.alive).Encode(k.orders); err != nil {
		return End{}, registry.Errorf(registry.CodeInternal, "send orders to the sandbox %s: %w", k.orders.Level, err)
	}
	reports := json.NewDecoder(k.told)
	var r report
	if err := reports.Decode(&r); err != nil {
		return End{}, registry.Errorf(registry.CodeInternal, "the sandbox %s ended unexpectedly: %w", k.orders.Level, err)
	}
	if r.Started == nil {
		code := registry.CodeInternal
		if r.Program {
			code = registry.CodeUnavailable
		}
		return End{}, registry.Lastingf(code, "%s", r.Failed)
	}
	end := End{Enforced: *r.Started}
	if k.orders.Probe {
		return end, nil
	}
	go func() {
		_, _ = stdin.Write(job.Stdin) // a program need not read its input
		_ = stdin.Close()
	}()
	r = report{}
	if err := reports.Decode(&r); err != nil || r.Ended == nil {
		return end, registry.Errorf(registry.CodeInternal,
			"the sandbox %s of %s ended unexpectedly: %w", k.orders.Level, job.Path, err)
	}
	return end.with(*r.Ended)
}

// with adds how the program ended.
func (e End) with(r ended) (End, error) {
	status := syscall.WaitStatus(r.Status)
	e.Exit, e.CPU = status.ExitStatus(), r.CPU
	if status.Signaled() {
		e.Signal = status.Signal()
	}
	if r.Left > 0 {
		return e, registry.Errorf(registry.CodeInternal, "%d processes that the program started could not be ended", r.Left)
	}
	return e, nil
}
