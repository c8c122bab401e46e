package oci

import (
	"context"
	"io"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// Rehash reads all content of the release in the repository, each blob once, and checks every
// digest. Errors: CodeDigest with the changed content; CodeNotFound with the missing content.
func (s *Store) Rehash(ctx context.Context, name string, r artifact.Release) error {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return err
	}
	t, _, err := repo.release(ctx, string(r.Digest))
	if err != nil {
		return err
	}
	blobs := t.blobs().objects
	count := counter{tell: s.options.Progress}
	for _, m := range t.manifests() {
		count.done += m.desc.Size // hashed when the tree was read
	}
	count.total = count.done
	for _, b := range blobs {
		count.total += b.desc.Size
	}
	buffer := make([]byte, bufferSize)
	for _, b := range blobs {
		if err := hashBlob(ctx, repo, b, &count, buffer); err != nil {
			return err
		}
	}
	return nil
}

// hashBlob reads a blob to its end, which checks it.
func hashBlob(ctx context.Context, repo repository, b object, to io.Writer, buffer []byte) error {
	rc, err := repo.stream(ctx, b.what, b.desc)
	if err != nil {
		return err
	}
	defer rc.Close()
	_, err = io.CopyBuffer(to, rc, buffer)
	return err
}

// counter counts the bytes written to it. It has no ReadFrom, so that io.CopyBuffer
// uses its buffer.
type counter struct {
	done, total int64
	tell        func(done, total int64)
}

// Write counts.
func (c *counter) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	if c.tell != nil {
		c.tell(c.done, c.total)
	}
	return len(p), nil
}
