package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// partBytes is the size of all parts but the last. The store accepts 10,000 parts, so a blob
	// that arrives in pieces has at most 156 GiB. Each writer has one part in memory.
	partBytes = 16 << 20

	maxParts = 10_000

	// maxCopyBytes is the maximum size that the store copies in one request.
	maxCopyBytes = 5 << 30

	// tries is how often a request is sent if the store does not respond, which takes two seconds.
	tries = 4

	// tidyTimeout limits cleanup after the caller has its result or has disconnected.
	tidyTimeout = time.Minute
)

// Bucket is [storage.Blobs] in a bucket. Create one with [Open].
type Bucket struct {
	core   *minio.Core
	name   string
	prefix string
	config Config

	// For requests that the library does not support.
	client      *http.Client
	credentials *credentials.Credentials

	// Copies of the constants; tests set smaller values.
	partBytes   int
	copyBytes   int64
	permitTime  time.Duration
	leftoverAge time.Duration
	buffers     sync.Pool
	uploadForm  *regexp.Regexp // of the keys of uploads
}

var _ storage.RepairableBlobs = (*Bucket)(nil)

// String returns the URL of the bucket.
func (b *Bucket) String() string { return b.config.String() }

// key returns the key of a blob.
func (b *Bucket) key(d registry.Digest) (string, error) {
	if _, err := registry.NewHash(d); err != nil {
		return "", err
	}
	hex := d.Encoded()
	return path.Join(b.prefix, "blobs", string(d.Algorithm()), hex[:2], hex), nil
}

// under returns the prefix of the keys in a folder.
func (b *Bucket) under(folder string) string { return path.Join(b.prefix, folder) + "/" }

// size returns the size of an object. Errors: those of the store.
func (b *Bucket) size(ctx context.Context, key string) (int64, error) {
	info, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	return info.Size, err
}

// write creates an object from bytes in memory.
func (b *Bucket) write(ctx context.Context, key string, content []byte) error {
	_, err := b.core.PutObject(ctx, b.name, key, bytes.NewReader(content), int64(len(content)), "", signed(content),
		minio.PutObjectOptions{DisableContentSha256: true})
	return err
}

// signed returns the hash of a body that is sent at once. The signature covers it, so the store
// refuses a body that was damaged on the way. Not every store supports the alternative, a
// stream of signed chunks.
func signed(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// copy copies an object inside the store.
func (b *Bucket) copy(ctx context.Context, from, to string, size int64) error {
	source := minio.CopySrcOptions{Bucket: b.name, Object: from}
	target := minio.CopyDestOptions{Bucket: b.name, Object: to}
	if size <= b.copyBytes {
		_, err := b.core.Client.CopyObject(ctx, target, source)
		return err
	}
	target.PartSize = uint64(b.copyBytes)
	_, err := b.core.ComposeObject(ctx, target, source)
	return err
}

// remove deletes an object. It succeeds if the object does not exist.
func (b *Bucket) remove(ctx context.Context, key string) error {
	err := b.core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
	if saidCode(err, minio.NoSuchKey) {
		return nil
	}
	return err
}

// Redirect returns a URL by which anyone can read d from the store until it expires. It does
// not check that d exists.
func (b *Bucket) Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (string, bool, error) {
	key, err := b.key(d)
	if err != nil {
		return "", false, err
	}
	u, err := b.core.PresignedGetObject(ctx, b.name, key, expiry, url.Values{
		"response-content-type": {"application/octet-stream"},
	})
	if err != nil {
		return "", false, b.interpretError("redirect to", "blob "+string(d), err)
	}
	return u.String(), true, nil
}

// digestOf returns the digest of the blob with the key, if there is one.
func (b *Bucket) digestOf(key string) (registry.Digest, bool) {
	algorithm, rest, _ := strings.Cut(strings.TrimPrefix(key, b.under("blobs")), "/")
	d := registry.Digest(algorithm + ":" + rest[strings.LastIndexByte(rest, '/')+1:])
	place, err := b.key(d)
	return d, err == nil && place == key
}
