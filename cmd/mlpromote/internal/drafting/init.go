package drafting

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/recording"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/schemas"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/mlflow"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

func initCommand(a *program.App) *cobra.Command {
	var o draftFlags
	c := &cobra.Command{
		Use:   "init [MODEL]",
		Short: "Write a commented spec for a model",
		Long: `Reads a model and writes a spec of at most 29 lines, and its JSON Schema for editors.
Without an argument, it reads the only .onnx file here, or this folder if it is a model's. If there is no registry here yet,
it also writes the rules of a new one, environments.yaml in the data directory.

MODEL is an ONNX file, a skops file of scikit-learn, a model of XGBoost (.json, .ubj) or
LightGBM (.txt), PMML, a TensorFlow Lite file, a .keras file, a file of jax.export, or the
folder of a TensorFlow SavedModel or of save_pretrained of transformers. All but ONNX are imported by a toolchain, which is installed
if need be. --trust names types in a skops file that may be loaded although skops does not know
them. --trust pickle takes a program of torch.export (.pt2), which holds pickles: they can run code, so
trust only files of known origin.

mlflow:models:/NAME/VERSION, mlflow:models:/NAME@ALIAS or mlflow:runs:/RUN/PATH fetches a model from the MLflow server at
MLFLOW_TRACKING_URI, with MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD. The spec pins its
digest: see docs/how-to/mlflow.md.

--cases takes the inputs to compare engines on, and --label their labels, from:
  x.npz          an array per input, with a row per case, from numpy.savez
  x.csv          a line of column names, then a line per case. A model with several inputs takes
                 the column of each input's name; an input with named features takes those
  x.parquet      columns as of a csv; a column of lists has several numbers for each case
  x.safetensors  as npz
An array or a column expected:NAME has what the model's framework computed for output NAME: build compares the model with it.
They are converted to the types and shapes of the model, and written to cases/, next to
the spec. float64 and integers stay where the model's framework takes them. Without --cases, the spec has random ones generated.

Weights in safetensors, TorchScript and pickles have specs written by hand: see
docs/reference/spec.md.`,
		Example: `  mlpromote init resnet50.onnx
  mlpromote init churn.onnx --cases test.csv --label churned
  mlpromote init digits.onnx --cases test.npz --label y
  mlpromote init churn.skops --cases test.csv --label churned
  mlpromote init digits.pt2 --trust pickle --cases test.npz
  mlpromote init booster.json --cases test.parquet --label churned
  mlpromote init mlflow:models:/churn/3 --cases test.csv --label churned`,
		Args: command.AtMost("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			model, err := onlyModel(args)
			if err != nil {
				return err
			}
			if _, err := os.Stat(o.file); err == nil && !o.force {
				return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s exists", o.file), "remove it, or --force")
			}
			if plain := mlflow.Scheme + model; strings.HasPrefix(model, "models:/") || strings.HasPrefix(model, "runs:/") {
				return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: MLflow's addresses begin with %s here", model, mlflow.Scheme), "mlpromote init %s", plain)
			}
			if mlflow.IsRef(model) {
				return draftFetched(c.Context(), a, model, o)
			}
			return draftSpec(c.Context(), a, model, o)
		},
	}
	c.Flags().StringVarP(&o.file, "file", "f", "mlpromote.yaml", "spec to write")
	c.Flags().BoolVar(&o.force, "force", false, "replace an existing spec")
	c.Flags().StringVar(&o.cases, "cases", "", "file of cases to import: .npz, .csv, .parquet or .safetensors")
	c.Flags().StringSliceVar(&o.trusted, "trust", nil, "types in a skops file that may be loaded: MODULE.NAME,...; or pickle")
	c.Flags().StringVar(&o.label, "label", "", "array or column of that file that has the labels (default label or labels, if it is there)")
	return c
}

// draftFlags are the flags of init.
type draftFlags struct {
	file, cases, label string
	trusted            []string
	force              bool

	origin  *spec.Origin // of a model that was fetched; nil for others
	address string       // as a person named it; empty for a file
	example bool         // cases are a small example, which may fail to fit
}

