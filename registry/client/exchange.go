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
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/rest"
)

// call sends an operation to the service and sets its answer.
func (c *Client) call(ctx context.Context, call rest.Call) error {
	problem, err := c.send(ctx, call.Describe(), call.Request(), call.Answer())
	if err != nil {
		if p, ok := call.Answer().(*api.Promotion); ok && problem != nil && problem.Promotion != nil {
			*p = *problem.Promotion
		}
		return err
	}
	if what, err := call.Check(); err != nil {
		reflect.ValueOf(call.Answer()).Elem().SetZero()
		return c.strange(what, err)
	}
	return nil
}

// send sends a form of an operation and reads the answer. It also returns the problem, for data that it carries beside
// the error.
func (c *Client) send(ctx context.Context, row *rest.Row, form, into any) (*rest.Problem, error) {
	sent, err := rest.Send(row, form)
	if err != nil {
		return nil, err
	}
	page, paged := into.(interface {
		Receive(next string, partial bool) (items any)
	})
	if paged {
		into = page.Receive("", false)
	}
	header, problem, err := c.exchange(ctx, row.Method, sent, into)
	if err != nil || !paged {
		return problem, err
	}
	next := cursorOf(header)
	if next != "" && next == sent.Query.Get("cursor") {
		return nil, c.strange("next page", errors.New("it is the current page"))
	}
	page.Receive(next, header.Get(rest.Partial) != "")
	return nil, nil
}

// all reads a list to its end, or up to a limit.
func all[T any](ctx context.Context, c *Client, row *rest.Row, form any, limit int) ([]T, error) {
	sent, err := rest.Send(row, form)
	if err != nil {
		return nil, err
	}
	var items []T
	for {
		var some []T
		header, _, err := c.exchange(ctx, row.Method, sent, &some)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
		switch next := cursorOf(header); {
		case limit > 0 && len(items) >= limit:
			return items[:limit], nil
		case next == "":
			return items, nil
		case next == sent.Query.Get("cursor"):
			return nil, c.strange("next page", errors.New("it is the current page"))
		default:
			sent.Query.Set("cursor", next)
		}
	}
}

// exchange sends a request and reads the answer. A POST has an idempotency key, so that the service executes repeated
// requests once.
func (c *Client) exchange(ctx context.Context, method string, sent rest.Sent, into any) (http.Header, *rest.Problem, error) {
	var encoded []byte
	if sent.Body != nil {
		var err error
		if encoded, err = json.Marshal(sent.Body); err != nil {
			return nil, nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.at(sent.Path, sent.Query), bytes.NewReader(encoded))
	if err != nil {
		return nil, nil, err
	}
	if sent.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost {
		request.Header.Set(rest.IdempotencyKey, cryptorand.Text())
	}
	return c.do(request, into)
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
func (c *Client) do(request *http.Request, into any) (http.Header, *rest.Problem, error) {
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
		var problem rest.Problem
		err := c.refused(request, got, &problem)
		if problem.Code == "" {
			return nil, nil, err
		}
		return nil, &problem, err
	}
	if _, none := into.(*rest.None); none {
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
func (c *Client) refused(request *http.Request, got answer, problem *rest.Problem) error {
	if problem == nil {
		problem = new(rest.Problem)
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
		got, err = c.try(request)
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
		var problem rest.Problem
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

func (c *Client) try(request *http.Request) (answer, error) {
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
