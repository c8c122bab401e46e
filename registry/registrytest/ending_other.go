//go:build !linux

package registrytest

import "os/exec"

// EndWithTests does nothing here: a process whose tests are killed goes on.
func EndWithTests(*exec.Cmd) {}
