package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// serve does the work of the keeper process, and returns its exit status.
func serve() int {
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportFD)
	in, out := os.NewFile(ordersFD, "orders"), os.NewFile(reportFD, "reports")
	s := &server{reports: json.NewEncoder(out), gone: make(chan struct{}),
		kin: make(chan ended, 1), alone: make(chan struct{})}
	if err := json.NewDecoder(in).Decode(&s.orders); err != nil {
		return 2
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(s.gone)
	}()
	pid, enforced, err := s.start()
	switch {
	case err != nil:
		var program programError
		return s.tell(report{Failed: err.Error(), Program: errors.As(err, &program)})
	case s.Probe:
		return s.tell(report{Started: &enforced})
	}
	go s.reap(pid)
	if s.tell(report{Started: &enforced}) != 0 {
		s.endAll(pid)
		return 2
	}
	select {
	case <-s.gone:
		s.endAll(pid)
		return 2
	case e := <-s.kin:
		e.Left = s.endAll(pid)
		return s.tell(report{Ended: &e})
	}
}

// programError says that the program did not start although the sandbox works.
type programError struct{ error }

func (e programError) Unwrap() error { return e.error }

// start sets up the sandbox and starts the program in it. It stays on one OS thread, because
// restrictions apply to that thread and the program is started from it.
func (s *server) start() (pid int, e toolchain.Enforced, err error) {
	runtime.LockOSThread()
	s.oom = openOOMScore()
	e = toolchain.Enforced{Sandbox: s.Level.Sandbox}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, e, err
	}
	if s.User != nil {
		if err := s.User.give(append([]string{s.Job.Temp}, s.Job.Write...)); err != nil {
			return 0, e, err
		}
	}
	switch s.Level.Sandbox {
	case toolchain.SandboxNamespaces:
		e.NoOtherFiles, e.NoNetwork, e.NoOtherProcesses = true, true, true
		if s.Job.Loop {
			err = raiseLoopback()
		}
		if err == nil {
			err = s.enterRoot()
		}
	case toolchain.SandboxLandlock:
		e.NoOtherFiles = true
		e.Lacks, err = s.landlock()
	}
	if err != nil {
		return 0, e, err
	}
	if err := s.weaken(); err != nil {
		return 0, e, err
	}
	if n := len(s.Job.Devices); n > 0 {
		e.Lacks = append(e.Lacks, fmt.Sprintf("devices: it uses %s", strings.Join(s.Job.Devices, ", ")))
	}
	if s.User != nil && s.Level.kept() != unix.CAP_DAC_OVERRIDE {
		e.Lacks = append(e.Lacks, "files: nothing keeps it from reading those of other users")
	}
	e.NoNewPrivileges, e.UnprivilegedUser = true, os.Getuid() != 0 || s.User != nil
	if s.Probe {
		return 0, e, nil
	}
	if pid, err = s.fork(&e); err != nil {
		return 0, e, programError{fmt.Errorf("start %s: %w", s.Job.Path, err)}
	}
	return pid, e, nil
}

// weaken removes from this thread the privileges that the program must not have.
func (s *server) weaken() error {
	err := errors.Join(
		leaveKeyring(),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
	)
	if s.User == nil {
		return err
	}
	// A process that becomes "nobody" keeps only one capability until it executes the program: see kept.
	// access(2) then reports what the program can really do, not what nobody could do.
	return errors.Join(err, unix.Prctl(unix.PR_SET_SECUREBITS, securebitNoSetuidFixup, 0, 0, 0))
}

// leaveKeyring gives this thread an empty session keyring of its own, so that the program has no keys of whoever
// started it. Where the system has or allows no keyrings, the program cannot use them either.
func leaveKeyring() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return nil
	}
	return os.NewSyscallError("keyctl", err)
}

// securebitNoSetuidFixup is SECBIT_NO_SETUID_FIXUP of linux/securebits.h.
const securebitNoSetuidFixup = 1 << 2

// reap waits for every process that becomes a child of this one.
func (s *server) reap(pid int) {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		done, err := unix.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			close(s.alone)
			return
		case done == pid:
			s.kin <- ended{Status: uint32(status), CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
		}
	}
}

// endAll ends every process that the program started, and returns the number of those that it
// could not end in time.
func (s *server) endAll(pid int) int {
	deadline := time.After(grace / 2)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		s.kill(pid)
		select {
		case <-s.alone:
			return 0
		case <-deadline:
			return max(len(children()), 1)
		case <-tick.C:
		}
	}
}

// kill signals all processes if this is the first process of its process namespace. Otherwise
// it signals the program's group, and orphans that became children of this process.
func (s *server) kill(pid int) {
	if s.Level.Sandbox == toolchain.SandboxNamespaces {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
	for _, child := range children() {
		_ = unix.Kill(child, unix.SIGKILL)
	}
}
