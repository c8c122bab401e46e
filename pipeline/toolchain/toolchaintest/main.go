package toolchaintest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// Main is the TestMain of packages whose tests run drivers; it returns the exit status.
// programs are what this test program does under other names, by the last element of args[0].
// Tests get their own temporary folder. Files or processes that drivers leave fail the run.
func Main(m *testing.M, programs map[string]func() int) int {
	if exit, keeper := sandbox.Enter(); keeper {
		return exit
	}
	if os.Args[0] == fakeName {
		syscall.Exit(fake(os.Args[1])) // disables the second that the race detector waits at exit
	}
	if program, ok := programs[filepath.Base(os.Args[0])]; ok {
		return program()
	}
	temp, err := os.MkdirTemp("", "toolchaintest-")
	if err == nil {
		err = os.Setenv("TMPDIR", temp)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(temp)
	status := m.Run()
	if left := left(temp); left != "" {
		fmt.Fprintln(os.Stderr, "FAIL: drivers left", left)
		return 1
	}
	return status
}

// left describes what drivers have left, or returns "".
func left(temp string) string {
	folders, err := filepath.Glob(filepath.Join(temp, "mlpromote-*"))
	if err != nil || len(folders) > 0 {
		return fmt.Sprint("folders: ", folders, err)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		return fmt.Sprint("a process: ", pid, err)
	}
	return ""
}
