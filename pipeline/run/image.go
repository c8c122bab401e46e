package run

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
)

// CheckImage recomputes the image form of an engine from its files, which were fetched into a folder. An engine of a
// release without image forms passes. Errors: CodeTrust if the release names another image.
func CheckImage(ctx context.Context, dir string, e artifact.Engine, files []artifact.File) error {
	if e.Image.Digest == "" {
		return nil
	}
	open := func(f artifact.File) (io.ReadCloser, error) { return os.OpenInRoot(dir, filepath.FromSlash(f.Path)) }
	if err := imageform.Check(ctx, e.Image.Digest, imageform.Of(e, files), open); err != nil {
		return registry.Errorf(registry.CodeOf(err), "engine %s: %w", e.Label(), err)
	}
	return nil
}
