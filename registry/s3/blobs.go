package s3

import (
	"context"
	"iter"
	"time"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Open only looks up the object. The first Read requests it from the current position to its end.
// A Seek elsewhere drops that stream. ReadAt requests its range alone.
func (b *Bucket) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	key, err := b.key(d)
	if err != nil {
		return nil, 0, err
	}
	info, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, 0, b.interpretError("open", "blob "+string(d), err)
	}
	version := info.ETag + " " + info.LastModified.UTC().Format(time.RFC3339Nano)
	return &object{ctx: ctx, b: b, key: key, size: info.Size, version: version}, info.Size, nil
}

// Delete deletes the object.
func (b *Bucket) Delete(ctx context.Context, d registry.Digest) error {
	key, err := b.key(d)
	if err != nil {
		return err
	}
	return b.interpretError("delete", "blob "+string(d), b.remove(ctx, key))
}

// Digests lists the objects whose key belongs to a digest. It skips other objects.
func (b *Bucket) Digests(ctx context.Context) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		for info, err := range b.list(ctx, b.under("blobs")) {
			if err != nil {
				yield("", err)
				return
			}
			if d, ok := b.digestOf(info.Key); ok && !yield(d, nil) {
				return
			}
		}
	}
}

// list lists the objects whose keys begin with a prefix, a page at a time.
func (b *Bucket) list(ctx context.Context, prefix string) iter.Seq2[minio.ObjectInfo, error] {
	return func(yield func(minio.ObjectInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for info := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if info.Err != nil {
				yield(minio.ObjectInfo{}, b.interpretError("list", prefix, info.Err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(minio.ObjectInfo{}, err)
		}
	}
}