// openDraft reads the model, and imports it if it is not ONNX. What is wrong beside the model is refused before that,
// since a toolchain of gigabytes may have to be installed.
func openDraft(ctx context.Context, a *program.App, model string, o draftFlags) (draft.Model, error) {
	trusted := o.trusted
	format, err := draft.FormatOf(model)
	pickle := slices.Equal(trusted, []string{draft.TrustPickle})
	switch {
	case err != nil && (format == "" || !pickle):
		return draft.Model{}, err
	case pickle && err == nil:
		return draft.Model{}, registry.Errorf(registry.CodeInvalid,
			"--trust %s: %s is of format %s: pickles are trusted in programs of torch.export only", draft.TrustPickle, model, format)
	case len(trusted) > 0 && !pickle && format != spec.FormatSkops:
		return draft.Model{}, registry.Errorf(registry.CodeInvalid,
			"--trust: %s is of format %s: types are trusted in skops files only", model, format)
	}
	if format == spec.FormatONNX {
		return draft.Open(model)
	}
	if err := draft.Check(o.file, model, o.cases, o.label); err != nil {
		return draft.Model{}, err
	}
	m, err := a.Toolchains().OpenLocal()
	if err != nil {
		return draft.Model{}, err
	}
	opened, err := draft.Import(ctx, a.LocalPipeline(m, toolchains.Replacements{}, a.Toolchains().InstallMissing), model, format, trusted)
	if format == spec.FormatSkops && registry.HasCode(err, registry.CodeUnsafe) {
		err = registry.WithHint(err, "if they may be loaded: mlpromote init %s --trust TYPE,...", cmp.Or(o.address, model))
	}
	return opened, err
}

// draftSpec writes the spec of a model, its schema, and cases that are imported. The spec comes last, and what a failed run leaves does not
// stop the next one.
func draftSpec(ctx context.Context, a *program.App, model string, o draftFlags) error {
	answer := initAnswer{Spec: o.file, Model: model}
	if o.label != "" && o.cases == "" {
		return registry.Errorf(registry.CodeInvalid, "--label %s: want --cases FILE with it", o.label)
	}
	folder := newCases{beside: filepath.Dir(o.file)}
	defer folder.discard()
	opened, err := openDraft(ctx, a, model, o)
	if err != nil {
		return err
	}
	if o.cases != "" {
		if answer.Cases, err = importCases(a, opened, &folder, model, o); err != nil {
			return err
		}
	}
	drafted, err := opened.From(o.origin).Draft(o.file, hostTarget(), answer.Cases, folder.path)
	if err != nil {
		return err
	}
	if err := writeSchema(filepath.Dir(o.file)); err != nil {
		return err
	}
	if answer.Cases != nil {
		a.UI.Note("wrote %s to %s", registry.Count(answer.Cases.Count, "case"), folder.path)
	}
	for _, text := range drafted.Warnings {
		a.UI.Warn(text)
	}
	rules, err := a.At().WriteRules(schemas.DefaultRules())
	if err != nil {
		return err
	}
	if rules != "" {
		a.UI.Note("wrote %s: the rules for promoting to prod; its comments show how to accept a looser limit", rules)
	}
	if err := atomicfile.Write(o.file, drafted.Text, 0o644); err != nil {
		return err
	}
	folder.keep()
	a.UI.Note("wrote %s; next: mlpromote build", o.file)
	return a.UI.Result(o.file, answer)
}

// importCases puts the cases of a file into their folder. It returns nil for a logged input example that does not fit.
func importCases(a *program.App, opened draft.Model, folder *newCases, model string, o draftFlags) (*recording.Imported, error) {
	imported, err := folder.fill(func(to string) (recording.Imported, error) { return opened.ImportCases(o.cases, o.label, to) })
	if err != nil && o.example {
		a.UI.Note("the input example that was logged does not fit, so cases are generated: %s", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := folder.place(); err != nil {
		return nil, err
	}
	if o.example {
		a.UI.Note("the cases are the logged input example, which proves little: record more, docs/how-to/cases.md")
	}
	recording.Notes(a.UI, imported)
	if format, err := draft.FormatOf(model); err == nil && format == spec.FormatONNX && len(imported.Expected) == 0 {
		a.UI.Note("the cases have no expected outputs, so nothing will show that the export computes what its framework computed: docs/how-to/cases.md#expected-outputs")
	}
	return &imported, nil
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
	if _, err := draft.FormatOf("."); err == nil && len(found) == 0 {
		return ".", nil // the folder of a model, such as one that save_pretrained wrote
	}
	if len(found) != 1 {
		return "", registry.Errorf(registry.CodeInvalid, "init: %d .onnx files here, want exactly one, or name it: mlpromote init MODEL", len(found))
	}
	return found[0], nil
}
