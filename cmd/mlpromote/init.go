package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/recording"
	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) initCommand() *cobra.Command {
	var file, cases, label string
	var force bool
	c := &cobra.Command{
		Use:   "init [MODEL.onnx]",
		Short: "Write a commented spec for a model",
		Long: `Reads the graph of an ONNX model and writes a spec of at most 26 lines, and beside it its JSON
Schema for editors. Without an argument, the only .onnx file here is meant.

--cases takes the inputs to compare engines on, and --label their labels, from:
  x.npz          an array per input, with a row per case, from numpy.savez
  x.csv          a line of column names, then a line of numbers per case
  x.safetensors  as npz
They are converted to the types and shapes that the model wants, and written to cases/ beside
the spec. Without --cases, the spec has random ones generated.

Models of scikit-learn, TensorFlow, TensorFlow Lite and in safetensors have specs written by
hand: see docs/reference/spec.md.`,
		Example: `  mlpromote init resnet50.onnx
  mlpromote init churn.onnx --cases test.csv --label churned
  mlpromote init digits.onnx --cases test.npz --label y`,
		Args: command.AtMost("MODEL.onnx"),
		RunE: func(c *cobra.Command, args []string) error {
			model, err := onlyModel(args)
			if err != nil {
				return err
			}
			if _, err := os.Stat(file); err == nil && !force {
				return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s exists", file), "remove it, or --force")
			}
			return a.draft(model, file, cases, label)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "mlpromote.yaml", "spec to write")
	c.Flags().BoolVar(&force, "force", false, "replace an existing spec")
	c.Flags().StringVar(&cases, "cases", "", "file of cases to import: .npz, .csv or .safetensors")
	c.Flags().StringVar(&label, "label", "", "array or column of that file that has the labels (default label or labels, if it is there)")
	return c
}

// casesFolder is where imported cases go, beside the spec.
const casesFolder = "cases"

// draft writes the spec of a model, its schema, and cases that are imported.
func (a *app) draft(model, file, cases, label string) error {
	answer := initAnswer{Spec: file, Model: model}
	folder := filepath.Join(filepath.Dir(file), casesFolder)
	switch {
	case cases != "":
		imported, err := recording.ImportFor(model, cases, label, folder)
		if err != nil {
			return err
		}
		answer.Cases = &imported
		recording.Notes(a.ui, imported)
	case label != "":
		return registry.Errorf(registry.CodeInvalid, "--label %s: want --cases FILE with it", label)
	}
	drafted, err := pipeline.Draft(model, file, hostTarget(), answer.Cases, folder)
	if err != nil {
		return err
	}
	if err := writeSchema(filepath.Dir(file)); err != nil {
		return err
	}
	if err := os.WriteFile(file, drafted.Text, 0o644); err != nil {
		return err
	}
	if answer.Cases != nil {
		a.ui.Note("wrote %s to %s", registry.Count(answer.Cases.Count, "case"), folder)
	}
	for _, text := range drafted.Warnings {
		a.ui.Warn(text)
	}
	a.ui.Note("wrote %s; next: mlpromote build", file)
	return a.ui.Result(file, answer)
}

// initAnswer is what init made.
type initAnswer struct {
	Spec  string              `json:"spec"`
	Model string              `json:"model"`
	Cases *recording.Imported `json:"cases,omitempty"`
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
