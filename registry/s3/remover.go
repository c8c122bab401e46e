package s3

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Remover = (*Bucket)(nil)

// permitKey is the name of an object under blobs/ that never exists. Deleting it shows which
// requests the store refuses.
const permitKey = "permit"

// Permit takes the time from the store itself. Deletions by the permit are requests that
// expire [storage.PermitTime] after that time, by the store's clock, so the store refuses
// them if the collector was suspended or the request was delayed. Permit fails if the store
// carries out an expired request. It also fails if the store refuses a current one: then the
// date of its responses may be that of a proxy.
func (b *Bucket) Permit(ctx context.Context) (storage.Permit, error) {
	now, err := b.time(ctx)
	if err != nil {
		return nil, err
	}
	late := permit{
		b,
		now.Add(-b.permitTime - storage.RemovalMargin),
	} // the store must refuse it, even if the date is off by the margin
	switch err := late.delete(ctx, b.under("blobs")+permitKey); {
	case err == nil:
		return nil, registry.WithHint(
			registry.Errorf(
				registry.CodeUnavailable,
				"delete in %s: the object store carries out expired requests, so a late deletion could remove content stored "+
					"since; nothing was deleted",
				b,
			),
			"use a store that checks X-Amz-Expires, without a proxy whose clock is wrong: see docs/object-storage.md")
	case !refused(err):
		return nil, b.interpretError("delete in", b.String(), err)
	}
	p := permit{b, now}
	if err := p.delete(ctx, b.under("blobs")+permitKey); err != nil && !saidCode(err, minio.NoSuchKey) {
		return nil, b.interpretError("delete in", b.String(), err)
	}
	return p, nil
}

// refused reports whether the store answered that a request is not allowed, as it does for an
// expired one.
func refused(err error) bool {
	answer, ok := response(err)
	return ok && answer.StatusCode == http.StatusForbidden
}

// Await has nothing to wait for: the catalog keeps a removal open for longer than its permit
// lasts.
func (b *Bucket) Await(context.Context) error { return nil }

// Repeatable is true: a load balancer that gets no answer sends the same DELETE again, and the
// store accepts it until it has expired.
func (b *Bucket) Repeatable() bool { return true }

// Outlast waits until every earlier permit has expired and the store has carried out what it
// accepted.
func (b *Bucket) Outlast(ctx context.Context) error {
	timer := time.NewTimer(b.permitTime + storage.RemovalMargin)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// time is the time of the store, from the Date header of a response. It is rounded down to the
// second. The request may fail; its response has a date anyway.
func (b *Bucket) time(ctx context.Context) (time.Time, error) {
	u, err := b.address(ctx, b.under("blobs")+permitKey)
	var answer *http.Response
	if err == nil {
		answer, err = b.send(ctx, http.MethodHead, u)
	}
	if err != nil {
		return time.Time{}, b.interpretError("ask for the time of", b.String(), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError { // a proxy may have answered, with its own date
		return time.Time{}, b.interpretError("ask for the time of", b.String(),
			minio.ErrorResponse{StatusCode: answer.StatusCode, Message: answer.Status})
	}
	now, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}, registry.Errorf(registry.CodeUnavailable,
			"ask for the time of %s: the response of the object store has no valid date: %w", b, err)
	}
	return now, nil
}

// permit allows deletions from a time on, by the clock of the store.
type permit struct {
	b  *Bucket
	at time.Time
}

// Delete makes one request and does not retry it. A caller that cannot tell whether it arrived
// waits until it has expired.
func (p permit) Delete(ctx context.Context, d registry.Digest) error {
	key, err := p.b.key(d)
	if err != nil {
		return err
	}
	err = p.delete(ctx, key)
	if saidCode(err, minio.NoSuchKey) {
		return nil
	}
	return p.b.interpretError("delete", "blob "+string(d), err)
}

// Close has nothing to release.
func (permit) Close() error { return nil }

// delete deletes an object. It returns the store's own errors.
func (p permit) delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, p.b.permitTime)
	defer cancel()
	u, err := p.b.address(ctx, key)
	if err != nil {
		return err
	}
	who, err := p.b.credentials.GetWithContext(nil)
	if err != nil {
		return err
	}
	signedURL := presign(http.MethodDelete, u, who, p.b.config.Region, p.at, int(p.b.permitTime/time.Second))
	answer, err := p.b.send(ctx, http.MethodDelete, signedURL)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		return nil
	}
	return responseError(answer)
}

// maxErrorBytes bounds how much of an error response is read.
const maxErrorBytes = 64 << 10

// responseError is the error that a response describes.
func responseError(answer *http.Response) error {
	failure := minio.ErrorResponse{Message: answer.Status}
	_ = xml.NewDecoder(io.LimitReader(answer.Body, maxErrorBytes)).Decode(&failure) // without a body, the status is enough
	failure.StatusCode = answer.StatusCode
	return failure
}

// address is the unsigned URL of an object.
func (b *Bucket) address(ctx context.Context, key string) (url.URL, error) {
	u, err := b.core.Presign(ctx, http.MethodGet, b.name, key, time.Minute, nil)
	if err != nil {
		return url.URL{}, err
	}
	u.RawQuery = ""
	return *u, nil
}

// send sends a request without a body. The caller closes the body of the response.
func (b *Bucket) send(ctx context.Context, method string, u url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	return b.client.Do(request)
}
