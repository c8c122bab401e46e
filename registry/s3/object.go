package s3

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// object is an open blob.
type object struct {
	ctx  context.Context //nolint:containedctx // of the request that opened it; Read has no context parameter
	b    *Bucket
	key  string
	size int64
	// version identifies these bytes: ETag and time of change. It changes if they are replaced.
	version string

	at     int64 // the position of the next Read
	stream io.ReadCloser
	moved  bool // the stream has returned bytes
}

var _ storage.Blob = (*object)(nil)

// Version changes when the object is replaced.
func (o *object) Version() string { return o.version }

var errNegative = errors.New("seek to before the beginning")

// Read reads from one stream. It reopens a stream that breaks midway.
func (o *object) Read(p []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if o.stream == nil {
			stream, err := o.get(o.at, o.size)
			if err != nil {
				return 0, err
			}
			o.stream, o.moved = stream, false
		}
		n, err := o.stream.Read(p[:min(int64(len(p)), o.size-o.at)])
		o.at += int64(n)
		o.moved = o.moved || n > 0
		if err != nil {
			o.drop()
		}
		switch {
		case n > 0 || err == nil:
			return n, nil
		case !o.moved: // failed before the first byte: the client has retried already
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, o.b.interpretError("read", o.key, err)
		}
	}
}

// ReadAt requests only the range.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case off < 0:
		return 0, errNegative
	case off >= o.size:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	end := min(off+int64(len(p)), o.size)
	stream, err := o.get(off, end)
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	n, err := io.ReadFull(stream, p[:end-off])
	if err == nil && n < len(p) {
		return n, io.EOF
	}
	return n, o.b.interpretError("read", o.key, err)
}

// get requests the bytes from one position up to, but excluding, another.
func (o *object) get(from, to int64) (io.ReadCloser, error) {
	var options minio.GetObjectOptions
	if from > 0 || to < o.size {
		if err := options.SetRange(from, to-1); err != nil {
			return nil, registry.Errorf(registry.CodeInternal, "read %s: %w", o.key, err)
		}
	}
	stream, info, _, err := o.b.core.GetObject(o.ctx, o.b.name, o.key, options)
	if err != nil {
		return nil, o.b.interpretError("read", o.key, err)
	}
	if info.Size != to-from {
		return nil, errors.Join(
			registry.Errorf(registry.CodeInternal, "read %s: the object store sent %d bytes, want %d", o.key,
				info.Size, to-from),
			stream.Close(),
		)
	}
	return stream, nil
}

// Seek sets the position of the next Read.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errNegative
	}
	if offset != o.at {
		o.drop()
	}
	o.at = offset
	return offset, nil
}

// drop ends the stream and discards its remaining bytes.
func (o *object) drop() {
	if o.stream != nil {
		_ = o.stream.Close()
		o.stream = nil
	}
}

// Close ends the stream.
func (o *object) Close() error {
	o.drop()
	return nil
}
