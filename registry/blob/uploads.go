package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Uploads is [storage.Uploads] in a [Dir]. The bytes of an upload are a file under incoming/,
// and its [storage.UploadState] says how many of them count. Further bytes come from a writer
// that was killed. Finishing renames the file. Create one with [NewUploads]. Several processes
// can share a directory and its states, and continue each other's uploads.
//
// On one machine a lock on the file excludes a second writer. On another machine the lock may
// have no effect. That is safe: a writer claims the upload by a swap of its state, and a writer
// that takes over from another machine continues in a copy.
type Uploads struct {
	dir    *Dir
	states storage.UploadStates
	boot   string
}

var _ storage.Uploads = (*Uploads)(nil)

// NewUploads returns the uploads into dir.
func NewUploads(dir *Dir, states storage.UploadStates) *Uploads {
	return &Uploads{dir: dir, states: states, boot: bootID()}
}

const (
	// uploadMode lets its owner write. The umask can remove permissions.
	uploadMode fs.FileMode = 0o644

	// savedBytes is how much of one Append is lost at most if the process is killed.
	savedBytes = 64 << 20

	// saveTimeout is how long recording the received bytes may take after the sender has
	// disconnected.
	saveTimeout = 10 * time.Second
)

// Begin records a new upload. Its first bytes create the file.
func (u *Uploads) Begin(ctx context.Context, owner storage.UploadOwner) (string, error) {
	state := storage.NewUpload(owner)
	state.Place = notes{File: state.ID}.encode()
	return state.ID, u.states.CreateUpload(ctx, state)
}

// Offset returns the number of bytes received.
func (u *Uploads) Offset(ctx context.Context, owner storage.UploadOwner, id string) (int64, error) {
	state, err := u.states.Upload(ctx, owner, id)
	return state.Offset, err
}

// Append appends bytes after those that count, and hashes them.
func (u *Uploads) Append(ctx context.Context, owner storage.UploadOwner, id string, offset int64, r io.Reader) (n int64, err error) {
	state, err := u.states.Upload(ctx, owner, id)
	if err != nil {
		return 0, err
	}
	if state.Offset != offset {
		return state.Offset, registry.Errorf(registry.CodeConflict,
			"upload %s: it has %d bytes, so a chunk cannot begin at %d; continue at the end", id, state.Offset, offset)
	}
	s, err := u.open(ctx, state)
	if err != nil {
		return offset, u.interpretError("append to", id, err)
	}
	defer func() {
		if closed := s.file.Close(); err == nil {
			err = u.interpretError("append to", id, closed)
		}
	}()
	if err := s.claim(ctx); err != nil {
		return offset, u.interpretError("append to", id, err)
	}
	source := &source{ctx: ctx, r: r}
	err = s.write(ctx, source)
	saveCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	err = errors.Join(s.save(saveCtx, false), err)
	if source.err != nil {
		return s.state.Offset, fmt.Errorf("read what to append to upload %s: %w", id, err) // has its own code
	}
	return s.state.Offset, u.interpretError("append to", id, err)
}

// Sweep ends uploads that were idle for more than [LeftoverAge], by the clock of the catalog
// and that of the file system, and calls [Dir.Sweep]. It returns how many leftovers it
// removed. It is safe beside writers, in any number of processes.
func (u *Uploads) Sweep(ctx context.Context) (int, error) {
	now, err := u.dir.now(ctx)
	if err != nil {
		return 0, err
	}
	swept := 0
	for state, err := range u.states.StaleUploads(ctx, LeftoverAge) {
		if err != nil {
			return swept, err
		}
		ended, err := u.expire(ctx, state, now)
		if err != nil {
			return swept, err
		}
		if ended {
			swept++
		}
	}
	files, err := u.dir.Sweep(ctx)
	return swept + files, err
}
