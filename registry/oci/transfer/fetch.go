package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/registry"
)

// Fetch opens content, and continues after a broken connection. It does not hash the content.
// Errors: errdef.ErrNotFound; CodeUnavailable, from Read, if the network fails too often.
func (r *Repository) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := r.Repository.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	return &resumed{
		body: body, size: desc.Size, tries: r.options.Tries,
		open: func(offset int64, failures int) (io.ReadCloser, error) {
			if err := r.pause(ctx, failures); err != nil {
				return nil, err
			}
			if isManifest(desc.MediaType) {
				return skipping(offset)(r.Repository.Fetch(ctx, desc))
			}
			return r.fetchFrom(ctx, desc, offset)
		},
		give: func(failures int, offset int64, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return registry.Errorf(registry.CodeUnavailable,
				"registry %s: %d of %d bytes of %s came, and then the connection broke %d times in a row: %w",
				r.host(), offset, desc.Size, desc.Digest, failures, err)
		},
	}, nil
}

// fetchFrom opens a blob at an offset.
func (r *Repository) fetchFrom(ctx context.Context, desc ocispec.Descriptor, offset int64) (io.ReadCloser, error) {
	ctx = auth.AppendRepositoryScope(ctx, r.Reference, auth.ActionPull)
	req, err := http.NewRequestWithContext(withoutRetry(ctx), http.MethodGet, r.url("blobs/"+string(desc.Digest)), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	resp, err := r.do(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusPartialContent:
		var from int64
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from); err != nil || from != offset {
			_ = resp.Body.Close() // no bytes were requested
			return nil, registry.Errorf(registry.CodeUnavailable,
				"registry %s: asked for blob %s from byte %d on, it sent Content-Range %q",
				r.host(), desc.Digest, offset, resp.Header.Get("Content-Range"))
		}
		return resp.Body, nil
	case http.StatusOK:
		return skipping(offset)(resp.Body, nil)
	case http.StatusRequestedRangeNotSatisfiable:
		_ = resp.Body.Close() // as above
		return http.NoBody, nil
	}
	return nil, problem(resp)
}

// skipping skips bytes that were already read.
func skipping(offset int64) func(io.ReadCloser, error) (io.ReadCloser, error) {
	return func(body io.ReadCloser, err error) (io.ReadCloser, error) {
		if err != nil {
			return nil, err
		}
		if _, err := io.CopyN(io.Discard, body, offset); err != nil {
			return nil, errors.Join(err, body.Close())
		}
		return body, nil
	}
}

// resumed is content that is opened again after a broken connection.
type resumed struct {
	open  func(offset int64, failures int) (io.ReadCloser, error) // waits before it does
	give  func(failures int, offset int64, err error) error       // the error to end with
	tries int
	size  int64

	body     io.ReadCloser // nil while there is no connection
	offset   int64
	failures int  // since the last byte
	ended    bool // the content ended early since then, in good order
}

// Read reads, and reconnects if necessary. If content ends twice at the same offset, Read
// returns io.EOF there; the caller that hashes will notice a short blob.
func (r *resumed) Read(p []byte) (int, error) {
	for {
		n, err := r.read(p)
		r.offset += int64(n)
		ended := err == io.EOF //nolint:errorlint // of the body itself: a connection that was refused ends with a wrapped one
		switch {
		case n > 0:
			r.failures, r.ended = 0, false
			return n, nil // an error comes again
		case err == nil, ended && (r.offset >= r.size || r.ended):
			return 0, err
		}
		r.ended = r.ended || ended
		if r.failures++; r.failures >= r.tries || classify(err) != again {
			return 0, r.give(r.failures, r.offset, err)
		}
		if r.body != nil {
			_ = r.body.Close() // it is broken
			r.body = nil
		}
	}
}

func (r *resumed) read(p []byte) (int, error) {
	if r.body == nil {
		body, err := r.open(r.offset, r.failures)
		if err != nil {
			return 0, err
		}
		r.body = body
	}
	return r.body.Read(p)
}

// Close closes the content.
func (r *resumed) Close() error {
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}
