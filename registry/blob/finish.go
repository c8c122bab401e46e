package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
)

// Finish checks the digest, makes the bytes durable and renames the file.
func (u *Uploads) Finish(ctx context.Context, owner registry.UploadOwner, id string, d registry.Digest) (size int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	place, err := u.dir.place(d)
	if err != nil {
		return 0, err
	}
	path := u.path(owner, id)
	f, size, err := openLocked(path, os.O_RDWR)
	if err != nil {
		return 0, u.interpretError("finish", id, err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = u.interpretError("finish", id, closed)
		}
	}()
	got, err := u.digest(ctx, f, path, size, d.Algorithm())
	if err != nil {
		return 0, u.interpretError("finish", id, err)
	}
	if got != d {
		u.sums.forget(path)
		return 0, errors.Join(
			registry.Errorf(registry.CodeDigest, "upload %s: the %d bytes that came have the digest %s and not %s: nothing was stored; send the right content or the right digest", id, size, got, d),
			u.interpretError("remove", id, os.Remove(path)))
	}
	if err := u.publish(f, path, place); err != nil {
		return 0, u.interpretError("finish", id, err)
	}
	u.sums.forget(path)
	return size, nil
}

// digest gives the digest of the file, which it reads only where this process has not
// hashed all of it already.
func (u *Uploads) digest(ctx context.Context, f *os.File, path string, size int64, algorithm digest.Algorithm) (registry.Digest, error) {
	if algorithm == digest.SHA256 {
		if d, ok := u.sums.digest(path, size); ok {
			return d, nil
		}
	}
	hash := algorithm.Hash()
	file := &source{ctx: ctx, r: io.NewSectionReader(f, 0, size)}
	_, err := io.CopyBuffer(onlyWriter{hash}, file, make([]byte, copyBytes))
	return digest.NewDigest(algorithm, hash), err
}

// publish makes the file of an upload that of a blob.
func (u *Uploads) publish(f *os.File, path, place string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := u.dir.makeFolder(filepath.Dir(place)); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(info.Mode().Perm()&blobMode), f.Sync()); err != nil {
		return err
	}
	if err := os.Rename(path, place); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(place))
}

// idGrammar is what Begin makes, so that identifiers are no paths.
var idGrammar = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// path is the file of an upload. The owner is part of its name, hashed, so that
// the upload cannot be found by another one. What is no identifier has the path
// of no file.
func (u *Uploads) path(owner registry.UploadOwner, id string) string {
	if !idGrammar.MatchString(id) {
		id = "none"
	}
	sum := sha256.Sum256([]byte(owner.Repository + "\x00" + owner.Principal))
	return filepath.Join(u.dir.path, incomingFolder, id+"."+hex.EncodeToString(sum[:]))
}

// openLocked opens the file of an upload for the caller alone, until he closes it, and
// gives its size.
func openLocked(path string, flag int) (*os.File, int64, error) {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, 0, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	// Before the lock was ours, the file may have become a blob, which nobody may write.
	opened, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	named, err := os.Lstat(path)
	if err == nil && !os.SameFile(opened, named) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, opened.Size(), nil
}

// interpretError is that of the directory, for uploads.
func (u *Uploads) interpretError(operation, id string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return registry.Errorf(registry.CodeNotFound, "upload %s: not found; it has ended, or was left alone for more than %v: begin another", id, LeftoverAge)
	case errors.Is(err, unix.EWOULDBLOCK):
		return registry.Errorf(registry.CodeConflict, "upload %s: somebody else is writing it; send one chunk after the other", id)
	}
	return u.dir.interpret(operation, "upload "+id, err)
}
