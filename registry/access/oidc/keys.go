package oidc

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// KeysMaxAge is how long the keys of an issuer are trusted without fetching them again.
	KeysMaxAge = time.Hour
	// refreshAge is the age from which keys are fetched again in the background, while tokens
	// are still checked with the present ones.
	refreshAge = KeysMaxAge * 3 / 4
)

// errUnknownKey means that no key of the issuer verifies a signature.
var errUnknownKey = errors.New("failed to verify the signature with the keys of the issuer")

// keys are those of one issuer. Callers that have to wait for the issuer share one request. A
// caller whose token verifies with known keys never waits.
type keys struct {
	issuer string
	client *http.Client
	now    storage.Clock
	failed func(context.Context, error) // is called when a request fails

	mu      sync.Mutex
	known   []jose.JSONWebKey
	since   time.Time // when known was fetched; zero: never
	asked   time.Time // when the last request ended, also if it failed; zero: never
	err     error     // of the last request
	request *request  // in progress; nil: none
}

// request is a request to an issuer. Several callers may wait for it.
type request struct{ done chan struct{} }

// VerifySignature returns the payload of a token that a key of the issuer signed. Errors:
// errUnknownKey; errNoAnswer; those of ctx.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, signatureAlgorithms())
	if err != nil {
		return nil, errUnknownKey
	}
	if payload, ok := verify(signed, k.usable(ctx)); ok {
		return payload, nil
	}
	if err := k.renewed(ctx); err != nil {
		return nil, err
	}
	if payload, ok := verify(signed, k.usable(ctx)); ok {
		return payload, nil
	}
	return nil, errUnknownKey
}

// verify tries the keys with the key ID of the token, or all if it has none.
func verify(signed *jose.JSONWebSignature, known []jose.JSONWebKey) ([]byte, bool) {
	for _, key := range known {
		if id := signed.Signatures[0].Header.KeyID; id != "" && id != key.KeyID {
			continue
		}
		if payload, err := signed.Verify(&key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// usable returns the keys that are young enough to be trusted. It starts to renew them in the
// background some time before they are too old.
func (k *keys) usable(ctx context.Context) []jose.JSONWebKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.now().Sub(k.since)
	if k.since.IsZero() || age < 0 || age >= KeysMaxAge {
		return nil
	}
	if age >= refreshAge && !k.answered() {
		k.ask(ctx)
	}
	return slices.Clone(k.known)
}

// renewed waits until the keys were fetched within [FetchInterval]. Errors: errNoAnswer; those
// of ctx.
func (k *keys) renewed(ctx context.Context) error {
	k.mu.Lock()
	if k.request == nil && k.answered() {
		defer k.mu.Unlock()
		return k.err
	}
	waiting := k.ask(ctx)
	k.mu.Unlock()
	select {
	case <-waiting.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// answered reports whether the last answer is still used. The caller holds mu.
func (k *keys) answered() bool {
	age := k.now().Sub(k.asked)
	return !k.asked.IsZero() && age >= 0 && age < FetchInterval
}

// ask joins the request in progress, or starts one. The request goes on if its caller leaves:
// others may wait for it. The caller holds mu.
func (k *keys) ask(ctx context.Context) *request {
	if k.request != nil {
		return k.request
	}
	r := &request{make(chan struct{})}
	k.request = r
	go func(ctx context.Context) {
		known, err := fetchKeys(ctx, k.client, k.issuer)
		if err != nil {
			k.failed(ctx, err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.asked, k.err = k.now(), err; err == nil { // when the answer came: a slow issuer is not asked again at once
			k.known, k.since = known, k.asked
		}
		k.request = nil
		close(r.done)
	}(context.WithoutCancel(ctx))
	return r
}

// algorithms are the accepted signature algorithms: only asymmetric ones, for which the issuer
// alone has the private key.
func algorithms() []string {
	return []string{
		oidc.RS256,
		oidc.RS384,
		oidc.RS512,
		oidc.PS256,
		oidc.PS384,
		oidc.PS512,
		oidc.ES256,
		oidc.ES384,
		oidc.ES512,
		oidc.EdDSA,
	}
}

// signatureAlgorithms are the same algorithms in the type of go-jose.
func signatureAlgorithms() []jose.SignatureAlgorithm {
	var all []jose.SignatureAlgorithm
	for _, a := range algorithms() {
		all = append(all, jose.SignatureAlgorithm(a))
	}
	return all
}
