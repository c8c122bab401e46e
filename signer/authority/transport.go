package authority

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	callTime  = 30 * time.Second // of one request
	maxAnswer = 1 << 20          // bytes
	maxShown  = 200              // bytes of an answer in a message
)

// call is the transport of one call. sigstore-go passes no context on, and says of a busy
// authority that a body is closed; so both are done here.
type call struct {
	ctx    context.Context //nolint:containedctx // of one call: the library's clients take none
	what   string          // such as "timestamp authority"
	secret string          // is in no message
}

// RoundTrip asks, and reads the whole answer. Errors: CodeUnavailable, lasting if asking again does not
// help.
func (c call) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(c.ctx, callTime)
	defer cancel()
	where := request.URL.Scheme + "://" + request.URL.Host
	answer, err := http.DefaultTransport.RoundTrip(request.WithContext(ctx))
	if registry.LastingTLS(err) {
		return nil, registry.Lastingf(registry.CodeUnavailable, "%s %s: %w", c.what, where, err)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "%s %s does not answer: %w", c.what, where, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, registry.Errorf(registry.CodeUnavailable, "%s %s: its answer ends early: %w", c.what, where, err)
	case len(body) > maxAnswer:
		return nil, registry.Lastingf(registry.CodeUnavailable, "%s %s: its answer has more than %d bytes", c.what, where, maxAnswer)
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return nil, registry.Errorf(registry.CodeUnavailable, "%s %s answers %s%s", c.what, where, answer.Status, c.shown(body))
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return nil, registry.Lastingf(registry.CodeUnavailable, "%s %s redirects elsewhere: name the address that answers", c.what, where)
	case answer.StatusCode >= 400:
		return nil, registry.Lastingf(registry.CodeUnavailable, "%s %s answers %s%s", c.what, where, answer.Status, c.shown(body))
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// shown is the beginning of an answer on one line, without the secret.
func (c call) shown(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), 4<<10)]), "")
	if c.secret != "" {
		if text = strings.ReplaceAll(text, c.secret, "TOKEN"); strings.Contains(text, c.secret[:min(len(c.secret), 20)]) {
			return "" // a part of it, at the end of what was read
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %.*q", maxShown, text)
}

// checkURL checks the address of an authority. Tokens travel encrypted, or on this machine.
func checkURL(address string, token bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "" || len(address) > 1<<10:
		return fmt.Errorf("%.80q: want https://HOST[/PATH]", address)
	case u.User != nil || u.RawQuery != "":
		return fmt.Errorf("the address at %s has a password or a query: want https://HOST[/PATH]", u.Host)
	case token && u.Scheme == "http" && !loopback(u.Hostname()):
		return fmt.Errorf("%.80q: want https, because a token is sent there", address)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
