package authority

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// maxToken is the maximum size of a token in bytes; those of CI systems have about 2000.
const maxToken = 16 << 10

// Where tokens come from, as Identity.Token names it.
const (
	fromGitHub   = "github"
	fromVariable = "variable:"
	fromFile     = "file:"
)

// checkSource checks the form of Identity.Token.
func checkSource(source string) error {
	name, variable := strings.CutPrefix(source, fromVariable)
	path, file := strings.CutPrefix(source, fromFile)
	switch {
	case source == fromGitHub, variable && name != "" && !strings.ContainsAny(name, "= \x00"), file && filepath.IsAbs(path) && !strings.ContainsRune(path, 0):
		return nil
	case file:
		return fmt.Errorf("token %.80q: want the absolute path of a file", source)
	}
	// What stands there may be a token, so no message has it.
	return errors.New("token: want github, variable:NAME or file:/PATH, and never the token itself")
}

// token fetches a token and checks that it is for the authority and for no other service, so that none
// that opens another door is sent there. No error has a part of it.
func (i Identity) token(ctx context.Context, getenv func(string) string, now time.Time) (string, error) {
	var text string
	var err error
	name, variable := strings.CutPrefix(i.Token, fromVariable)
	path, file := strings.CutPrefix(i.Token, fromFile)
	switch {
	case variable:
		if text = getenv(name); text == "" {
			err = registry.Lastingf(registry.CodeUnavailable, "the variable %s has no token", name)
		}
	case file:
		text, err = readToken(path)
	default:
		text, err = i.askGitHub(ctx, getenv)
	}
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	if err := i.checkToken(text, now); err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "token of the identity: %w", err)
	}
	return text, nil
}

func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "token of the identity: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "token of the identity: %w", err)
	}
	return string(data), nil
}

// askGitHub asks GitHub Actions for the token of the job. Source:
// https://docs.github.com/en/actions/reference/security/oidc, "Methods for requesting the OIDC token".
func (i Identity) askGitHub(ctx context.Context, getenv func(string) string) (string, error) {
	address, secret := getenv("ACTIONS_ID_TOKEN_REQUEST_URL"), getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
	u, err := url.Parse(address)
	if address == "" || secret == "" || err != nil || u.Host == "" {
		return "", registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "this is no job of GitHub Actions that may ask for a token"),
			"give the job permissions: {id-token: write}")
	}
	if u.Scheme != "https" && !loopback(u.Hostname()) {
		return "", registry.Lastingf(registry.CodeUnavailable, "ACTIONS_ID_TOKEN_REQUEST_URL is not https, and a token is sent there")
	}
	query := u.Query()
	query.Set("audience", i.audience())
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "ACTIONS_ID_TOKEN_REQUEST_URL cannot be used")
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	answer, err := call{ctx, "GitHub's tokens at", secret}.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var read struct{ Value string }
	if err := json.NewDecoder(answer.Body).Decode(&read); err != nil || read.Value == "" {
		return "", registry.Lastingf(registry.CodeUnavailable, "GitHub answered without a token")
	}
	return read.Value, nil
}

// checkToken reads a token (JWT, RFC 7519) without verifying it, which the authority does.
func (i Identity) checkToken(text string, now time.Time) error {
	parts := strings.Split(text, ".")
	if len(text) > maxToken || len(parts) != 3 {
		return errors.New("it is no JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Audience json.RawMessage `json:"aud"`
		Expiry   float64         `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return errors.New("it is no JWT")
	}
	var one string
	var several []string
	if json.Unmarshal(claims.Audience, &one) == nil {
		several = []string{one}
	} else if json.Unmarshal(claims.Audience, &several) != nil {
		return errors.New("it names no audience")
	}
	if !slices.Equal(several, []string{i.audience()}) {
		return fmt.Errorf("it is for %.200q, want one for %q alone: it is sent to %s", several, i.audience(), i.Fulcio)
	}
	if expired := time.Unix(int64(claims.Expiry), 0); !now.Before(expired) {
		return fmt.Errorf("it expired on %s", expired.UTC().Format(time.RFC3339))
	}
	return nil
}

// audience is whom tokens are for.
func (i Identity) audience() string { return cmp.Or(i.Audience, "sigstore") }
