package s3

import (
	"context"

	"github.com/minio/minio-go/v7"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Finish verifies the digest, combines the bytes into one object, and copies it to the key of
// the blob. Every step can be repeated after a failure, so the upload ends last.
func (u *Uploads) Finish(ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest) (int64, error) {
	key, err := u.b.key(d)
	if err != nil {
		return 0, err
	}
	state, err := u.states.Upload(ctx, owner, id)
	if err != nil {
		return 0, err
	}
	s, err := u.open(state)
	if err != nil {
		return 0, err
	}
	defer s.close()
	if err := s.finish(ctx, key, d); err != nil {
		return 0, s.explain(ctx, "finish", err)
	}
	return s.offset, nil
}

// Cancel ends the upload and then deletes its objects. Sweep deletes those that cannot be
// deleted now.
func (u *Uploads) Cancel(ctx context.Context, owner storage.UploadOwner, id string) error {
	state, err := u.states.Upload(ctx, owner, id)
	if err != nil {
		return err
	}
	s, err := u.open(state)
	if err != nil {
		return err
	}
	defer s.close()
	if err := u.states.EndUpload(ctx, state.ID, state.Version); err != nil {
		return s.explain(ctx, "cancel", err)
	}
	s.forget(ctx, "")
	return nil
}

func (s *session) finish(ctx context.Context, key string, d registry.Digest) error {
	if d.Algorithm() == digest.SHA256 {
		if got := digest.NewDigest(digest.SHA256, s.sum); got != d {
			return s.reject(ctx, "", d, got)
		}
	}
	staged, err := s.gather(ctx)
	if err != nil {
		return err
	}
	if d.Algorithm() != digest.SHA256 { // only sha256 was computed while the bytes arrived
		got, err := s.rehash(ctx, staged, d.Algorithm())
		if err != nil {
			return err
		}
		if got != d {
			return s.reject(ctx, staged, d, got)
		}
	}
	if err := s.publish(ctx, staged, key); err != nil {
		return err
	}
	if err := s.u.states.EndUpload(ctx, s.state.ID, s.state.Version); err != nil {
		return err
	}
	s.forget(ctx, staged)
	return nil
}

// reject ends an upload whose bytes do not match the digest.
func (s *session) reject(ctx context.Context, staged string, d, got registry.Digest) error {
	if err := s.u.states.EndUpload(ctx, s.state.ID, s.state.Version); err != nil {
		return err
	}
	s.forget(ctx, staged)
	return registry.Errorf(registry.CodeDigest,
		"upload %s: the %d bytes received have the digest %s, not %s: nothing was stored; send the right content or the right digest",
		s.state.ID, s.offset, got, d)
}

// forget deletes what a finished upload leaves in the store.
func (s *session) forget(ctx context.Context, staged string) {
	if s.notes.ID != "" && s.notes.Key != staged {
		s.multipart().abort(ctx)
	}
	s.tidy(ctx, staged, s.notes.TailKey)
}

// gather returns the key of an object of the upload with all bytes, or "" if all bytes are in
// the buffer.
func (s *session) gather(ctx context.Context) (string, error) {
	switch {
	case len(s.parts) == 0 && s.notes.TailKey == "":
		return "", s.loadTail(ctx)
	case len(s.parts) == 0:
		return s.notes.TailKey, nil
	}
	if done, err := s.completed(ctx); done || err != nil {
		return s.notes.Key, err
	}
	if s.notes.TailSize > 0 {
		if err := s.loadTail(ctx); err != nil {
			return "", err
		}
		if err := s.sendPart(ctx); err != nil {
			return "", err
		}
	}
	m := s.multipart()
	err := m.complete(ctx)
	if saidCode(err, minio.NoSuchUpload) { // the request may have succeeded with a lost response
		done, failed := s.completed(ctx)
		if done || failed != nil {
			return m.key, failed
		}
	}
	return m.key, err
}

// completed reports whether an earlier attempt to finish combined all parts into one object.
// The content of that object is not recorded, so completed reads it.
func (s *session) completed(ctx context.Context) (bool, error) {
	size, err := s.u.b.size(ctx, s.notes.Key)
	if saidCode(err, minio.NoSuchKey) {
		return false, nil
	}
	var got registry.Digest
	if err == nil && size == s.offset {
		got, err = s.rehash(ctx, s.notes.Key, digest.SHA256)
	}
	if err != nil || got == digest.NewDigest(digest.SHA256, s.sum) {
		return err == nil, err
	}
	if err := s.u.states.EndUpload(ctx, s.state.ID, s.state.Version); err != nil {
		return false, err
	}
	s.forget(ctx, s.notes.Key)
	return false, registry.Errorf(registry.CodeNotFound,
		"upload %s: its record is older than its bytes, perhaps after a failure of the database: begin a new upload",
		s.state.ID)
}

// rehash computes the digest of all bytes, which are in an object or in the buffer.
func (s *session) rehash(ctx context.Context, key string, algorithm digest.Algorithm) (registry.Digest, error) {
	if key == "" {
		return algorithm.FromBytes(*s.buffer), nil
	}
	return s.u.b.rehash(ctx, key, s.offset, algorithm)
}

// publish creates the blob, or replaces it: an object of its size may be damaged.
func (s *session) publish(ctx context.Context, staged, key string) error {
	if staged == "" {
		return s.u.b.write(ctx, key, *s.buffer)
	}
	return s.u.b.copy(ctx, staged, key, s.offset)
}
