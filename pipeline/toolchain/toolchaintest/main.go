package toolchaintest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// Main is the TestMain of a package whose tests run drivers; it gives the exit status.
// programs are what this test program is under another name, by the last element of
// args[0]. Tests get a temporary folder of their own; what drivers leave in it, and
// processes that they leave, fail the run.
func Main(m *testing.M, programs map[string]func() int) int {
	if exit, keeper := sandbox.Enter(); keeper {
		return exit
	}
	if os.Args[0] == fakeName {
		syscall.Exit(fake(os.Args[1])) // without the second that the race detector takes to leave
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

// left says what drivers have left, or nothing.
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
