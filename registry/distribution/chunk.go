package distribution

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// receiveChunk appends the body of a request to an upload and returns the number of bytes received
// so far. Chunks must be in order. A chunk that does not begin at the end of the last one is
// refused with 416 and the expected offset.
func receiveChunk(h *handler, r *http.Request, at request) (int64, error) {
	ctx := r.Context()
	have, err := h.Uploads.Offset(ctx, ownerOf(ctx, h, at), at.last)
	if err != nil {
		return 0, err
	}
	c, err := parseChunk(r.Header.Get("Content-Range"), r.ContentLength, have)
	if err != nil {
		return 0, err
	}
	if c.start != have {
		return 0, outOfOrder(ctx, h, at, nil)
	}
	body := &body{r: r.Body, want: c.length}
	n, err := h.Uploads.Append(ctx, ownerOf(ctx, h, at), at.last, have, body)
	switch {
	case body.err != nil:
		return n, broken(at, n, body.err)
	case registry.HasCode(err, registry.CodeConflict):
		return n, outOfOrder(ctx, h, at, err)
	}
	return n, err
}

// broken refuses a chunk of the wrong length. It says how many bytes of the upload are stored,
// so that the client can continue there.
func broken(at request, n int64, cause error) error {
	p := problemf(400, codeSizeInvalid,
		"the chunk has the wrong length: %d bytes of the upload were received; continue there", n)
	p.cause = cause
	return p.with("Location", at.location()).with("Range", received(n))
}

// outOfOrder refuses a chunk and returns the expected offset.
func outOfOrder(ctx context.Context, h *handler, at request, cause error) error {
	have, err := h.Uploads.Offset(ctx, ownerOf(ctx, h, at), at.last)
	if err != nil {
		return err
	}
	p := problemf(
		416,
		codeUploadInvalid,
		"the upload has %d bytes, and the chunk begins elsewhere or another chunk is being written: continue there, one "+
			"chunk at a time",
		have,
	)
	p.cause = cause
	return p.with("Location", at.location()).with("Range", received(have))
}

// chunk is the part of an upload in a request.
type chunk struct {
	start  int64
	length int64 // -1: until the body ends
}

var chunkGrammar = regexp.MustCompile(`^([0-9]+)-([0-9]+)$`)

// parseChunk parses the Content-Range header of a chunk, "first-last", both inclusive. Without
// the header the chunk is appended. length is the Content-Length, or -1.
func parseChunk(contentRange string, length, have int64) (chunk, error) {
	if contentRange == "" {
		return chunk{have, length}, nil
	}
	m := chunkGrammar.FindStringSubmatch(contentRange)
	if m == nil {
		return chunk{}, problemf(400, codeUploadInvalid, "content-range %q: want <first>-<last>, both inclusive",
			contentRange)
	}
	first, err1 := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[2], 10, 64)
	if err1 != nil || err2 != nil || last < first || last-first+1 < 0 {
		return chunk{}, problemf(400, codeUploadInvalid,
			"content-range %q: want FIRST-LAST, two byte offsets with LAST at least FIRST", contentRange)
	}
	c := chunk{first, last - first + 1}
	if length >= 0 && length != c.length {
		return chunk{}, problemf(400, codeSizeInvalid, "content-range %q has %d bytes and the body %d", contentRange,
			c.length, length)
	}
	return c, nil
}

var (
	errShort = errors.New("the body ended before the chunk")
	errLong  = errors.New("the body is longer than the chunk")
)

// body reads the bytes of a chunk. It remembers why they ended too early or too late, so that a
// client's failure is not mistaken for one of the store.
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

// ownerOf returns the owner of the uploads of a request.
func ownerOf(ctx context.Context, h *handler, at request) storage.UploadOwner {
	return storage.UploadOwner{Repository: at.repository, Principal: h.Principal(ctx)}
}

// location returns the URL of an upload.
func (at request) location() string { return "/v2/" + at.repository + "/blobs/uploads/" + at.last }

// received returns the Range header of an upload of n bytes. The protocol cannot express an
// empty range; for an empty upload it returns what clients expect.
func received(n int64) string { return "0-" + strconv.FormatInt(max(n-1, 0), 10) }
