package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) toolchainCommand() *cobra.Command {
	installCommand := &cobra.Command{
		Use:   "install NAME",
		Short: "Install a toolchain from its hash-locked list of packages",
		Long: `Makes an environment of its own from the lock file that this program carries, shared by
all projects (MLPROMOTE_CACHE, else the user's cache). build does this on demand.`,
		Example: "  mlpromote toolchain install onnxruntime",
		Args:    exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			installer, err := a.installer()
			if err != nil {
				return err
			}
			record, err := installer.Find(args[0])
			if registry.HasCode(err, registry.CodeUnavailable) {
				record, err = a.install(c.Context(), installer, args[0])
			}
			if err != nil {
				return err
			}
			return a.ui.result(installText([]install.Record{record}), installed{record, record.Dir, record.Interpreter(), record.LibraryPath()})
		},
	}
	listCommand := &cobra.Command{
		Use:   "list",
		Short: "List the toolchains that are installed",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			installer, err := a.installer()
			if err != nil {
				return err
			}
			records, err := installer.List()
			if err != nil {
				return err
			}
			all := []installed{}
			for _, r := range records {
				all = append(all, installed{r, r.Dir, r.Interpreter(), r.LibraryPath()})
			}
			return a.ui.result(installText(records), all)
		},
	}
	return group("toolchain", "Install and list toolchains", installCommand, listCommand)
}

// installed is a record with where things are.
type installed struct {
	install.Record
	Dir         string `json:"dir"`
	Interpreter string `json:"interpreter"`
	LibraryPath string `json:"libraryPath,omitempty"`
}

func installText(records []install.Record) string {
	rows := [][]string{{"NAME", "VERSION", "PYTHON", "LOCK", "FOLDER"}}
	for _, r := range records {
		rows = append(rows, []string{r.Name, r.Version, r.Python, short(r.Lock), r.Dir})
	}
	return table(rows)
}

// install makes an install and shows its stages.
func (a *app) install(ctx context.Context, installer *install.Installer, name string) (install.Record, error) {
	title := "install " + name
	a.ui.progress(pipeline.Step{Name: title, State: pipeline.StepStarted})
	began := now()
	record, err := installer.Install(ctx, name, func(stage string) {
		if a.verbose {
			a.ui.note("%s: %s", title, stage)
		}
	})
	end := pipeline.Step{Name: title, State: pipeline.StepDone, Elapsed: now().Sub(began)}
	if err != nil {
		end.State = pipeline.StepFailed
	}
	a.ui.progress(end)
	return record, err
}

// driverCommand is the child that runs ONNX Runtime: this program again, started by
// itself with limits and without keys.
func (a *app) driverCommand() *cobra.Command {
	var exit int
	onnxruntime := &cobra.Command{
		Use: "onnxruntime",
		RunE: func(c *cobra.Command, _ []string) error {
			if exit = ort.Main(c.Context(), a.stdin, a.ui.stderr); exit != 0 {
				os.Exit(exit)
			}
			return nil
		},
	}
	commandLine := &cobra.Command{
		Use: "command",
		RunE: func(c *cobra.Command, _ []string) error {
			if exit = manifest.Main(c.Context(), a.stdin, a.ui.stderr); exit != 0 {
				os.Exit(exit)
			}
			return nil
		},
	}
	c := group("driver", "Speak mlpromote.driver/v1 on stdin", onnxruntime, commandLine)
	c.Hidden = true
	return c
}
