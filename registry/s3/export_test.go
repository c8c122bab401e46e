package s3

import (
	"context"
	"net/url"
	"path"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"mlpromote.dev/mlpromote/registry/storage"
)

// Leftovers lists what uploads left: objects in their folders, and multipart uploads.
func (b *Bucket) Leftovers(ctx context.Context) ([]string, error) {
	var found []string
	for info, err := range b.list(ctx, b.under(uploadsFolder)) {
		if err != nil {
			return nil, err
		}
		found = append(found, info.Key)
	}
	page, err := b.core.ListMultipartUploads(ctx, b.name, b.prefix, "", "", "", 0)
	for _, m := range page.Uploads {
		found = append(found, m.Key+"?"+m.UploadID)
	}
	return found, err
}

// SetCopyBytes makes the bucket copy larger objects in parts.
func (b *Bucket) SetCopyBytes(n int64) { b.copyBytes = n }

// SetPartBytes makes the bucket send parts of another size.
func (b *Bucket) SetPartBytes(n int) { b.partBytes = n }

// SetLeftoverAge sets the age from which objects count as leftovers.
func (b *Bucket) SetLeftoverAge(d time.Duration) { b.leftoverAge = d }

// SetPermitTime sets how long permits last, in whole seconds.
func (b *Bucket) SetPermitTime(d time.Duration) { b.permitTime = d }

// PermitAt is a permit issued at a time of the store's clock.
func (b *Bucket) PermitAt(at time.Time) storage.Permit { return permit{b, at} }

// Time is the time by the store's clock.
func (b *Bucket) Time(ctx context.Context) (time.Time, error) { return b.time(ctx) }

// Presign signs a request.
func Presign(method string, u url.URL, who credentials.Value, region string, at time.Time, seconds int) url.URL {
	return presign(method, u, who, region, at, seconds)
}

// Write makes an object that no catalog and no upload refers to.
func (b *Bucket) Write(ctx context.Context, name string) error {
	return b.write(ctx, path.Join(b.prefix, name), []byte("left"))
}

// Has reports whether an object exists.
func (b *Bucket) Has(ctx context.Context, name string) bool {
	_, err := b.size(ctx, path.Join(b.prefix, name))
	return err == nil
}

// Multipart begins a multipart upload and leaves it open.
func (b *Bucket) Multipart(ctx context.Context, name string) error {
	_, err := b.core.NewMultipartUpload(ctx, b.name, path.Join(b.prefix, name), minio.PutObjectOptions{})
	return err
}
