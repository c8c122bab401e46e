package blob

import (
	"context"
	"io"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// maxReserve and reserveShare bound the default reserve: 1 GiB, and one part of so many of the
	// file system.
	maxReserve   = 1 << 30
	reserveShare = 20
	// reserveEvery is after how many bytes of an upload the room is measured again.
	reserveEvery = 1 << 20
)

// Reserve keeps room on the file system of a directory. Uploads end at it, so that quarantines,
// rollbacks and the history can still be written.
type Reserve struct {
	Path  string
	Bytes int64 // negative: the smaller of 1 GiB and 5 % of the file system; 0: none
}

// Room returns how many bytes are free for this user, and how many of them are reserved.
func (r Reserve) Room() (free, reserved int64, err error) {
	var disk unix.Statfs_t
	if err := retried(func() error { return unix.Statfs(r.Path, &disk) }); err != nil {
		return 0, 0, registry.Errorf(registry.CodeInternal, "measure the room of %s: %w", r.Path, err)
	}
	size := int64(disk.Bsize) //nolint:unconvert // its type depends on the platform
	reserved = r.Bytes
	if reserved < 0 {
		reserved = min(maxReserve, int64(disk.Blocks)*size/reserveShare)
	}
	return int64(disk.Bavail) * size, reserved, nil
}

// Check returns an error if size more bytes would not leave the reserve. Errors: CodeFull.
func (r Reserve) Check(size int64) error {
	free, reserved, err := r.Room()
	if err != nil || reserved == 0 || free-size >= reserved {
		return err
	}
	full := registry.WithHint(
		registry.Errorf(registry.CodeFull,
			"%d bytes are free for %s, of which %d are reserved for quarantines, rollbacks and the history: nothing was stored",
			free, r.Path, reserved),
		"free space there, or set a smaller --disk-reserve")
	return registry.ForClients(full, "the disk of the registry is full up to its reserve; nothing was stored; free space there and try again")
}

// Blobs wraps blobs for uploads.
func (r Reserve) Blobs(blobs storage.Blobs) storage.Blobs { return reservedBlobs{blobs, r} }

// Uploads wraps uploads.
func (r Reserve) Uploads(uploads storage.Uploads) storage.Uploads {
	return reservedUploads{uploads, r}
}

type reservedBlobs struct {
	storage.Blobs
	reserve Reserve
}

func (b reservedBlobs) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := b.reserve.Check(max(size, 0)); err != nil {
		return err
	}
	return b.Blobs.Put(ctx, d, size, r)
}

type reservedUploads struct {
	storage.Uploads
	reserve Reserve
}

func (u reservedUploads) Begin(ctx context.Context, owner storage.UploadOwner) (string, error) {
	if err := u.reserve.Check(0); err != nil {
		return "", err
	}
	return u.Uploads.Begin(ctx, owner)
}

func (u reservedUploads) Append(
	ctx context.Context, owner storage.UploadOwner, id string, offset int64, r io.Reader,
) (int64, error) {
	return u.Uploads.Append(ctx, owner, id, offset, &measured{r: r, reserve: u.reserve})
}

// measured is a reader that fails when the room ends.
type measured struct {
	r       io.Reader
	reserve Reserve
	left    int // bytes until the next look
}

func (m *measured) Read(p []byte) (int, error) {
	if m.left <= 0 {
		if err := m.reserve.Check(reserveEvery); err != nil {
			return 0, err
		}
		m.left = reserveEvery
	}
	n, err := m.r.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}
