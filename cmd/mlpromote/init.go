package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) initCommand() *cobra.Command {
	var file string
	var force bool
	c := &cobra.Command{
		Use:   "init [MODEL.onnx]",
		Short: "Write a commented spec for a model",
		Long: `Reads the graph of an ONNX model and writes a spec of at most 20 lines beside it,
with seeded smoke cases. Without an argument, the only .onnx file here is meant.`,
		Example: "  mlpromote init resnet50.onnx",
		Args:    atMost("MODEL.onnx"),
		RunE: func(c *cobra.Command, args []string) error {
			model, err := onlyModel(args)
			if err != nil {
				return err
			}
			if _, err := os.Stat(file); err == nil && !force {
				return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s exists", file), "remove it, or --force")
			}
			text, err := pipeline.Draft(model, file, hostTarget())
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, text, 0o644); err != nil {
				return err
			}
			a.ui.note("wrote %s; next: mlpromote build", file)
			return a.ui.result(file, map[string]string{"spec": file, "model": model})
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "mlpromote.yaml", "spec to write")
	c.Flags().BoolVar(&force, "force", false, "replace an existing spec")
	return c
}

// hostTarget is any machine like this one: an engine for it runs here.
func hostTarget() string {
	if runtime.GOARCH == "amd64" {
		return runtime.GOOS + "/amd64/v1"
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}

// onlyModel is the model that was named, or the only one there is.
func onlyModel(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	found, err := filepath.Glob("*.onnx")
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", registry.Errorf(registry.CodeInvalid, "init: %d .onnx files here, want exactly one, or name it: mlpromote init MODEL.onnx", len(found))
	}
	return found[0], nil
}
