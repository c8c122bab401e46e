package authority

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer/jobtoken"
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
		text, err = jobtoken.GitHub(ctx, getenv, i.audience())
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
