package install

import (
	"context"
	"encoding/json"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

// Image is a container image with a Python.
type Image interface {
	// Query runs a command of the image, found through the image's PATH, and returns its
	// output.
	Query(ctx context.Context, command string, args ...string) (string, error)
}

// AdoptImage is Adopt for the python3 of an image. The digest of the image is the lock of the
// record. Errors: those of Adopt; CodeInvalid for a toolchain whose library this program loads
// itself.
func (i *Installer) AdoptImage(ctx context.Context, name string, image Image, digest registry.Digest) (Record, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, err
	}
	if source.Language != drivers.Python || source.Library != "" {
		return Record{}, registry.Errorf(registry.CodeInvalid,
			"toolchain %s also runs outside Python, so it cannot run in an image: remove the key image", name)
	}
	out, err := image.Query(ctx, "python3", "-I", "-c", surveyCode)
	if err != nil {
		return Record{}, registry.Lastingf(registry.CodeUnavailable, "%s: image %s: %w", name, digest, err)
	}
	var found surveyed
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return Record{}, registry.Lastingf(registry.CodeUnavailable,
			"%s: python3 of image %s did not answer like a Python interpreter: %w", name, digest, err)
	}
	r, err := found.record(source, found.Program)
	if err != nil {
		return Record{}, registry.Errorf(registry.CodeOf(err), "image %s: %w", digest, err)
	}
	r.Lock, r.Image = digest, digest
	i.keep(r)
	return r, nil
}
