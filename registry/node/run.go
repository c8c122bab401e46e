package node

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// runTimeout is far more than nvidia-smi takes, even if it first has to load the driver.
	runTimeout = 20 * time.Second
	// maxOutputBytes is far more than nvidia-smi prints about one machine.
	maxOutputBytes = 256 << 10
)

var errOutput = errors.New("more output than expected")

// Run returns the standard output of a program found through PATH. The output may have at most
// 256 KiB, and the program at most 20 seconds. It gets only the environment variables that name
// programs and libraries. An error that wraps exec.ErrNotFound means that the program does not
// exist.
func Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	out := &bounded{max: maxOutputBytes}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environment(os.Environ())
	cmd.Stdout = out
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	return out.data, err
}

// environment returns the environment variables that the program needs to find its libraries.
// Container runtimes mount these in unusual places.
func environment(environ []string) []string {
	kept := []string{"LC_ALL=C"}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); name == "PATH" || name == "LD_LIBRARY_PATH" {
			kept = append(kept, entry)
		}
	}
	return kept
}

// bounded is a buffer that refuses to grow past max. It has no ReadFrom, because io.Copy would
// use that and bypass Write.
type bounded struct {
	data []byte
	max  int
}

// Write fails if the data would exceed max, which ends the copy and the run.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.max {
		return 0, errOutput
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
