package distribution

import (
	"context"
	"errors"
	"hash"
	"io"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// checkedTail is how many of the last bytes are withheld until everything is hashed. If the
	// bytes are wrong, the client so receives fewer than Content-Length announced.
	checkedTail = 4 << 10
	// checkedFor is how long hashed bytes of the same version are sent without hashing them
	// again. Hashing takes longer than sending, and a fleet pulls the same engine many times.
	checkedFor = time.Hour
	// checkedBytes limits the memory for that, which is enough for some ten thousand blobs.
	checkedBytes = 4 << 20
)

// checked hashes content while it is read from beginning to end. After a seek it does not check
// the content, since a part has no digest.
type checked struct {
	storage.Blob
	want registry.Digest
	size int64

	at   int64
	sum  hash.Hash // of the bytes read; nil after a seek that skipped some
	tail []byte    // read and hashed, but not returned yet
	err  error     // sticky; io.EOF: all of it matches the digest
}

func newChecked(blob storage.Blob, d registry.Digest, size int64) *checked {
	return &checked{Blob: blob, want: d, size: size, sum: d.Algorithm().Hash()}
}

// right reports whether all of the content was read and matches its digest.
func (c *checked) right() bool { return errors.Is(c.err, io.EOF) }

// failure returns why the content could not be read to its end, or nil. CodeDigest means that
// it does not match its digest.
func (c *checked) failure() error {
	if c.right() {
		return nil
	}
	return c.err
}

// Seek moves within the content.
func (c *checked) Seek(offset int64, whence int) (int64, error) {
	at, err := c.Blob.Seek(offset, whence)
	if err != nil {
		return at, err
	}
	c.at, c.tail, c.sum = at, nil, nil
	if at == 0 {
		c.sum = c.want.Algorithm().Hash()
	}
	return at, nil
}

// Read returns the last bytes only after all bytes were found to match the digest. Errors:
// CodeDigest.
func (c *checked) Read(p []byte) (int, error) {
	if c.sum == nil {
		return c.Blob.Read(p)
	}
	if left := c.size - checkedTail - c.at; left > 0 && c.err == nil {
		n, err := c.Blob.Read(p[:min(int64(len(p)), left)])
		c.sum.Write(p[:n])
		c.at += int64(n)
		c.err = c.early(err)
		return n, c.err
	}
	if c.err == nil {
		c.tail, c.err = c.readTail()
	}
	n := copy(p, c.tail)
	if c.tail = c.tail[n:]; n > 0 {
		return n, nil
	}
	return 0, c.err
}

// readTail reads the rest and compares the digest.
func (c *checked) readTail() ([]byte, error) {
	tail := make([]byte, c.size-c.at)
	n, err := io.ReadFull(c.Blob, tail)
	c.at += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	if err != nil {
		return nil, c.early(err)
	}
	c.sum.Write(tail)
	if got := digest.NewDigest(c.want.Algorithm(), c.sum); got != c.want {
		return nil, registry.Errorf(registry.CodeDigest, "%s is damaged: its bytes have the digest %s", c.want, got)
	}
	return tail, io.EOF
}

// early is the error of content that ends too early.
func (c *checked) early(err error) error {
	if errors.Is(err, io.EOF) {
		return registry.Errorf(registry.CodeDigest, "%s is damaged: it ends after %d bytes of %d", c.want, c.at, c.size)
	}
	return err
}

// wasRight reports whether this version of the content was hashed within [checkedFor].
func wasRight(h *handler, d registry.Digest, version string) bool {
	seen, ok := h.sightings.Get(d)
	return ok && version != "" && seen.version == version && time.Now().Before(seen.until)
}

// isRight remembers that a version of the content matched its digest.
func isRight(h *handler, d registry.Digest, version string) {
	if version != "" {
		h.sightings.Put(d, sighting{version, time.Now().Add(checkedFor)}, 2*len(d)+len(version))
	}
}

// noteDamage reports content whose bytes do not match its digest.
func noteDamage(ctx context.Context, h *handler, d registry.Digest, err error) {
	h.Logger.ErrorContext(ctx, "stored bytes are damaged", "digest", d, "error", err)
	if h.Damaged != nil {
		h.Damaged(context.WithoutCancel(ctx), d, err)
	}
}
