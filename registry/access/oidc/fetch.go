package oidc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// FetchInterval is how long an answer of an issuer stands, good or bad: whoever sends
	// tokens of keys that are not known shall not make the service ask more often.
	FetchInterval = 10 * time.Second

	fetchTimeout = 10 * time.Second
	maxAnswer    = 1 << 20 // bytes
)

// errNoAnswer means that an issuer could not be asked.
var errNoAnswer = errors.New("the issuer does not answer")

// fetcher asks one issuer, and keeps its answers for a while. It gives good answers alone:
// to all else go-oidc would pay no more attention than to a bad signature.
type fetcher struct {
	base http.RoundTripper
	now  registry.Clock

	mu   sync.Mutex
	kept map[string]answer // by URL; an issuer has two
}

type answer struct {
	at     time.Time
	body   []byte
	header http.Header
	err    error
}

// RoundTrip asks, or gives an answer that was kept.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	url := r.URL.String()
	kept, ok := f.kept[url]
	if age := f.now().Sub(kept.at); !ok || age < 0 || age >= FetchInterval {
		kept = f.ask(r)
		f.kept[url] = kept
	}
	if kept.err != nil {
		return nil, kept.err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: kept.header.Clone(),
		Body: io.NopCloser(bytes.NewReader(kept.body)), ContentLength: int64(len(kept.body)), Request: r,
	}, nil
}

func (f *fetcher) ask(r *http.Request) answer {
	a := answer{at: f.now()}
	response, err := f.base.RoundTrip(r)
	if err != nil {
		a.err = fmt.Errorf("%w: %w", errNoAnswer, err)
		return a
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		a.err = fmt.Errorf("%w: %w", errNoAnswer, err)
	case response.StatusCode != http.StatusOK:
		a.err = fmt.Errorf("%w: %s gives %s", errNoAnswer, r.URL, response.Status)
	case len(body) > maxAnswer:
		a.err = fmt.Errorf("%w: %s gives more than %d bytes", errNoAnswer, r.URL, maxAnswer)
	}
	a.body, a.header = body, response.Header
	return a
}
