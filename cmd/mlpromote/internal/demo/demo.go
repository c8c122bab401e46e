// Package demo makes a registry to look at: example models that are really built, verified, promoted, refused, rolled
// back and quarantined by this program, each step a command that a person could type.
package demo

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// Verb is what mlpromote demo needs.
type Verb struct {
	UI *ui.UI
	// Log gets what the commands print, and the commands.
	Log io.Writer
	// Environment is that of this process: NAME=VALUE. Commands get it without the variables that name a registry.
	Environment []string
}

// Made is what the demo made.
type Made struct {
	Folder   string   `json:"folder"`
	Data     string   `json:"data"` // its data directory
	Commands []string `json:"commands"`
}

// DefaultFolder is where the demo is made unless its argument says otherwise.
const DefaultFolder = "mlpromote-demo"

// Inside the folder of the demo.
const (
	dataFolder   = "data"
	modelsFolder = "models"
	// commandsFile has the commands that were run. It is written last: with it, the demo is whole.
	commandsFile = "commands.txt"
)

// Command is mlpromote demo.
func (v Verb) Command() *cobra.Command {
	var serve bool
	var listen string
	c := &cobra.Command{
		Use:   "demo [FOLDER]",
		Short: "Make a registry with example models to look at, and serve its pages",
		Long: `Builds, verifies and promotes example models into a data directory of their own, by the
commands that it prints: two models in prod, one of them rolled back, the other quarantined; an
engine that fails verification and is refused; a release that waits, and one without a report;
two node types, one without a fitting engine. Takes a minute, after toolchains are installed.

With --serve, then serves the pages of that registry until it is interrupted. A folder that has
the whole demo is served as it is. Nothing outside FOLDER is changed, and no other registry is
asked: variables that name one are left out.

FOLDER defaults to mlpromote-demo. stdout: the folder, or with --serve the URL.`,
		Example: "  mlpromote demo --serve\n  mlpromote demo /tmp/shop",
		Args:    command.AtMost("FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range []string{"registry", "data", "database", "storage", "keys", "policy-dir"} {
				if c.Flag(name).Changed {
					return registry.Errorf(registry.CodeInvalid, "demo makes a data directory and keys of its own: leave out --%s", name)
				}
			}
			folder := DefaultFolder
			if len(args) == 1 {
				folder = args[0]
			}
			return v.run(c.Context(), folder, serve, listen)
		},
	}
	c.Flags().BoolVar(&serve, "serve", false, "serve the pages of the demo until interrupted")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:5080", "with --serve: HOST:PORT to answer at; port 0 takes a free one")
	return c
}

func (v Verb) run(ctx context.Context, folder string, serve bool, listen string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	whole, err := isWhole(folder)
	if err != nil {
		return err
	}
	if whole && !serve {
		return registry.Errorf(registry.CodeInvalid, "%s has the demo already: add --serve to look at it, or remove the folder", folder)
	}
	made := Made{Folder: folder, Data: filepath.Join(folder, dataFolder)}
	if !whole {
		if made.Commands, err = v.make(ctx, folder); err != nil {
			return err
		}
	}
	if serve {
		_, err := v.start(ctx, folder, os.Stdout, "serve", "--data", made.Data, "--listen", listen)
		if errors.Is(err, context.Canceled) { // that is how a service is ended
			err = nil
		}
		return err
	}
	return v.UI.Result(folder, made)
}

// isWhole reports whether a folder has the whole demo. One that has anything else is left alone.
func isWhole(folder string) (bool, error) {
	if _, err := os.Stat(filepath.Join(folder, commandsFile)); err == nil {
		return true, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if len(entries) > 0 {
		return false, registry.Errorf(registry.CodeInvalid,
			"%s is not empty, and has no whole demo: name another folder, or remove the files of an interrupted demo", folder)
	}
	return false, nil
}

// make runs the story in a folder, and gives its commands.
func (v Verb) make(ctx context.Context, folder string) ([]string, error) {
	var commands []string
	for _, s := range story() {
		at := filepath.Join(folder, modelsFolder, s.model)
		if s.prepare != nil {
			if err := s.prepare(at); err != nil {
				return nil, err
			}
		}
		line := s.line()
		if _, err := io.WriteString(v.Log, "\n# "+s.says+"\n$ "+line+"\n"); err != nil {
			return nil, err
		}
		commands = append(commands, "("+filepath.ToSlash(filepath.Join(modelsFolder, s.model))+") "+line)
		exit, err := v.step(ctx, folder, at, s)
		if err != nil {
			return nil, err
		}
		if exit != s.exit {
			return nil, registry.Errorf(registry.CodeInternal,
				"%s ended with exit code %d, and the demo wants %d: see above; then remove %s", line, exit, s.exit, folder)
		}
	}
	return commands, atomicfile.Write(filepath.Join(folder, commandsFile), []byte(strings.Join(commands, "\n")+"\n"), 0o644)
}

// step runs the command of a step in the folder of its model.
func (v Verb) step(ctx context.Context, folder, at string, s step) (exit int, err error) {
	args := append(s.args, "--data", filepath.Join(folder, dataFolder))
	if s.stdout == "" {
		return v.start(ctx, at, v.Log, args...)
	}
	file, err := os.Create(filepath.Join(at, s.stdout))
	if err != nil {
		return 0, err
	}
	exit, err = v.start(ctx, at, file, args...)
	return exit, errors.Join(err, file.Close())
}

// start runs this program in a folder, and gives its exit code.
func (v Verb) start(ctx context.Context, folder string, stdout io.Writer, args ...string) (exit int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.CommandContext(ctx, program)
	child.Args = append([]string{v.UI.Program}, args...)
	child.Dir, child.Env = folder, v.environment()
	child.Stdout, child.Stderr = stdout, v.Log
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = 20 * time.Second
	err = child.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return ended.ExitCode(), nil
	}
	return 0, err
}

// environment is ours without what names a registry, its content or its keys: those of the demo are its own.
func (v Verb) environment() []string {
	kept := map[string]bool{"MLPROMOTE_CACHE": true, "MLPROMOTE_INSTALLS": true}
	var all []string
	for _, pair := range v.Environment {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "MLPROMOTE_") || kept[name] {
			all = append(all, pair)
		}
	}
	return all
}

// line is the step as a person types it.
func (s step) line() string {
	if s.stdout != "" {
		return "mlpromote " + quoted(s.args) + " > " + s.stdout
	}
	return "mlpromote " + quoted(s.args)
}

// quoted writes arguments as a person types them in a shell.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if words[i] = a; strings.ContainsAny(a, " '\"$<>*") || a == "" {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
