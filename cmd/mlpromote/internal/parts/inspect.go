package parts

import (
	"context"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators/format"
)

// Inspect looks at the bytes of every engine of releases, and recomputes its image form, one engine at a time in a temporary folder. Errors: those of
// [format.CheckPart], with the engine; those of reading.
func Inspect(parts storage.PartStore) func(ctx context.Context, at policy.Located) error {
	return func(ctx context.Context, at policy.Located) error {
		for _, e := range at.Release.Engines {
			if err := inspect(ctx, parts, at.Repository, e); err != nil {
				return registry.Errorf(registry.CodeOf(err), "engine %s of %s: %w", e.Label(), at.Repository, err)
			}
		}
		return nil
	}
}

func inspect(ctx context.Context, parts storage.PartStore, repository string, e artifact.Engine) error {
	temp, err := tempdir.New("inspect")
	if err != nil {
		return err
	}
	defer temp.Remove()
	dir := temp.Path
	part, err := parts.Fetch(ctx, repository, e.Digest, dir)
	if err != nil {
		return err
	}
	if err := format.CheckPart(dir, part); err != nil {
		return err
	}
	return run.CheckImage(ctx, dir, e, part.Files)
}
