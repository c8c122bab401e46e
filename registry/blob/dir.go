package blob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
)

const (
	blobsFolder    = "blobs"
	incomingFolder = "incoming"

	// Blobs never change, so nobody has the right to write them. The umask takes away more.
	blobMode   fs.FileMode = 0o444
	folderMode fs.FileMode = 0o755
)

// Dir is [registry.Blobs] in a directory. It holds sha256 and sha512 digests; others
// are CodeInvalid. Make one with [NewDir]; the zero Dir uses the working directory.
type Dir struct {
	path string
	// synced has the folders whose own entry this process has made durable. Another
	// process may have made a folder and not got to that yet, so finding it is not enough.
	synced sync.Map
}

var _ registry.Blobs = (*Dir)(nil)

// NewDir is the blobs under path. It touches nothing: path and what is in it are made
// by the first Put, and a path that does not exist holds no blobs.
func NewDir(path string) *Dir { return &Dir{path: path} }

// Open gives the blob's file.
func (dir *Dir) Open(ctx context.Context, d registry.Digest) (registry.Blob, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	place, err := dir.place(d)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(place, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe in its place is not waited for
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

// Delete removes the blob's file. Who has it open reads on.
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

// place is the path of d's file.
func (dir *Dir) place(d registry.Digest) (string, error) {
	if _, err := registry.NewHash(d); err != nil {
		return "", err
	}
	hex := d.Encoded()
	return filepath.Join(dir.path, blobsFolder, string(d.Algorithm()), hex[:2], hex), nil
}
