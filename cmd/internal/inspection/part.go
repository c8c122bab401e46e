package inspection

import (
	"context"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// ReadPart reads the only file of a part, such as limits.json, and what is in it.
func ReadPart[T any](ctx context.Context, parts storage.PartStore, repository string,
	part registry.Digest, parse func([]byte) (T, error)) (read T, data []byte, err error) {
	temp, err := tempdir.New("inspect")
	if err != nil {
		return read, nil, err
	}
	defer temp.Remove()
	dir := temp.Path
	fetched, err := parts.Fetch(ctx, repository, part, dir)
	if err != nil {
		return read, nil, err
	}
	if len(fetched.Files) != 1 {
		return read, nil, registry.Errorf(registry.CodeInvalid, "part %s has %d files: want one", part, len(fetched.Files))
	}
	if data, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(fetched.Files[0].Path))); err != nil {
		return read, nil, err
	}
	read, err = parse(data)
	return read, data, err
}
