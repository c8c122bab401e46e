package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/registry"
)

// session is an upload in progress.
type session struct {
	repo  *Repository
	at    *url.URL // URL of the next request: the newest Location
	have  int64    // bytes that the registry has received
	least int64    // the registry's minimum chunk size, except for the last chunk
}

// begin starts an upload. With a digest and another repository it asks for a mount, and returns
// no session if the mount succeeded.
func (r *Repository) begin(ctx context.Context, mount digest.Digest, from string) (*session, error) {
	target := r.url("blobs/uploads/")
	if mount != "" {
		target += "?" + url.Values{"mount": {string(mount)}, "from": {from}}.Encode()
		other := r.Reference
		other.Repository = from
		ctx = auth.AppendRepositoryScope(ctx, other, auth.ActionPull)
	}
	req, err := r.request(ctx, http.MethodPost, target, nil)
	if err != nil {
		return nil, err
	}
	if mount == "" {
		return r.began(r.exchange(req, http.StatusAccepted))
	}
	a, err := r.exchange(req, http.StatusAccepted, http.StatusCreated)
	if err == nil && a.status == http.StatusCreated {
		return nil, nil
	}
	return r.began(a, err)
}

// began returns the session of a new upload.
func (r *Repository) began(a answer, err error) (*session, error) {
	if err != nil {
		return nil, err
	}
	s := &session{repo: r}
	if least, err := strconv.ParseInt(a.header.Get("OCI-Chunk-Min-Length"), 10, 64); err == nil {
		s.least = min(least, maxChunk)
	}
	return s, s.follow(a, true)
}

// request creates a request of an upload.
func (r *Repository) request(ctx context.Context, method, target string, body io.Reader) (*http.Request, error) {
	ctx = auth.AppendRepositoryScope(ctx, r.Reference, auth.ActionPull, auth.ActionPush)
	return http.NewRequestWithContext(ctx, method, target, body)
}

// answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	to     *http.Request
}

// exchange sends a request and expects one of the statuses.
func (r *Repository) exchange(req *http.Request, accepted ...int) (answer, error) {
	resp, err := r.do(req)
	if err != nil {
		return answer{}, err
	}
	if !slices.Contains(accepted, resp.StatusCode) {
		return answer{}, problem(resp)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10)) // so that the connection is used again
	return answer{resp.StatusCode, resp.Header, resp.Request}, nil
}

// follow records the next URL of the upload. It must be on the registry for which the
// credentials are, because they are sent there.
func (s *session) follow(a answer, needed bool) error {
	location := a.header.Get("Location")
	if location == "" && !needed {
		return nil
	}
	to, err := a.to.URL.Parse(location)
	if err != nil || location == "" {
		return registry.Errorf(registry.CodeUnavailable,
			"registry %s: %s %s: want a Location header in the response, got %q", s.repo.host(), a.to.Method, a.to.URL.Path, location)
	}
	want, err := url.Parse(s.repo.url(""))
	if err != nil {
		return err
	}
	if to.Scheme != want.Scheme || to.Hostname() != want.Hostname() || port(to) != port(want) {
		return registry.Errorf(registry.CodeUnavailable,
			"registry %s wants the upload at %s://%s: credentials do not go there", s.repo.host(), to.Scheme, to.Host)
	}
	to.Host = want.Host // with its port or without: tokens are kept by it
	s.at = to
	return nil
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// patch sends a chunk at the registry's current offset.
func (s *session) patch(ctx context.Context, piece []byte) error {
	req, err := s.repo.request(withoutRetry(ctx), http.MethodPatch, s.at.String(), bytes.NewReader(piece))
	if err != nil {
		return err
	}
	end := s.have + int64(len(piece))
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", s.have, end-1))
	a, err := s.repo.exchange(req, http.StatusAccepted, http.StatusNoContent, http.StatusCreated)
	if err != nil {
		return err
	}
	before := s.have
	s.have = end
	if got, ok := received(a); ok {
		s.have = got
	}
	if s.have <= before {
		return fmt.Errorf("it took %d bytes at %d and reports %d", len(piece), before, s.have)
	}
	return s.follow(a, false)
}

// received reads how much of an upload the registry has. An empty upload cannot be represented,
// and looks like one of one byte.
func received(a answer) (int64, bool) {
	var first, last int64
	if _, err := fmt.Sscanf(a.header.Get("Range"), "%d-%d", &first, &last); err != nil || first != 0 {
		return 0, false
	}
	return last + 1, true
}

// ask finds out how much of an upload the registry has, after several failures to send the
// chunk that begins at start.
func (s *session) ask(ctx context.Context, start int64, failures int) error {
	req, err := s.repo.request(ctx, http.MethodGet, s.at.String(), nil)
	if err != nil {
		return err
	}
	a, err := s.repo.exchange(req, http.StatusNoContent, http.StatusOK, http.StatusAccepted)
	if err != nil {
		return err
	}
	got, ok := received(a)
	switch {
	case !ok:
		return lost{registry.Errorf(registry.CodeUnavailable, "the registry does not report how much of the upload it has")}
	case got == 1 && start == 0 && failures%2 == 1:
		got = 0 // otherwise it is 1: then the chunk is refused, and this is asked again
	}
	s.have = got
	return s.follow(a, false)
}

// put sends a blob in one request, from memory or from a stream, and completes the upload with
// it.
func (s *session) put(ctx context.Context, desc ocispec.Descriptor, data []byte, content io.Reader) error {
	if content == nil {
		content = bytes.NewReader(data)
	}
	req, err := s.closing(ctx, desc, content)
	if err != nil {
		return err
	}
	req.ContentLength = desc.Size
	req.Header.Set("Content-Type", "application/octet-stream")
	_, err = s.repo.exchange(req, http.StatusCreated, http.StatusNoContent)
	return s.settle(ctx, desc, err)
}

// finish completes an upload whose content was sent.
func (s *session) finish(ctx context.Context, desc ocispec.Descriptor) error {
	for failures := 1; ; failures++ {
		req, err := s.closing(ctx, desc, nil)
		if err != nil {
			return err
		}
		_, err = s.repo.exchange(req, http.StatusCreated, http.StatusNoContent)
		if err != nil && classify(err) == again && failures < s.repo.options.Tries {
			if there, found := s.repo.Exists(ctx, desc); found == nil && there {
				return nil
			}
			if err := s.repo.pause(ctx, failures); err != nil {
				return err
			}
			continue
		}
		return s.settle(ctx, desc, err)
	}
}

// closing returns the request that completes an upload.
func (s *session) closing(ctx context.Context, desc ocispec.Descriptor, content io.Reader) (*http.Request, error) {
	target := *s.at
	query := target.Query()
	query.Set("digest", string(desc.Digest))
	target.RawQuery = query.Encode()
	return s.repo.request(withoutRetry(ctx), http.MethodPut, target.String(), content)
}

// settle finds out whether the request to complete an upload succeeded, because only its
// response may have been lost.
func (s *session) settle(ctx context.Context, desc ocispec.Descriptor, err error) error {
	if err == nil || classify(err) == fatal {
		return err
	}
	if there, found := s.repo.Exists(ctx, desc); found == nil && there {
		return nil
	}
	if classify(err) == unable && !garbled(err) {
		return err
	}
	return lost{err}
}

// garbled reports whether a registry received other bytes than were sent.
func garbled(err error) bool {
	var said errcode.Error
	return errors.As(err, &said) && said.Code == errcode.ErrorCodeDigestInvalid
}

// lost is the error of an upload that must start again.
type lost struct{ error }

// Unwrap returns the cause.
func (l lost) Unwrap() error { return l.error }
