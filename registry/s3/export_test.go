package s3

import (
	"context"

	"github.com/minio/minio-go/v7"
)

// Leftovers lists what is neither a blob nor nothing: objects under staging/, and
// multipart uploads.
func (b *Bucket) Leftovers(ctx context.Context) ([]string, error) {
	var found []string
	for info, err := range b.list(ctx, b.under("staging")) {
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

// Write makes an object that nothing knows of.
func (b *Bucket) Write(ctx context.Context, name string) error {
	return b.write(ctx, b.under("staging")+name, []byte("left"))
}

// Multipart begins an object under blobs/ that nobody completes.
func (b *Bucket) Multipart(ctx context.Context, name string) error {
	_, err := b.core.NewMultipartUpload(ctx, b.name, b.under("blobs")+name, minio.PutObjectOptions{})
	return err
}
