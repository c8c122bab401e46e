package distribution

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
)

// receive appends the body of a request to an upload and gives the bytes that there are
// then. Chunks come in order: one that does not begin where the last one ended is
// refused with 416, and with where it should have begun.
func (h *handler) receive(r *http.Request, at request) (int64, error) {
	ctx := r.Context()
	have, err := h.Uploads.Offset(ctx, h.owner(ctx, at), at.last)
	if err != nil {
		return 0, err
	}
	c, err := parseChunk(r.Header.Get("Content-Range"), r.ContentLength, have)
	if err != nil {
		return 0, err
	}
	if c.start != have {
		return 0, h.outOfOrder(ctx, at, nil)
	}
	body := &body{r: r.Body, want: c.length}
	n, err := h.Uploads.Append(ctx, h.owner(ctx, at), at.last, have, body)
	switch {
	case body.err != nil:
		return n, broken(at, n, body.err)
	case registry.HasCode(err, registry.CodeConflict):
		return n, h.outOfOrder(ctx, at, err)
	}
	return n, err
}

// broken refuses a chunk of the wrong length. It says how many bytes of the upload are stored,
// so that the client can continue there.
func broken(at request, n int64, cause error) error {
	p := problemf(400, codeSizeInvalid, "the chunk ended early or late: %d bytes of the upload are here; continue there", n)
	p.cause = cause
	return p.with("Location", at.location()).with("Range", received(n))
}

// outOfOrder refuses a chunk and says where the next one begins.
func (h *handler) outOfOrder(ctx context.Context, at request, cause error) error {
	have, err := h.Uploads.Offset(ctx, h.owner(ctx, at), at.last)
	if err != nil {
		return err
	}
	p := problemf(416, codeUploadInvalid, "the upload has %d bytes and the chunk begins elsewhere, or another one is being written; continue there, one chunk after the other", have)
	p.cause = cause
	return p.with("Location", at.location()).with("Range", received(have))
}

// chunk is the part of an upload that a request brings.
type chunk struct {
	start  int64
	length int64 // -1: until the body ends
}

var chunkGrammar = regexp.MustCompile(`^([0-9]+)-([0-9]+)$`)

// parseChunk reads the Content-Range header of a chunk, "first-last", both inclusive.
// Without one the chunk goes behind what came. length is the Content-Length, or -1.
func parseChunk(contentRange string, length, have int64) (chunk, error) {
	if contentRange == "" {
		return chunk{have, length}, nil
	}
	m := chunkGrammar.FindStringSubmatch(contentRange)
	if m == nil {
		return chunk{}, problemf(400, codeUploadInvalid, "content-range %q: want <first>-<last>, both inclusive", contentRange)
	}
	first, err1 := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[2], 10, 64)
	if err1 != nil || err2 != nil || last < first || last-first+1 < 0 {
		return chunk{}, problemf(400, codeUploadInvalid, "content-range %q: want two numbers of bytes, the second not below the first", contentRange)
	}
	c := chunk{first, last - first + 1}
	if length >= 0 && length != c.length {
		return chunk{}, problemf(400, codeSizeInvalid, "content-range %q has %d bytes and the body %d", contentRange, c.length, length)
	}
	return c, nil
}

var (
	errShort = errors.New("the body ended before the chunk")
	errLong  = errors.New("the body goes on behind the chunk")
)

// body is the bytes of a chunk. It remembers why they ended where they should not, so
// that a caller's failure is not taken for one of the store.
type body struct {
	r    io.Reader
	want int64 // -1: any number
	got  int64
	err  error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.got += int64(n)
	switch {
	case b.want >= 0 && b.got > b.want:
		n, err = n-int(b.got-b.want), errLong
		b.got = b.want
	case b.want >= 0 && b.got < b.want && errors.Is(err, io.EOF):
		err = errShort
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
