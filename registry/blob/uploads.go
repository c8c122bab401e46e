package blob

import (
	"context"
	"io/fs"
	"time"

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
