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
	// runTimeout is far more than nvidia-smi takes with a driver to wake up.
	runTimeout = 20 * time.Second
	// maxOutputBytes is far more than it says about the devices of one machine.
	maxOutputBytes = 256 << 10
)

var errOutput = errors.New("more output than any answer has")

// Run gives the standard output of a program found on PATH, of at most 256 KiB and
// after at most 20 seconds. The program sees where programs and libraries are, and nothing
// else of our environment. An error that is exec.ErrNotFound means that there is none.
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

// environment is what a program that tells about the machine needs of an environment:
// where it finds its libraries, which containers mount into places of their own.
func environment(environ []string) []string {
	kept := []string{"LC_ALL=C"}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); name == "PATH" || name == "LD_LIBRARY_PATH" {
			kept = append(kept, entry)
		}
	}
	return kept
}

// bounded is a buffer that refuses to grow past max. It has no ReadFrom, by which
// io.Copy would go around Write.
type bounded struct {
	data []byte
	max  int
}

// Write refuses the first write that would not fit, which ends the copy and the run.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.max {
		return 0, errOutput
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
