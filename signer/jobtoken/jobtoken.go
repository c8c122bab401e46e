// Package jobtoken asks the CI system for tokens of the job that this process runs in (OpenID Connect). A token stays in the
// memory of the process: no variable, no argument and no file has it, so nothing that the process starts can print it.
package jobtoken

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	callTime  = 30 * time.Second       // of one request
	maxAnswer = 64 << 10               // bytes
	maxShown  = 200                    // bytes of an answer in a message
	attempts  = 3                      // while GitHub does not answer
	firstWait = 200 * time.Millisecond // before the second attempt; it doubles
)

// The variables by which a runner of GitHub tells a job where to ask. They are there if the job has the permission
// id-token: write. Source: https://docs.github.com/en/actions/reference/security/oidc, "Methods for requesting the OIDC token".
const (
	addressVariable = "ACTIONS_ID_TOKEN_REQUEST_URL"
	secretVariable  = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
)

// MayAsk reports whether this is a job of GitHub Actions that may ask for tokens.
func MayAsk(getenv func(string) string) bool {
	return getenv(addressVariable) != "" && getenv(secretVariable) != ""
}

// GitHub asks GitHub Actions for a token of the job, for one audience. No error has a part of a token. Errors: CodeUnavailable,
// lastingly where asking again does not help.
func GitHub(ctx context.Context, getenv func(string) string, audience string) (string, error) {
	u, err := url.Parse(getenv(addressVariable))
	if !MayAsk(getenv) || err != nil || u.Host == "" {
		return "", registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "this is no job of GitHub Actions that may ask for a token"),
			"give the job permissions: {id-token: write}; a pull request of a fork cannot have it")
	}
	if u.Scheme != "https" && u.Hostname() != "localhost" && !registry.IsSecureURL(u) {
		return "", registry.Lastingf(registry.CodeUnavailable, "%s is not https, and a token is sent there", addressVariable)
	}
	query := u.Query()
	query.Set("audience", audience)
	u.RawQuery = query.Encode()
	for wait, n := firstWait, 1; ; wait, n = 2*wait, n+1 {
		token, err := ask(ctx, u, getenv(secretVariable))
		if err == nil || n == attempts || registry.ExitCode(err) != registry.ExitAgain {
			return token, err
		}
		select {
		case <-ctx.Done():
			return "", registry.Errorf(registry.CodeUnavailable, "GitHub's tokens: %w", ctx.Err())
		case <-time.After(wait):
		}
	}
}

// ask asks once. A redirection is not followed, since the secret would go along.
func ask(ctx context.Context, u *url.URL, secret string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	where := "GitHub's tokens at " + u.Scheme + "://" + u.Host
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "%s cannot be used", addressVariable)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultTransport.RoundTrip(request)
	if registry.LastingTLS(err) {
		return "", registry.Lastingf(registry.CodeUnavailable, "%s: %w", where, err)
	}
	if err != nil {
		return "", registry.Errorf(registry.CodeUnavailable, "%s: no answer: %w", where, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return "", registry.Errorf(registry.CodeUnavailable, "%s: the answer ends early: %w", where, err)
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return "", registry.Errorf(registry.CodeUnavailable, "%s answers %s", where, answer.Status)
	case answer.StatusCode != http.StatusOK:
		return "", registry.Lastingf(registry.CodeUnavailable, "%s answers %s%s", where, answer.Status, excerpt(body, secret))
	}
	var read struct{ Value string }
	if len(body) > maxAnswer || json.Unmarshal(body, &read) != nil || read.Value == "" {
		return "", registry.Lastingf(registry.CodeUnavailable, "GitHub answered without a token")
	}
	return read.Value, nil
}

// excerpt is the beginning of an answer in one line, without the secret.
func excerpt(body []byte, secret string) string {
	text := strings.Join(strings.Fields(strings.ReplaceAll(strings.ToValidUTF8(string(body), ""), secret, "TOKEN")), " ")
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %.*q", maxShown, text)
}
