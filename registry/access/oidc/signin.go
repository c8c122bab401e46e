package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Visit is a sign-in that has begun. Its browser keeps it until the issuer sends the person back.
type Visit struct {
	Name     string `json:"name"` // of the [Way]
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Return   string `json:"return"` // path of the page from which the person came
}

// SignedIn is what an issuer said of a person who signed in.
type SignedIn struct {
	Issuer  string
	Subject string
	Claims  []byte // JSON; only those that rules and names use
}

// Begin begins a sign-in, and returns it with the URL of the issuer's page. redirect is the URL to which the
// issuer sends the person back. Errors: CodeNotFound for an unknown name; CodeUnavailable if the issuer
// does not answer.
//
// Source: authorization code flow of https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth, with
// PKCE, https://www.rfc-editor.org/rfc/rfc7636.
func (i *Identifier) Begin(ctx context.Context, name, redirect string) (Visit, string, error) {
	t, err := i.way(name)
	if err != nil {
		return Visit{}, "", err
	}
	client, err := t.client(ctx, redirect)
	if err != nil {
		return Visit{}, "", err
	}
	v := Visit{Name: name, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return v, client.AuthCodeURL(v.State, oauth2.SetAuthURLParam("nonce", v.Nonce), oauth2.S256ChallengeOption(v.Verifier)), nil
}

// Finish ends a sign-in with the parameters with which the issuer sent the person back. Errors:
// CodeUnauthenticated if they are not the answer to this visit, or the person is not let in;
// CodeUnavailable if the issuer does not answer; CodeInternal if the secret of the client cannot be read.
func (i *Identifier) Finish(ctx context.Context, v Visit, redirect string, answer url.Values) (SignedIn, error) {
	t, err := i.way(v.Name)
	if err != nil {
		return SignedIn{}, err
	}
	if err := t.checkAnswer(v, answer); err != nil {
		return SignedIn{}, err
	}
	token, err := t.exchange(ctx, redirect, answer.Get("code"), v.Verifier)
	if err != nil {
		return SignedIn{}, err
	}
	c, err := t.verifyFor(ctx, t.SignIn.Client, token)
	if err != nil {
		return SignedIn{}, err
	}
	if nonce := c.texts("nonce"); v.Nonce == "" || len(nonce) != 1 || !equal(nonce[0], v.Nonce) {
		return SignedIn{}, registry.Errorf(registry.CodeUnauthenticated, "the ID token of %s is for another sign-in: sign in again", t.URL)
	}
	subject := c.texts("sub")
	if len(subject) != 1 || subject[0] == "" {
		return SignedIn{}, registry.Errorf(registry.CodeUnauthenticated, "the ID token of %s has no sub", t.URL)
	}
	if _, err := t.principal(c); err != nil {
		return SignedIn{}, err
	}
	claims, err := json.Marshal(t.used(c))
	if len(claims) > storage.MaxClaims {
		err = registry.Errorf(registry.CodeUnauthenticated,
			"the claims of %s have %d bytes: want at most %d; let the issuer send fewer groups", t.URL, len(claims), storage.MaxClaims)
	}
	return SignedIn{Issuer: t.URL, Subject: subject[0], Claims: claims}, err
}

// ByClaims returns the principal of claims that [Identifier.Finish] returned, by the rules of now. Errors:
// CodeUnauthenticated if no rule lets them in, or people no longer sign in at the issuer.
func (i *Identifier) ByClaims(issuer string, text []byte) (storage.Principal, error) {
	t, ok := i.issuers[issuer]
	if !ok || t.SignIn == nil {
		return storage.Principal{}, registry.Errorf(registry.CodeUnauthenticated,
			"people do not sign in at %.200q any more: sign in again", issuer)
	}
	var c claims
	if err := json.Unmarshal(text, &c); err != nil {
		return storage.Principal{}, registry.Errorf(registry.CodeInternal, "claims of a session: %w", err)
	}
	return t.principal(c)
}

func (i *Identifier) way(name string) (*trusted, error) {
	for _, t := range i.issuers {
		if t.SignIn != nil && t.SignIn.Name == name {
			return t, nil
		}
	}
	return nil, registry.Errorf(registry.CodeNotFound, "people cannot sign in at %.100q here (access.yaml)", name)
}

// checkAnswer checks that an answer belongs to a visit.
//
// Source: https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2 and, for iss, https://www.rfc-editor.org/rfc/rfc9207.
func (t *trusted) checkAnswer(v Visit, answer url.Values) error {
	refused := answer.Get("error")
	switch {
	case v.State == "" || !equal(answer.Get("state"), v.State):
		return registry.Errorf(registry.CodeUnauthenticated, "this is not the answer to a sign-in that began in this browser: sign in again")
	case answer.Has("iss") && answer.Get("iss") != t.URL:
		return registry.Errorf(registry.CodeUnauthenticated, "the answer is of %.200q: want one of %s", answer.Get("iss"), t.URL)
	case refused != "":
		return registry.Errorf(registry.CodeUnauthenticated, "%s did not sign you in: %.100q %.200q", t.URL, refused, answer.Get("error_description"))
	case answer.Get("code") == "":
		return registry.Errorf(registry.CodeUnauthenticated, "the answer of %s has no code: sign in again", t.URL)
	}
	return nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// exchange returns the ID token for a code.
func (t *trusted) exchange(ctx context.Context, redirect, code, verifier string) (string, error) {
	client, err := t.client(ctx, redirect)
	if err != nil {
		return "", err
	}
	if t.SignIn.SecretFile != "" {
		if client.ClientSecret, err = readSecret(t.SignIn.SecretFile); err != nil {
			return "", err
		}
	}
	here := *t.keys.client // the code and the secret of the client go to the issuer's endpoint and nowhere else
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	limited, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, &here), fetchTimeout)
	defer cancel()
	token, err := client.Exchange(limited, code, oauth2.VerifierOption(verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError:
		return "", registry.Errorf(registry.CodeUnauthenticated, "%s does not accept the code: %.100q: sign in again",
			t.URL, cmp.Or(refused.ErrorCode, refused.Response.Status))
	case err != nil:
		return "", registry.Errorf(registry.CodeUnavailable, "%s does not answer: try again later", t.URL)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return "", registry.Errorf(registry.CodeUnauthenticated, "%s sent no ID token: does it know the scope openid?", t.URL)
	}
	return raw, nil
}

// of returns the endpoints of an issuer, which were fetched at most [FetchInterval] ago. Errors: errNoAnswer.
func (e *endpoints) of(ctx context.Context, t *trusted) (document, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if age := t.now().Sub(e.since); !e.since.IsZero() && age >= 0 && age < FetchInterval {
		return e.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	d, err := fetchDocument(ctx, t.keys.client, t.URL)
	if err == nil {
		err = checkEndpoints(d)
	}
	if err == nil {
		e.last, e.since = d, t.now()
	}
	return d, err
}

// client is this service as a client of the issuer.
func (t *trusted) client(ctx context.Context, redirect string) (*oauth2.Config, error) {
	d, err := t.endpoints.of(ctx, t)
	if err != nil {
		t.keys.failed(ctx, err)
		return nil, registry.Errorf(registry.CodeUnavailable, "%s does not answer: try again later", t.URL)
	}
	return &oauth2.Config{
		ClientID: t.SignIn.Client, RedirectURL: redirect, Scopes: append([]string{"openid"}, t.SignIn.Scopes...),
		Endpoint: oauth2.Endpoint{AuthURL: d.Authorization, TokenURL: d.Token},
	}, nil
}

func checkEndpoints(d document) error {
	for _, endpoint := range []string{d.Authorization, d.Token} {
		if u, err := url.Parse(endpoint); err != nil || !registry.IsSecureURL(u) {
			return errors.New("its document has no authorization_endpoint or token_endpoint that is an https URL")
		}
	}
	return nil
}

// maxSecret is the maximum size in bytes of the secret of a client.
const maxSecret = 4 << 10

// readSecret reads the secret of a client, each time, so that a new one needs no restart.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", registry.Errorf(registry.CodeInternal, "secretFile: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	secret := strings.TrimSpace(string(text))
	if err == nil && (secret == "" || len(text) > maxSecret) {
		err = errors.New("want one line of up to 4 KiB")
	}
	if err != nil {
		return "", registry.Errorf(registry.CodeInternal, "secretFile %s: %w", path, err)
	}
	return secret, nil
}

// used returns the claims that rules and names use, so that no others are stored.
func (t *trusted) used(c claims) claims {
	names := slices.Clone(personClaims)
	for _, r := range t.Rules {
		for name := range r.Match {
			names = append(names, name)
		}
	}
	for _, name := range placeholder.FindAllString(t.Principal, -1) {
		names = append(names, strings.Trim(name, "{}"))
	}
	kept := claims{}
	for _, name := range names {
		if value, ok := c[name]; ok {
			kept[name] = value
		}
	}
	return kept
}
