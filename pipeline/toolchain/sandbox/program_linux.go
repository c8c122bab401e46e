package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// programName is the argv[0] of the process that restricts itself and then executes the
// program. Without privileges, a process can only restrict itself.
const programName = "mlpromote: program"

// noGC keeps a process of this program from collecting garbage while its packages initialize, which takes a third of the
// start. The keeper collects afterwards, and the executed program does not get the variable.
const noGC = "GOGC=off"

// failFD is where that process reports why it could not execute the program. If it closes
// without data, the program was started.
const failFD = 3

// self is the path of this program, even if its file was moved or deleted.
const self = "/proc/self/exe"

// fork starts the program in its own process group, and waits until it is executed.
func (s *server) fork(e *toolchain.Enforced) (pid int, err error) {
	if !s.Level.UserNamespace && s.User == nil {
		s.Job.Limits.Processes = 0 // the limit would also count the user's other processes
	}
	limits, err := json.Marshal(s.Job.Limits)
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if s.User != nil {
		attr.Credential = &syscall.Credential{Uid: s.User.UID, Gid: s.User.GID, Groups: []uint32{}}
		attr.AmbientCaps = []uintptr{uintptr(s.Level.kept())}
	}
	args := append([]string{programName, string(limits), strconv.Itoa(s.Level.kept()), s.Job.Path}, s.Job.Args...)
	s.oom.first()
	pid, err = syscall.ForkExec(self, args,
		&syscall.ProcAttr{Dir: s.Job.Dir, Env: append([]string{noGC}, s.Job.Env...), Files: []uintptr{0, 1, 2, w.Fd()}, Sys: attr})
	s.oom.restore()
	w.Close()
	_ = unix.Close(0) // only the program reads it
	if err != nil {
		return 0, err
	}
	why, err := io.ReadAll(r)
	if err == nil && len(why) > 0 {
		err = errors.New(string(why))
	}
	s.Job.Limits.enforced(e)
	return pid, err
}

// kept returns the capability that a program keeps as nobody. With it, access(2) reports what the program can really do.
// Where files are confined, it reads and writes all files that it can see. Where nothing confines them, it only reads
// them: the programs and inputs of root are below folders that nobody else can enter.
func (l level) kept() int {
	if l.Sandbox == toolchain.SandboxNone {
		return unix.CAP_DAC_READ_SEARCH
	}
	return unix.CAP_DAC_OVERRIDE
}

// become restricts this process and executes the program, in the environment without [noGC], the first variable. It returns an exit status only if
// that fails.
func become() int {
	runtime.LockOSThread() // capabilities are those of a thread
	unix.CloseOnExec(failFD)
	fail := func(err error) int {
		fmt.Fprint(os.NewFile(failFD, "fail"), err)
		return 2
	}
	var l Limits
	if err := json.Unmarshal([]byte(os.Args[1]), &l); err != nil {
		return fail(err)
	}
	for _, r := range l.resources() {
		if err := r.set(); err != nil {
			return fail(err)
		}
	}
	kept, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return fail(err)
	}
	if err := dropCapabilities(kept); err != nil {
		return fail(err)
	}
	return fail(syscall.Exec(os.Args[3], os.Args[4:], os.Environ()[1:]))
}

// dropCapabilities removes all capabilities of this thread but one, which [level.kept] explains. Where root cannot
// switch to the user nobody, the program keeps running as root, and with its capabilities it could remount its inputs writable.
// no_new_privs keeps it from getting them back.
func dropCapabilities(but int) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for i := range data {
		var kept uint32
		if i == but/32 {
			kept = 1 << (but % 32)
		}
		data[i].Permitted &= kept
		data[i].Effective &= kept
		data[i].Inheritable &= kept
	}
	return os.NewSyscallError("capset", unix.Capset(&header, &data[0]))
}

// resource is one limit of setrlimit(2).
type resource struct {
	name   string
	number int
	bound  int64
}

// resources returns the limits. RLIMIT_DATA counts private writable memory (Linux 4.7 and
// later); RLIMIT_AS would also count address space that allocators reserve and never use. It
// comes last, because this process uses memory itself.
func (l Limits) resources() []resource {
	all := []resource{
		{"core", unix.RLIMIT_CORE, 0},
		{"cpu", unix.RLIMIT_CPU, int64((l.CPU + time.Second - 1) / time.Second)},
		{"fsize", unix.RLIMIT_FSIZE, l.FileBytes},
		{"nofile", unix.RLIMIT_NOFILE, l.OpenFiles},
	}
	if l.Processes > 0 {
		all = append(all, resource{"nproc", unix.RLIMIT_NPROC, l.Processes})
	}
	return append(all, resource{"data", unix.RLIMIT_DATA, l.MemoryBytes})
}

// within returns the limit to set: a process cannot raise its own hard limit.
func (r resource) within() (uint64, error) {
	var have unix.Rlimit
	if err := unix.Getrlimit(r.number, &have); err != nil {
		return 0, fmt.Errorf("read limit %s: %w", r.name, err)
	}
	return min(uint64(r.bound), have.Max), nil
}

func (r resource) set() error {
	limit, err := r.within()
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(r.number, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return fmt.Errorf("set limit %s: %w", r.name, err)
	}
	return nil
}

// enforced records the limits of a process that starts here.
func (l Limits) enforced(e *toolchain.Enforced) {
	fields := map[string]*int64{"cpu": &e.CPUSeconds, "data": &e.MemoryBytes,
		"fsize": &e.FileBytes, "nproc": &e.Processes, "nofile": &e.OpenFiles}
	for _, r := range l.resources() {
		if limit, err := r.within(); err == nil && fields[r.name] != nil {
			*fields[r.name] = int64(min(limit, 1<<62))
		}
	}
	if l.Processes <= 0 {
		e.Lacks = append(e.Lacks, "number of processes: those of the same user count too")
	}
}
