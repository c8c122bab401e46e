package client

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// query returns a query from pairs of names and values, without empty values.
func query(pairs ...string) url.Values {
	values := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

func (c *Client) get(ctx context.Context, path string, values url.Values, into any) error {
	_, err := c.getPage(ctx, path, values, into)
	return err
}

// getPage also returns the cursor of the next page, or "" on the last page.
func (c *Client) getPage(ctx context.Context, path string, values url.Values, into any) (next string, err error) {
	header, err := c.getList(ctx, path, values, into)
	return cursorOf(header), err
}

// getList gets a page of a list, and returns the headers of the answer.
func (c *Client) getList(ctx context.Context, path string, values url.Values, into any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at(path, values), nil)
	if err != nil {
		return nil, err
	}
	header, _, err := c.do(request, into)
	return header, err
}

func (c *Client) getOf(ctx context.Context, model, operation string, values url.Values, into any) error {
	path, err := wire.ModelPath(model, operation)
	if err != nil {
		return err
	}
	return c.get(ctx, path, values, into)
}

// post also returns the problem, for data that it carries beside the error.
func (c *Client) post(ctx context.Context, model, operation string, body, into any) (*wire.Problem, error) {
	path, err := wire.ModelPath(model, operation)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, http.MethodPost, path, body, into)
}

// send sends a body. A POST has an idempotency key, so that the service executes repeated
// requests once.
func (c *Client) send(ctx context.Context, method, path string, body, into any) (*wire.Problem, error) {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.at(path, nil), bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost {
		request.Header.Set(wire.IdempotencyKey, cryptorand.Text())
	}
	_, problem, err := c.do(request, into)
	return problem, err
}

func (c *Client) at(path string, values url.Values) string {
	u := *c.base
	u.Path, u.RawQuery = path, values.Encode()
	return u.String()
}

// answer is an HTTP response with its body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request, with retries. It returns the error of a failed response, with its
// problem.
func (c *Client) do(request *http.Request, into any) (http.Header, *wire.Problem, error) {
	text, plain := into.(*[]byte)
	if plain {
		request.Header.Set("Accept", "text/plain")
	} else {
		request.Header.Set("Accept", "application/json")
	}
	got, err := c.persist(request)
	if cause := request.Context().Err(); err != nil && cause != nil {
		return nil, nil, cause
	}
	if err != nil {
		return nil, nil, c.noResponse(err)
	}
	if got.status/100 != 2 {
		var problem wire.Problem
		err := c.refused(request, got, &problem)
		if problem.Code == "" {
			return nil, nil, err
		}
		return nil, &problem, err
	}
	if into == nil {
		return got.header, nil, nil
	}
	if plain {
		*text = got.body
		return got.header, nil, nil
	}
	if err := json.Unmarshal(got.body, into); err != nil {
		return nil, nil, c.strange("body", err)
	}
	return got.header, nil, nil
}

// noResponse returns the error of a request without a response.
func (c *Client) noResponse(err error) error {
	if registry.LastingTLS(err) {
		return registry.Lastingf(registry.CodeUnavailable, "no response from %s: %w", c.base, err)
	}
	return registry.Errorf(registry.CodeUnavailable, "no response from %s: %w", c.base, err)
}

// temporary reports whether a status without a problem document can be that of a proxy, which answers otherwise
// in a while.
func temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// refused returns the error of a failed response, and sets its problem if problem is not nil.
func (c *Client) refused(request *http.Request, got answer, problem *wire.Problem) error {
	if problem == nil {
		problem = new(wire.Problem)
	}
	if err := json.Unmarshal(got.body, problem); err != nil || problem.Code == "" {
		problem.Code = ""
		err := registry.Errorf(registry.CodeUnavailable, "%s returned %d %s and is not an mlpromote service",
			request.URL, got.status, http.StatusText(got.status))
		if !temporary(got.status) {
			err = registry.WithExit(err, registry.ExitFailed)
		}
		return err
	}
	return problem.Err()
}

// attempts is the maximum number of attempts per request.
const attempts = 4

// persist sends a request until the response is final. Every request can be repeated: writes
// have an idempotency key or set a state.
func (c *Client) persist(request *http.Request) (got answer, err error) {
	wait := c.backoff
	for n := 1; ; n++ {
		got, err = c.exchange(request)
		delay, again := retryable(got, err, wait/2+rand.N(wait)) //nolint:gosec // spreads retries; not a secret
		if !again || n == attempts {
			return got, err
		}
		select {
		case <-request.Context().Done():
			return answer{}, request.Context().Err()
		case <-time.After(delay):
		}
		wait *= 2
		if request.GetBody != nil {
			if request.Body, err = request.GetBody(); err != nil {
				return answer{}, err
			}
		}
	}
}

// maxRetryAfter is the longest wait that a service may request. The user decides about longer
// ones.
const maxRetryAfter = 30 * time.Second

// retryable reports whether and when a request may be repeated: if there is no response, or if
// the response asks for it. A conflict does so while the same request is still running.
func retryable(got answer, err error, wait time.Duration) (time.Duration, bool) {
	if err != nil {
		return wait, errors.Is(err, syscall.ECONNRESET) ||
			errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) ||
			errors.Is(err, io.EOF) ||
			errors.Is(err, io.ErrUnexpectedEOF)
	}
	asked := retryAfter(got.header.Get("Retry-After"))
	switch got.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusConflict:
		var problem wire.Problem
		if json.Unmarshal(got.body, &problem) == nil && problem.Code != "" && problem.Lasting() {
			return 0, false
		}
	}
	switch got.status {
	case http.StatusServiceUnavailable:
		return max(wait, asked), asked <= maxRetryAfter
	case http.StatusTooManyRequests, http.StatusConflict:
		return max(wait, asked), asked > 0 && asked <= maxRetryAfter
	}
	return 0, false
}

// retryAfter parses seconds or a date; 0 means invalid.
func retryAfter(text string) time.Duration {
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	seconds, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (c *Client) exchange(request *http.Request) (answer, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return answer{response.StatusCode, response.Header, body}, err
}

// maxAnswer limits the size of a response. The largest has all claims of a release.
const maxAnswer = 256 << 20

// cursorOf returns the cursor of the next page in a Link header. The client does not follow the
// link itself; it repeats the request with the cursor.
func cursorOf(header http.Header) string {
	for _, link := range header.Values("Link") {
		target, parameters, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if !ok || !strings.Contains(parameters, `rel="next"`) {
			continue
		}
		if u, err := url.Parse(target); err == nil {
			return u.Query().Get("cursor")
		}
	}
	return ""
}
