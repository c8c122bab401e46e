package toolchaintest

import (
	"os"
	"syscall"
)

// WriteProgram writes a script that a test runs. No process starts meanwhile, since it would hold the file open for
// writing for a moment, in which running the script fails with "text file busy" (https://go.dev/issue/22315).
func WriteProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o755) //nolint:gosec // a program is executable
}
