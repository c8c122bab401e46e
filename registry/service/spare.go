package service

import (
	"context"
	"io"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Spare makes storing safe beside collectors. A store does not write what it has already,
// so that bytes which are just about to be deleted would be taken for stored: before it
// looks, they are rescinded.
func Spare(blobs registry.Blobs, condemned registry.Condemned) registry.Blobs {
	s := sparing{blobs, condemned}
	if there, ok := blobs.(redirector); ok {
		return redirecting{s, there}
	}
	return s
}

// redirector is blobs that clients can pull from where they are.
type redirector interface {
	Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error)
}

// redirecting is sparing, and says where blobs are.
type redirecting struct {
	sparing
	redirector
}

type sparing struct {
	registry.Blobs
	condemned registry.Condemned
}

func (s sparing) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := s.condemned.Rescind(ctx, d); err != nil {
		return err
	}
	return s.Blobs.Put(ctx, d, size, r)
}

// SpareUploads is [Spare] for what arrives in pieces.
func SpareUploads(uploads registry.Uploads, condemned registry.Condemned) registry.Uploads {
	return sparingUploads{uploads, condemned}
}

type sparingUploads struct {
	registry.Uploads
	condemned registry.Condemned
}

func (s sparingUploads) Finish(ctx context.Context, owner registry.UploadOwner, id string, d registry.Digest) (int64, error) {
	if err := s.condemned.Rescind(ctx, d); err != nil {
		return 0, err
	}
	return s.Uploads.Finish(ctx, owner, id, d)
}
