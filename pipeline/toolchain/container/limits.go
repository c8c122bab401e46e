package container

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// ulimits returns the arguments for limits; a limit that is not set stays as it is. Without
// these arguments podman requests more files and processes than an unprivileged process may
// have.
func ulimits(l sandbox.Limits) []string {
	args := []string{"--ulimit", "core=0:0"}
	for _, u := range []struct {
		name   string
		number int
		bound  int64
	}{
		{"cpu", unix.RLIMIT_CPU, int64((l.CPU + time.Second - 1) / time.Second)},
		{"data", unix.RLIMIT_DATA, l.MemoryBytes},
		{"fsize", unix.RLIMIT_FSIZE, l.FileBytes},
		{"nofile", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"nproc", unix.RLIMIT_NPROC, l.Processes},
	} {
		var have syscall.Rlimit
		if u.bound <= 0 || syscall.Getrlimit(u.number, &have) != nil {
			continue
		}
		n := min(uint64(u.bound), have.Max)
		args = append(args, "--ulimit", fmt.Sprintf("%s=%d:%d", u.name, n, n))
	}
	return args
}
