package registrytest

import (
	"os/exec"
	"syscall"
)

// EndWithTests makes the kernel end a process, which is not started yet, when the process of
// the tests ends, however that ends.
func EndWithTests(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
