package s3

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/minio/minio-go/v7"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Put stores r under d. If an object of that size exists, it does not read r, unless the object is
// small and damaged: then it replaces the object.
func (b *Bucket) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	key, err := b.key(d)
	if err != nil {
		return err
	}
	stored, err := b.isStored(ctx, key, d, size)
	if err != nil {
		return b.interpretError("store", "blob "+string(d), err)
	}
	if stored {
		return nil
	}
	return b.Replace(ctx, d, size, r)
}

// isStored reports whether the content of d need not be stored again.
func (b *Bucket) isStored(ctx context.Context, key string, d registry.Digest, size int64) (bool, error) {
	have, err := b.size(ctx, key)
	if saidCode(err, minio.NoSuchKey) {
		return false, nil
	}
	if err != nil || have != size || size > storage.CheckedBytes {
		return err == nil && have == size, err
	}
	got, err := b.rehash(ctx, key, size, d.Algorithm())
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil // deleted since
	}
	return got == d, err
}

// Replace stores r under d, whatever is there. The store replaces an object at once.
func (b *Bucket) Replace(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	key, err := b.key(d)
	if err != nil {
		return err
	}
	sum, err := registry.NewHash(d)
	if err != nil {
		return err
	}
	c := &content{d: d, size: size, r: r, sum: sum}
	buffer := b.borrow()
	defer b.giveBack(buffer)
	if size > int64(b.partBytes) {
		return b.putParts(ctx, key, c, buffer)
	}
	if *buffer, err = c.fill(ctx, *buffer, size); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	return b.interpretError("store", "blob "+string(d), b.write(ctx, key, *buffer))
}

// putParts creates an object from many parts, or no object.
func (b *Bucket) putParts(ctx context.Context, key string, c *content, buffer *[]byte) error {
	subject := "blob " + string(c.d)
	m, err := b.newMultipart(ctx, key)
	if err != nil {
		return b.interpretError("store", subject, err)
	}
	length := max(int64(b.partBytes), (c.size+maxParts-1)/maxParts) // no blob is too large for Put
	for number := 1; err == nil && c.n < c.size; number++ {
		*buffer, err = c.fill(ctx, (*buffer)[:0], min(length, c.size-c.n))
		if err == nil {
			err = b.interpretError("store", subject, m.put(ctx, number, *buffer))
		}
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		m.abort(ctx)
		return err
	}
	err = m.complete(ctx)
	if saidCode(err, minio.NoSuchUpload) { // the request may have succeeded with a lost response
		if got, failed := b.rehash(ctx, key, c.size, c.d.Algorithm()); failed == nil && got == c.d {
			return nil
		}
	}
	if err != nil {
		m.abort(ctx)
	}
	return b.interpretError("store", subject, err)
}

// content is the expected content of a Put.
type content struct {
	d    registry.Digest
	size int64
	r    io.Reader
	sum  hash.Hash
	n    int64 // bytes received
}

// fill reads want bytes into buffer. Errors: CodeDigest for fewer bytes.
func (c *content) fill(ctx context.Context, buffer []byte, want int64) ([]byte, error) {
	buffer, err := fill(ctx, buffer, int(max(want, 0)), c.r, c.sum)
	c.n += int64(len(buffer))
	if err != nil {
		return buffer, fmt.Errorf("read what to store as blob %s: %w", c.d, err) // keeps its own code
	}
	if int64(len(buffer)) < want {
		return buffer, registry.Errorf(registry.CodeDigest,
			"blob %s: received %d of %d bytes: nothing was stored; send the whole content again", c.d, c.n, c.size)
	}
	return buffer, nil
}

// check checks that the received bytes match d and that no more follow.
func (c *content) check() error {
	extra, err := io.CopyN(io.Discard, c.r, 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read what to store as blob %s: %w", c.d, err)
	}
	if extra > 0 || c.size < 0 {
		return registry.Errorf(registry.CodeDigest,
			"blob %s: received more than its %d bytes: nothing was stored; send the right content or the right size",
			c.d, c.size)
	}
	if got := digest.NewDigest(c.d.Algorithm(), c.sum); got != c.d {
		return registry.Errorf(registry.CodeDigest,
			"blob %s: the %d bytes sent have the digest %s: nothing was stored; send the right content or the right digest",
			c.d, c.n, got)
	}
	return nil
}

// fill appends bytes of r to buffer until it has limit bytes or r ends, and writes them to sum,
// which does not fail. Errors: those of r and of ctx.
func fill(ctx context.Context, buffer []byte, limit int, r io.Reader, sum io.Writer) ([]byte, error) {
	for len(buffer) < limit {
		if err := ctx.Err(); err != nil {
			return buffer, err
		}
		if len(buffer) == cap(buffer) {
			grown := make([]byte, len(buffer), min(limit, max(16*cap(buffer), minBuffer)))
			copy(grown, buffer)
			buffer = grown
		}
		have := len(buffer)
		n, err := r.Read(buffer[have:min(cap(buffer), limit)])
		_, _ = sum.Write(buffer[have : have+n])
		buffer = buffer[:have+n]
		if errors.Is(err, io.EOF) {
			return buffer, nil
		}
		if err != nil {
			return buffer, err
		}
	}
	return buffer, nil
}

// minBuffer is enough for most configs. A buffer grows from there to one part in two steps, so
// that little is copied.
const minBuffer = 64 << 10

// borrow returns a pooled buffer.
func (b *Bucket) borrow() *[]byte {
	buffer, ok := b.buffers.Get().(*[]byte)
	if !ok {
		return new([]byte)
	}
	*buffer = (*buffer)[:0]
	return buffer
}

func (b *Bucket) giveBack(buffer *[]byte) { b.buffers.Put(buffer) }

// rehash computes the digest of an object of a known size.
func (b *Bucket) rehash(ctx context.Context, key string, size int64, algorithm digest.Algorithm) (registry.Digest, error) {
	sum := algorithm.Hash()
	var all storage.Blob = &object{ctx: ctx, b: b, key: key, size: size}
	defer all.Close()
	if _, err := io.Copy(sum, all); err != nil {
		return "", err
	}
	return digest.NewDigest(algorithm, sum), nil
}
