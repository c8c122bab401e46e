package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) toolchainCommand() *cobra.Command {
	installCommand := &cobra.Command{
		Use:   "install NAME",
		Short: "Install a toolchain from its hash-locked package list",
		Long: `Makes an environment of its own from the lock file that this program carries, shared by
all projects (MLPROMOTE_INSTALLS, else toolchains in MLPROMOTE_CACHE or the user's cache). build does this on demand.`,
		Example: "  mlpromote toolchain install onnxruntime",
		Args:    command.Exactly("NAME"),
		RunE:    func(c *cobra.Command, args []string) error { return a.installToolchain(c.Context(), args[0]) },
	}
	listCommand := &cobra.Command{
		Use:     "list",
		Short:   "List toolchains: what is installed, what can be, and what is missing",
		Example: "  mlpromote toolchain list",
		Args:    command.Exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return a.listToolchains(c.Context()) },
	}
	var all bool
	removeCommand := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove an installed toolchain",
		Example: "  mlpromote toolchain remove onnxruntime",
		Args:    command.Exactly("NAME"),
		RunE:    func(c *cobra.Command, args []string) error { return a.removeToolchain(c.Context(), args[0], all) },
	}
	removeCommand.Flags().BoolVar(&all, "all-versions", false, "also those that other versions of this program made")
	return command.Group("toolchain", "Install, list and remove toolchains", installCommand, listCommand, removeCommand)
}

func (a *app) installToolchain(ctx context.Context, name string) error {
	installer, err := a.tools().Installer()
	if err != nil {
		return err
	}
	record, err := installer.Find(name)
	if registry.HasCode(err, registry.CodeUnavailable) {
		record, err = a.tools().Install(ctx, installer, name)
	}
	if err != nil {
		return err
	}
	for _, m := range installer.Lacks(name) {
		a.ui.Note("%s will not work on this machine before it has %s (%s)", name, m.What, m.Hint)
	}
	found := toolchains.Found{Record: record, Dir: record.Dir, Interpreter: record.Interpreter(), LibraryPath: record.LibraryPath(), Current: true}
	return a.ui.Result(foundText([]toolchains.Found{found}), found)
}

func (a *app) listToolchains(ctx context.Context) error {
	installer, err := a.tools().Installer()
	if err != nil {
		return err
	}
	machine, err := toolchains.Describe(ctx, nil)
	if err != nil {
		return err
	}
	var gpus []string
	for _, accelerator := range machine.Accelerators {
		gpus = append(gpus, accelerator.Vendor)
	}
	all, err := installer.Survey(ctx, gpus)
	if err != nil {
		return err
	}
	return a.ui.Result(statusText(all), all)
}

func (a *app) removeToolchain(ctx context.Context, name string, all bool) error {
	installer, err := a.tools().Installer()
	if err != nil {
		return err
	}
	removed, err := installer.Remove(ctx, name, all)
	if err != nil {
		return err
	}
	return a.ui.Result(foundText(removed), removed)
}

// foundText is a table of installs.
func foundText(installs []toolchains.Found) string {
	rows := [][]string{{"NAME", "VERSION", "PYTHON", "LOCK", "SIZE", "FOLDER"}}
	for _, f := range installs {
		rows = append(rows, []string{f.Name, f.Version, f.Python, ui.Short(f.Lock), ui.Size(f.Size), f.Dir})
	}
	return ui.Table(rows)
}

// statusText is a table of toolchains with what to do about each, and below it what some
// of them lack for part of their work.
func statusText(all []toolchains.Status) string {
	rows := [][]string{{"NAME", "VERSION", "STATE", "SIZE", "FOLDER, OR WHAT TO DO"}}
	notes := ""
	for _, s := range all {
		if s.State != toolchains.StateInstalled {
			rows = append(rows, []string{s.Name, s.Version, string(s.State), "-", howTo(s)})
		}
		for _, f := range s.Installs {
			state := "installed"
			if !f.Current {
				state = "old"
			}
			rows = append(rows, []string{f.Name, f.Version, state, ui.Size(f.Size), f.Dir})
		}
		for _, m := range s.Missing {
			switch {
			case m.For != "":
				notes += fmt.Sprintf("\n%s lacks %s for %s", s.Name, m.What, m.For)
			case s.State == toolchains.StateInstalled:
				notes += fmt.Sprintf("\n%s is installed and will not work: it lacks %s (%s)", s.Name, m.What, m.Hint)
			}
		}
	}
	return ui.Table(rows) + notes
}

// howTo says what installs a toolchain, and what must be there first.
func howTo(s toolchains.Status) string {
	var lacks []string
	for _, m := range s.Missing {
		if m.For != "" {
			continue
		}
		text := m.What
		if m.Hint != "" {
			text += " (" + m.Hint + ")"
		}
		lacks = append(lacks, text)
	}
	if len(lacks) == 0 {
		return s.Command
	}
	return "needs " + strings.Join(lacks, ", ") + "; then " + s.Command
}

// driverCommand is the child that runs ONNX Runtime: this program again, started by
// itself with limits and without keys.
func (a *app) driverCommand() *cobra.Command {
	var exit int
	onnxruntime := &cobra.Command{
		Use: "onnxruntime",
		RunE: func(c *cobra.Command, _ []string) error {
			if exit = toolchains.RunORT(c.Context(), a.stdin, a.ui.Stderr); exit != 0 {
				os.Exit(exit)
			}
			return nil
		},
	}
	commandLine := &cobra.Command{
		Use: "command",
		RunE: func(c *cobra.Command, _ []string) error {
			if exit = toolchains.RunManifest(c.Context(), a.stdin, a.ui.Stderr); exit != 0 {
				os.Exit(exit)
			}
			return nil
		},
	}
	c := command.Group("driver", "Speak mlpromote.driver/v1 on stdin", onnxruntime, commandLine)
	c.Hidden = true
	return c
}
