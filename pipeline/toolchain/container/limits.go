package container

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// ulimits are the arguments for limits: those that say nothing are left as they are. Without
// them podman asks for more files and processes than a process without privileges may have.
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
