package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
)

// Exit statuses of podman and docker if the program did not start.
const (
	exitEngine = 125 // the container could not be created
	exitSignal = 128 // plus the number of the signal that ended the program
)

// grace is how long the removal of a container may take.
const grace = time.Minute

// arguments begin every run. They restrict the container.
func (i Image) arguments(more, limits []string) []string {
	args := []string{"run", "--rm", "--interactive", "--pull", "never", "--network", "none", "--read-only",
		"--cap-drop", "all", "--security-opt", "no-new-privileges", "--security-opt", "label=disable"}
	if len(limits) == 0 {
		limits = ulimits(sandbox.Limits{OpenFiles: 4096, Processes: 1024})
	}
	return append(append(args, limits...), more...)
}

// Run is sandbox.Run in a container of the image: the path of the job is a path in the image.
func (i Image) Run(ctx context.Context, job sandbox.Job) (sandbox.End, error) {
	name := "mlpromote-" + uuid.NewString()
	more := []string{"--name", name, "--workdir", job.Dir, "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())}
	for _, e := range job.Env {
		more = append(more, "--env", e)
	}
	var unfit error
	mount := func(from, at, how string) {
		if strings.Contains(from+at, ":") {
			unfit = registry.Errorf(registry.CodeInvalid, "%s cannot be mounted into a container: its path has a colon", from)
		}
		more = append(more, "--volume", from+":"+at+how)
	}
	for _, path := range job.Read {
		mount(path, path, ":ro")
	}
	for _, path := range job.Write {
		mount(path, path, "")
	}
	for _, f := range job.Files {
		mount(f.From, f.At, ":ro")
	}
	mount(job.Temp, "/tmp", "")
	if unfit != nil {
		return sandbox.End{}, unfit
	}
	args := append(i.arguments(more, ulimits(job.Limits)), "--entrypoint", job.Path, i.Digest.Encoded())
	cmd := exec.CommandContext(ctx, i.program, append(args, job.Args[1:]...)...)
	cmd.Env = environment(os.Environ())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job.Stdin), job.Output, job.Output
	cmd.WaitDelay = grace
	cmd.Cancel = func() error { return errors.Join(i.remove(context.WithoutCancel(ctx), name), cmd.Process.Kill()) }
	err := cmd.Run()
	if ctx.Err() != nil {
		return sandbox.End{}, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return sandbox.End{}, registry.Errorf(registry.CodeUnavailable, "start %s: %w", i.program, err)
	}
	end := sandbox.End{Exit: cmd.ProcessState.ExitCode(), Enforced: enforced(job.Limits)}
	switch {
	case end.Exit == exitEngine:
		return end, registry.Errorf(registry.CodeUnavailable,
			"%s cannot run a container of image %s here: %s", i.program, i.Digest, job.Output)
	case end.Exit > exitSignal:
		end.Signal, end.Exit = syscall.Signal(end.Exit-exitSignal), -1
	}
	return end, nil
}

// remove removes a container. Ending the client process does not end the container.
func (i Image) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	_, err := output(ctx, i.program, "rm", "--force", name)
	return err
}

// enforced returns the restrictions of a container that was started with our arguments.
func enforced(l sandbox.Limits) toolchain.Enforced {
	return toolchain.Enforced{
		Sandbox: toolchain.SandboxContainer, Inputs: toolchain.InputsReadOnly,
		NoOtherFiles: true, NoNetwork: true, NoOtherProcesses: true,
		NoNewPrivileges: true, UnprivilegedUser: os.Getuid() != 0, CPUSeconds: int64(l.CPU / time.Second),
		MemoryBytes: l.MemoryBytes, FileBytes: l.FileBytes, Processes: l.Processes, OpenFiles: l.OpenFiles,
	}
}

// Query runs a command of the image in the image's own environment and returns its output.
// Errors: CodeUnavailable.
func (i Image) Query(ctx context.Context, command string, args ...string) (string, error) {
	all := append(i.arguments(nil, nil), "--entrypoint", command, i.Digest.Encoded())
	return output(ctx, i.program, append(all, args...)...)
}
