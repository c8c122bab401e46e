// Package client implements api.Interface with the REST API of a service. It reads
// releases from the same service's OCI endpoint and verifies the digest of every byte.
package client

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Config configures a Client. URL and Content are required.
type Config struct {
	URL     string          // "http://127.0.0.1:5080"
	Content storage.Content // over the service's /v2/
	HTTP    *http.Client    // nil means http.DefaultClient
	// Backoff is the wait before the first retry; it doubles with each retry. 0 means 200 ms. Only
	// requests that are safe to repeat are retried.
	Backoff time.Duration
}

// Client implements api.Interface. It is safe for concurrent use.
type Client struct {
	api.Interface // calls of the rows of registry/api

	base    *url.URL
	content storage.Content
	http    *http.Client
	backoff time.Duration
}

var (
	_ storage.NodeReporter = (*Client)(nil)
	_ api.PromotionChecker = (*Client)(nil)
)

// New checks the configuration; it does not dial. Errors: CodeInvalid.
func New(c Config) (*Client, error) {
	base, err := ParseURL(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Content == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "client: content is required")
	}
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	straight := *c.HTTP
	straight.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := &Client{base: base, content: c.Content, http: &straight, backoff: cmp.Or(c.Backoff, 200*time.Millisecond)}
	client.Interface = rest.Wrap(nil, client.call)
	return client, nil
}

// ParseURL parses the URL of a service: scheme and host, and no path. Errors: CodeInvalid.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(s, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Path != "" || u.RawQuery != "" ||
		u.Fragment != "" ||
		u.User != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "registry URL %q: want http://HOST:PORT or https://HOST", registry.RedactURL(s))
	}
	return u, nil
}

// strange returns the error for a successful response that cannot be used.
func (c *Client) strange(what string, err error) error {
	return registry.Lastingf(registry.CodeUnavailable,
		"%s is not an mlpromote service, or has another version: the %s in its response: %s", c.base, what, err.Error())
}
