package s3

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
)

// object is an open blob.
type object struct {
	ctx  context.Context //nolint:containedctx // of the request that the object was opened for; a reader has no other way to end
	b    *Bucket
	key  string
	size int64
	// version names these bytes: ETag and time of change. It changes when they are replaced.
	version string

	at     int64 // where reading goes on
	stream io.ReadCloser
	moved  bool // the stream has given something
}

var _ registry.Blob = (*object)(nil)

// Version changes when the object is replaced.
func (o *object) Version() string { return o.version }

var errNegative = errors.New("seek to before the beginning")

// Read reads from one stream. One that breaks in the middle is taken up where it broke.
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
		case !o.moved: // broken before it began: the store has had its tries
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, o.b.interpretError("read", o.key, err)
		}
	}
}

// ReadAt asks for the range alone.
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

// get asks for the bytes from a place up to before another one.
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
		return nil, errors.Join(registry.Errorf(registry.CodeInternal, "read %s: the object store sends %d bytes where %d were asked for", o.key, info.Size, to-from), stream.Close())
	}
	return stream, nil
}

// Seek says where Read goes on.
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

// drop ends the stream. What it has not given yet is not wanted.
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
