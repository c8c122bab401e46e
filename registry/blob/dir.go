package blob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// LeftoverAge is how long a file under incoming/ must be unchanged before [Dir.Sweep] assumes
// that its writer is dead.
const LeftoverAge = 24 * time.Hour

const (
	blobsFolder    = "blobs"
	incomingFolder = "incoming"

	// Blobs never change, so their files are read-only. The umask removes more permissions.
	blobMode   fs.FileMode = 0o444
	folderMode fs.FileMode = 0o755
)

// Dir is [storage.Blobs] in a directory. It stores sha256 and sha512 digests; others are
// CodeInvalid. Create one with [NewDir]; the zero Dir uses the working directory.
type Dir struct {
	path string
	// synced has the folders whose directory entry this process has made durable. Another
	// process may have created a folder without making it durable yet, so its existence is not
	// enough.
	synced sync.Map
}

var _ storage.RepairableBlobs = (*Dir)(nil)

// NewDir returns the blobs under path. The first Put creates path and its folders; a path that
// does not exist has no blobs.
func NewDir(path string) *Dir { return &Dir{path: path} }

// Open opens the blob's file.
func (dir *Dir) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	place, err := dir.place(d)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(place, os.O_RDONLY|unix.O_NONBLOCK, 0) // O_NONBLOCK: do not wait if there is a pipe in its place
	if err != nil {
		return nil, 0, dir.interpretError("open", d, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		return nil, 0, errors.Join(dir.interpretError("open", d, err), f.Close())
	}
	return f, info.Size(), nil
}

// Delete deletes the blob's file. Readers that have it open can continue.
func (dir *Dir) Delete(ctx context.Context, d registry.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	place, err := dir.place(d)
	if err != nil {
		return err
	}
	if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return dir.interpretError("delete", d, err)
	}
	return nil
}

// place returns the path of d's file.
func (dir *Dir) place(d registry.Digest) (string, error) {
	if _, err := registry.NewHash(d); err != nil {
		return "", err
	}
	hex := d.Encoded()
	return filepath.Join(dir.path, blobsFolder, string(d.Algorithm()), hex[:2], hex), nil
}
