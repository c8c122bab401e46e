package blob

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// Digests lists the files with a path that matches their digest. It skips other files.
func (dir *Dir) Digests(ctx context.Context) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		for _, algorithm := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
			top := filepath.Join(dir.path, blobsFolder, string(algorithm))
			folders, err := readFolder(ctx, top)
			if err != nil {
				yield("", err)
				return
			}
			for _, folder := range folders {
				if !dir.list(ctx, algorithm, filepath.Join(top, folder.Name()), yield) {
					return
				}
			}
		}
	}
}

// list yields the digests in one folder and reports whether to go on.
func (dir *Dir) list(ctx context.Context, algorithm digest.Algorithm, folder string, yield func(registry.Digest, error) bool) bool {
	files, err := readFolder(ctx, folder)
	if err != nil {
		yield("", err)
		return false
	}
	for _, file := range files {
		d := digest.NewDigestFromEncoded(algorithm, file.Name())
		place, err := dir.place(d)
		if err != nil || place != filepath.Join(folder, file.Name()) || !file.Type().IsRegular() {
			continue
		}
		if !yield(d, nil) {
			return false
		}
	}
	return true
}

// readFolder lists a folder. A missing folder, or a file in its place, has no entries.
func readFolder(ctx context.Context, path string) ([]os.DirEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !info.IsDir()) {
		return nil, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, registry.Errorf(registry.CodeInternal, "list blobs: %w", err)
	}
	return entries, nil
}
