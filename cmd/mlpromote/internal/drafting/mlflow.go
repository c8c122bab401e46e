package drafting

import (
	"context"
	"errors"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/mlflow"
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
	model, err := client.Fetch(ctx, ref, mlflow.Options{Folder: filepath.Dir(o.file), Replace: o.force, More: draft.FurtherFiles})
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
	o.origin = &model.Origin
	if o.cases == "" && o.label == "" && model.Example != "" {
		o.cases, o.example = model.Example, true
	}
	err = draftSpec(ctx, a, model.File, o)
	if registry.HasCode(err, registry.CodeUnsafe) {
		err = registry.WithHint(err, "or log the model without pickles: %s", model.Log)
	}
	if err != nil {
		return errors.Join(err, model.Discard())
	}
	return nil
}
