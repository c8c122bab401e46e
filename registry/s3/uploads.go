package s3

import (
	"context"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Uploads is [storage.Uploads] in a [Bucket]. Create one with [NewUploads]. Several processes
// can share a bucket and the states, and continue each other's uploads.
//
// Only the states order writers. An Append sends its bytes to unique keys, and they count once
// it has swapped the state. If two Appends in two processes begin at the same offset, the first
// to swap wins and the other gets a conflict.
type Uploads struct {
	b      *Bucket
	states storage.UploadStates
	held   sync.Map // identifiers of uploads that this process is writing
}

var _ storage.Uploads = (*Uploads)(nil)

// NewUploads returns the uploads into a bucket.
func NewUploads(b *Bucket, states storage.UploadStates) *Uploads {
	return &Uploads{b: b, states: states}
}

// Begin records a new upload. The first request to the store comes with its first bytes.
func (u *Uploads) Begin(ctx context.Context, owner storage.UploadOwner) (string, error) {
	state := storage.NewUpload(owner)
	var err error
	if state.Place, err = (notes{}).encode(); err != nil {
		return "", registry.Errorf(registry.CodeInternal, "begin upload: %w", err)
	}
	return state.ID, u.states.CreateUpload(ctx, state)
}

// Offset returns the number of bytes received.
func (u *Uploads) Offset(ctx context.Context, owner storage.UploadOwner, id string) (int64, error) {
	state, err := u.states.Upload(ctx, owner, id)
	return state.Offset, err
}
