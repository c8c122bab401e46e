package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// fileMode is the mode of all backup files except blobs. The catalog has the secrets of
// webhooks and the hashes of tokens.
const fileMode = 0o600

// copyFile makes a durable copy of an operator's file and returns its size and digest.
func copyFile(from, to string) (size int64, d registry.Digest, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	return copyFrom(in, to)
}

// openRegular opens a file of a backup, to which others may have had access. It does not follow
// a link, and does not wait for a pipe or device. Errors: CodeTrust.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, notRegular(path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notRegular(path string) error {
	return registry.Errorf(registry.CodeTrust, "%s is not a regular file: the backup was changed", path)
}

func copyFrom(in io.Reader, to string) (size int64, d registry.Digest, err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, "", err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return 0, "", err
	}
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(out, hash), in)
	if err := errors.Join(err, out.Sync(), out.Close(), atomicfile.SyncDir(filepath.Dir(to))); err != nil {
		return 0, "", err
	}
	return size, registry.Digest("sha256:" + hex.EncodeToString(hash.Sum(nil))), nil
}

// checked copies a file of a backup and compares it with its description. Errors: CodeDigest;
// CodeTrust.
func checked(from, to string, want File) error {
	in, err := openRegular(from)
	if err != nil {
		return err
	}
	defer in.Close()
	size, d, err := copyFrom(io.LimitReader(in, want.Size+1), to)
	if err == nil && (size != want.Size || d != want.Digest) {
		err = registry.Errorf(registry.CodeDigest,
			"%s has %d bytes with the digest %s, want %d with %s: the backup was damaged", from, size, d, want.Size,
			want.Digest)
	}
	return err
}

// describe returns size and digest of a file, and makes it durable.
func describe(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	return File{
		Size:   size,
		Digest: registry.Digest("sha256:" + hex.EncodeToString(hash.Sum(nil))),
	}, errors.Join(err, f.Sync(), f.Close())
}

// copyUntil copies until the end, or until ctx ends.
func copyUntil(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	return io.Copy(w, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// File describes a file of a snapshot other than snapshot.json.
type File struct {
	Path   string          `json:"path"` // within the snapshot, with slashes
	Size   int64           `json:"size"` // bytes
	Digest registry.Digest `json:"digest"`
}

const (
	snapshotsFolder = "snapshots"
	filesFolder     = "files"
	catalogFile     = "registry.db"
	contentFile     = "content"
	snapshotFile    = "snapshot.json"

	// nameLayout gives names that sort by time.
	nameLayout = "20060102T150405.000000Z"
	// maxDocument is the maximum size of snapshot.json.
	maxDocument = 16 << 20
)
