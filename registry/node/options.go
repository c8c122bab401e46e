package node

import (
	"context"
	"path/filepath"
)

// Options configure the places where Describe looks. The zero Options describe this machine.
type Options struct {
	// Runtimes are versions by name that the caller knows to be installed, such as those of its
	// own toolchains. They replace what Describe finds.
	Runtimes map[string]string
	// Root is the folder to use as "/"; empty means "/". The processor is always this
	// machine's.
	Root string
	// Getenv reads PATH and LD_LIBRARY_PATH; nil means os.Getenv.
	Getenv func(string) string
	// Exec returns the standard output of a program that it finds through PATH. An error that
	// wraps exec.ErrNotFound means that the program is not installed. Nil means Run.
	Exec func(ctx context.Context, name string, args ...string) ([]byte, error)
}

// path returns an absolute path of the machine below Root.
func (o Options) path(absolute string) string { return filepath.Join(o.Root, absolute) }
