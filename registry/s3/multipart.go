package s3

import (
	"bytes"
	"context"

	"github.com/minio/minio-go/v7"
)

// multipart is an object that is uploaded in parts. It appears when it is complete.
type multipart struct {
	b     *Bucket
	key   string
	id    string
	parts []part
}

// part is a stored part. Its ETag distinguishes it from others with the same number.
type part struct {
	Number int    `json:"n"`
	ETag   string `json:"e"`
}

// newMultipart begins an object. Errors here and below are those of the store.
func (b *Bucket) newMultipart(ctx context.Context, key string) (*multipart, error) {
	id, err := b.core.NewMultipartUpload(ctx, b.name, key, minio.PutObjectOptions{})
	return &multipart{b: b, key: key, id: id}, err
}

// put sends the next part. Numbers grow and may leave gaps.
func (m *multipart) put(ctx context.Context, number int, content []byte) error {
	sent, err := m.b.core.PutObjectPart(ctx, m.b.name, m.key, m.id, number, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectPartOptions{Sha256Hex: signed(content), DisableContentSha256: true})
	if err == nil {
		m.parts = append(m.parts, part{number, sent.ETag})
	}
	return err
}

// complete combines the parts into the object.
func (m *multipart) complete(ctx context.Context) error {
	parts := make([]minio.CompletePart, len(m.parts))
	for i, p := range m.parts {
		parts[i] = minio.CompletePart{PartNumber: p.Number, ETag: p.ETag}
	}
	_, err := m.b.core.CompleteMultipartUpload(ctx, m.b.name, m.key, m.id, parts, minio.PutObjectOptions{})
	return err
}

// abort deletes the parts, even if the caller has disconnected. Sweep deletes what it misses.
func (m *multipart) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	_ = m.b.core.AbortMultipartUpload(ctx, m.b.name, m.key, m.id)
}
