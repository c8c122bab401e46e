package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// FetchInterval is how long a response of an issuer is used, even a failed one. It limits
	// requests when many tokens have unknown keys.
	FetchInterval = 10 * time.Second

	fetchTimeout = 10 * time.Second // for the issuer's document and its keys together
	maxAnswer    = 1 << 20          // bytes
)

// errNoAnswer means that an issuer did not return its keys.
var errNoAnswer = errors.New("the issuer does not answer")

// fetchKeys fetches the keys of an issuer. Errors: errNoAnswer.
func fetchKeys(ctx context.Context, client *http.Client, issuer string) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	d, err := fetchDocument(ctx, client, issuer)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(d.Keys); err != nil || !registry.IsSecureURL(u) {
		return nil, fmt.Errorf("%w: its jwks_uri %.200q is not an https URL", errNoAnswer, d.Keys)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := fetch(ctx, client, d.Keys, &set); err != nil {
		return nil, err
	}
	var known []jose.JSONWebKey
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil { // RFC 7517, section 5: keys of unknown types are ignored
			known = append(known, key)
		}
	}
	return known, nil
}

// document is what an issuer says of itself.
//
// Source: https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata.
type document struct {
	Issuer        string `json:"issuer"`
	Keys          string `json:"jwks_uri"`
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
}

// fetchDocument fetches the document of an issuer. Errors: errNoAnswer.
func fetchDocument(ctx context.Context, client *http.Client, issuer string) (document, error) {
	var d document
	if err := fetch(ctx, client, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &d); err != nil {
		return document{}, err
	}
	if d.Issuer != issuer {
		return document{}, fmt.Errorf("%w: its document names the issuer %.200q", errNoAnswer, d.Issuer)
	}
	return d, nil
}

// fetch decodes a JSON document. Errors: errNoAnswer.
func fetch(ctx context.Context, client *http.Client, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s returns %s", errNoAnswer, url, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", errNoAnswer, url, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("%w: %s returns more than %d bytes", errNoAnswer, url, maxAnswer)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %s: %w", errNoAnswer, url, err)
	}
	return nil
}
