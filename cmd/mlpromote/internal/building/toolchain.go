package building

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
)

func toolchainCommand(a *program.App) *cobra.Command {
	var python string
	installCommand := &cobra.Command{
		Use:   "install NAME",
		Short: "Install a toolchain from its hash-locked package list, or register one that the machine has",
		Long: `Makes an environment of its own from the lock file that this program carries, shared by
all projects (MLPROMOTE_INSTALLS, else toolchains in MLPROMOTE_CACHE or the user's cache). build does this on demand.

With --python nothing is installed: the toolchain runs on that Python of this machine, for all projects, until it is removed
with "toolchain remove". Its packages are not hash-locked. Provenance and reports record that, with the version of each.
Packages that the driver does not know are refused, and so is a Python with packages that change later.`,
		Example: "  mlpromote toolchain install onnxruntime\n  mlpromote toolchain install xla --python /opt/venv/bin/python3",
		Args:    command.Exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("python") {
				return registerToolchain(c.Context(), a, args[0], python)
			}
			return installToolchain(c.Context(), a, args[0])
		},
	}
	installCommand.Flags().StringVar(&python, "python", "", "PATH of a Python of this machine that has the packages, in place of an install")
	listCommand := &cobra.Command{
		Use:     "list",
		Short:   "List toolchains: installed, installable and missing",
		Example: "  mlpromote toolchain list",
		Args:    command.Exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return listToolchains(c.Context(), a) },
	}
	var all bool
	removeCommand := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove an installed toolchain",
		Example: "  mlpromote toolchain remove onnxruntime",
		Args:    command.Exactly("NAME"),
		RunE:    func(c *cobra.Command, args []string) error { return removeToolchain(c.Context(), a, args[0], all) },
	}
	removeCommand.Flags().BoolVar(&all, "all-versions", false, "also those that other versions of this program made")
	return command.Group("toolchain", "Install, list, check and remove toolchains", installCommand, listCommand, removeCommand, toolchainCheckCommand(a))
}

func installToolchain(ctx context.Context, a *program.App, name string) error {
	installer, err := a.Toolchains().Installer()
	if err != nil {
		return err
	}
	record, err := installer.Find(name)
	if registry.HasCode(err, registry.CodeUnavailable) {
		record, err = a.Toolchains().Install(ctx, installer, name)
	}
	if err != nil {
		return err
	}
	for _, m := range installer.Lacks(name) {
		a.UI.Note("%s will not work on this machine before it has %s (%s)", name, m.What, m.Hint)
	}
	found := toolchains.Found{Record: record, Dir: record.Dir, Interpreter: record.Interpreter(), LibraryPath: record.LibraryPath(), Current: true}
	return a.UI.Result(foundText([]toolchains.Found{found}), found)
}

// registerToolchain makes a Python of this machine the install of a toolchain.
func registerToolchain(ctx context.Context, a *program.App, name, python string) error {
	installer, err := a.Toolchains().Installer()
	if err != nil {
		return err
	}
	record, err := installer.Register(ctx, name, python)
	if err != nil {
		return err
	}
	a.UI.Note("%s is %s: no lock file lists its packages (%s)", name, record.Program, registry.Count(len(record.Versions), "package", "packages"))
	found := toolchains.Found{Record: record, Dir: record.Dir, Interpreter: record.Interpreter(), LibraryPath: record.LibraryPath(), Current: true}
	return a.UI.Result(foundText([]toolchains.Found{found}), found)
}

func listToolchains(ctx context.Context, a *program.App) error {
	installer, err := a.Toolchains().Installer()
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
	return a.UI.Result(statusText(all), all)
}

func removeToolchain(ctx context.Context, a *program.App, name string, all bool) error {
	installer, err := a.Toolchains().Installer()
	if err != nil {
		return err
	}
	removed, err := installer.Remove(ctx, name, all)
	if err != nil {
		return err
	}
	return a.UI.Result(foundText(removed), removed)
}

// foundText is a table of installs.
func foundText(installs []toolchains.Found) string {
	rows := [][]string{{"NAME", "VERSION", "PYTHON", "LOCK", "SIZE", "FOLDER"}}
	for _, f := range installs {
		rows = append(rows, []string{f.Name, f.Version, f.Python, lockText(f), sizeText(f), f.Dir})
	}
	return ui.Table(rows)
}

// lockText is the lock of an install, of which the host's have none.
func lockText(f toolchains.Found) string {
	if f.Host != nil {
		return "none (host)"
	}
	return ui.Short(f.Lock)
}

// sizeText is the size of an install; what belongs to the host is not counted.
func sizeText(f toolchains.Found) string {
	if f.Host != nil {
		return "-"
	}
	return ui.Size(f.Size)
}

// statusText is a table of toolchains with what to do about each, and below it what some
// of them lack for part of their work.
func statusText(all []toolchains.Status) string {
	rows := [][]string{{"NAME", "VERSION", "STATE", "SIZE", "WHAT TO DO"}}
	notes, folder := "", ""
	for _, s := range all {
		if s.State != toolchains.StateInstalled {
			rows = append(rows, []string{s.Name, s.Version, string(s.State), "-", howTo(s)})
		}
		for _, f := range s.Installs {
			state := "installed"
			switch {
			case f.Host != nil:
				state = "host"
			case !f.Current:
				state = "old"
			}
			dir := f.Dir
			if f.Host == nil {
				folder, dir = filepath.Dir(f.Dir), "-"
			}
			rows = append(rows, []string{f.Name, f.Version, state, sizeText(f), dir})
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
	if folder != "" {
		notes = "\ninstalls are in " + ui.Plain(folder) + notes
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

// driverCommand is the children that do the work of toolchains: this program again, started by itself with limits and without keys.
func driverCommand(a *program.App) *cobra.Command {
	child := func(name string, main func(ctx context.Context, in io.Reader, out io.Writer) int) *cobra.Command {
		return &cobra.Command{Use: name, RunE: func(c *cobra.Command, _ []string) error {
			if exit := main(c.Context(), a.Stdin, a.UI.Stderr); exit != 0 {
				os.Exit(exit)
			}
			return nil
		}}
	}
	c := command.Group("driver", "Speak mlpromote.driver/v1 on stdin",
		child(plan.ONNXRuntime, toolchains.RunORT), child("command", toolchains.RunManifest), child("server", toolchains.RunServer))
	c.Hidden = true
	return c
}
