package blob

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Finish checks the digest, makes the bytes durable, ends the upload and renames the file.
func (u *Uploads) Finish(ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest) (size int64, err error) {
	place, err := u.dir.place(d)
	if err != nil {
		return 0, err
	}
	state, err := u.states.Upload(ctx, owner, id)
	if err != nil {
		return 0, err
	}
	s, err := u.open(ctx, state)
	if err != nil {
		return 0, u.interpretError("finish", id, err)
	}
	defer func() {
		if closed := s.file.Close(); err == nil {
			err = u.interpretError("finish", id, closed)
		}
	}()
	got, err := s.digest(ctx, d.Algorithm())
	if err != nil {
		return 0, u.interpretError("finish", id, err)
	}
	if got != d {
		if err := s.end(ctx); err != nil {
			return 0, u.interpretError("finish", id, err)
		}
		return 0, errors.Join(
			registry.Errorf(registry.CodeDigest,
				"upload %s: the %d bytes received have the digest %s, not %s: nothing was stored; send the right content or the right digest", id, s.offset, got, d),
			u.interpretError("remove", id, os.Remove(s.path())))
	}
	return s.offset, u.interpretError("finish", id, s.publish(ctx, place))
}

// Cancel ends the upload, and then removes its file.
func (u *Uploads) Cancel(ctx context.Context, owner storage.UploadOwner, id string) (err error) {
	state, err := u.states.Upload(ctx, owner, id)
	if err != nil {
		return err
	}
	if state.Version == 1 { // nothing was appended, so it has no file
		return u.states.EndUpload(ctx, id, state.Version)
	}
	s, err := u.open(ctx, state)
	if err != nil {
		return u.interpretError("cancel", id, err)
	}
	defer func() {
		if closed := s.file.Close(); err == nil {
			err = u.interpretError("cancel", id, closed)
		}
	}()
	if err := s.end(ctx); err != nil {
		return u.interpretError("cancel", id, err)
	}
	return u.interpretError("cancel", id, os.Remove(s.path()))
}

// digest returns the digest of the received bytes. For sha256 it was computed while they
// arrived.
func (s *session) digest(ctx context.Context, algorithm digest.Algorithm) (registry.Digest, error) {
	if algorithm == digest.SHA256 {
		return digest.NewDigest(algorithm, s.sum), nil
	}
	hash := algorithm.Hash()
	file := &source{ctx: ctx, r: io.NewSectionReader(s.file, 0, s.offset)}
	_, err := io.CopyBuffer(onlyWriter{hash}, file, make([]byte, copyBytes))
	return digest.NewDigest(algorithm, hash), err
}

// publish renames the file of the upload to that of a blob. The upload ends first, so that
// clients that still know it cannot write into a blob.
func (s *session) publish(ctx context.Context, place string) error {
	if err := s.u.dir.makeFolder(filepath.Dir(place)); err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > s.offset {
		err = s.file.Truncate(s.offset)
	}
	if err := errors.Join(err, s.file.Sync()); err != nil {
		return err
	}
	if err := s.end(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.file.Chmod(info.Mode().Perm()&blobMode), os.Rename(s.path(), place)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(place))
}

// end makes this session the last one of the upload.
func (s *session) end(ctx context.Context) error {
	if err := s.u.states.EndUpload(ctx, s.state.ID, s.state.Version); err != nil {
		return s.giveUp(ctx, err)
	}
	s.abandon()
	return nil
}
