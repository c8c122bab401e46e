package drafting

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/mlflow"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/registry"
)

// draftFetched fetches a model from an MLflow server, and writes its spec. After an error, the next init finds the folder as it was.
func draftFetched(ctx context.Context, a *program.App, address string, o draftFlags) (err error) {
	ref, err := mlflow.ParseRef(address)
	if err != nil {
		return err
	}
	client, err := mlflow.NewClient(mlflow.ConfigFromEnvironment())
	if err != nil {
		return err
	}
	defer client.Close()
	running := progress.Begin(a.UI.Progress, "fetch "+address, clock.Now)
	model, err := mlflow.Fetch(ctx, client, ref, mlflow.Options{Folder: filepath.Dir(o.file), Replace: o.force, More: draft.FurtherFiles})
	running.End("", err)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, model.Done())
	}()
	a.UI.Note("fetched %s as %s (flavor %s), %s", model.Origin.URI, model.File, model.Flavor, model.Origin.Digest)
	for _, text := range model.Notes {
		a.UI.Note("%s", text)
	}
	o.origin, o.address = &model.Origin, address
	if o.cases == "" && o.label == "" && model.Example != "" {
		o.cases, o.example = model.Example, true
	}
	if err = loadable(model, address, o); err == nil {
		err = draftSpec(ctx, a, model.File, o)
	}
	if err != nil {
		return errors.Join(err, model.Discard())
	}
	return nil
}

// loadable refuses a file that can run code when it is loaded, unless a person trusts it, and tells what to log in its place.
func loadable(model mlflow.Model, address string, o draftFlags) error {
	found, err := draft.FormatOf(model.File)
	if err == nil || !registry.HasCode(err, registry.CodeUnsafe) || found != "" && slices.Equal(o.trusted, []string{draft.TrustPickle}) {
		return nil // other errors are told when the model is opened
	}
	refused := registry.Errorf(registry.CodeUnsafe, "%s", err.Error())
	if found != "" {
		return registry.WithHint(refused, "if you know where the model is from, mlpromote init %s --trust %s; or export it to ONNX and log that with mlflow.onnx.log_model", address, draft.TrustPickle)
	}
	return registry.WithHint(refused, "log the model without pickles: %s", model.Log)
}
