package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// minLeft is how long a certificate is valid at least when it signs: a timestamp comes after it.
const minLeft = 2 * time.Minute

// Settings supplements the file of an identity.
type Settings struct {
	Timestamps Timestamps // of the folder; zero: none
	Getenv     func(name string) string
	// Roots and Now are those of [signer.Seal].
	Roots func() (roots []trust.Root, load func(path string) ([]byte, error), err error)
	Now   storage.Clock
}

// identitySigner signs with a key that lives as long as its certificate. It is a [signer.Signer].
type identitySigner struct {
	identity Identity
	settings Settings

	mu    sync.Mutex
	made  signer.Signer // with the certificate that is in use
	until time.Time     // from when it is not to be used
}

// Open returns the signer that a file describes. It asks for a certificate at the first signature, and for
// another before that expires. Errors: as [LoadIdentity]; CodeInvalid if nothing
// would show when a signature was made.
func Open(path string, settings Settings) (signer.Signer, error) {
	i, err := LoadIdentity(path)
	if err != nil {
		return nil, err
	}
	if err := i.CheckDated(settings.Timestamps); err != nil {
		return nil, err
	}
	return &identitySigner{identity: i, settings: settings}, nil
}

// Sign signs a statement with the certificate that is in use.
func (s *identitySigner) Sign(ctx context.Context, statement []byte) ([]byte, error) {
	with, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	return with.Sign(ctx, statement)
}

// SignNote refuses: a note has no place for a certificate.
func (*identitySigner) SignNote(context.Context, string, string) ([]byte, error) {
	return nil, registry.Lastingf(registry.CodeUnavailable, "an identity cannot sign notes such as checkpoints: want a key")
}

// KeyID is empty: each certificate has a key of its own.
func (*identitySigner) KeyID() string { return "" }

// PublicKeyPEM is nil, as KeyID.
func (*identitySigner) PublicKeyPEM() []byte { return nil }

// current returns the signer with a certificate that is valid long enough, and asks for one if there is
// none.
func (s *identitySigner) current(ctx context.Context) (signer.Signer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made != nil && s.settings.Now().Before(s.until) {
		return s.made, nil
	}
	made, until, err := s.renew(ctx)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "sign as the identity of %s: %w", s.identity.Token, err)
	}
	s.made, s.until = made, until
	return made, nil
}

// renew makes a key and gets a certificate for it.
func (s *identitySigner) renew(ctx context.Context) (signer.Signer, time.Time, error) {
	token, err := s.identity.token(ctx, s.settings.Getenv, s.settings.Now())
	if err != nil {
		return nil, time.Time{}, err
	}
	key, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	fulcio := sign.NewFulcio(&sign.FulcioOptions{
		BaseURL: strings.TrimSuffix(s.identity.Fulcio, "/"), Timeout: callTime, Transport: call{ctx, "certificate authority", token},
	})
	der, err := fulcio.GetCertificate(ctx, key, &sign.CertificateProviderOptions{IDToken: token})
	if err != nil {
		return nil, time.Time{}, unusable(err, token)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, time.Time{}, unusable(err, token)
	}
	made, err := signer.NewRemote(key.GetPublicKey(), func(ctx context.Context, data []byte) ([]byte, error) {
		signature, _, err := key.SignData(ctx, data)
		return signature, err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	made, err = signer.Sealed(made, signer.Seal{Roots: s.settings.Roots, Now: s.settings.Now, Options: func(ctx context.Context) sign.BundleOptions {
		o := s.settings.Timestamps.Options(ctx)
		o.CertificateProvider, o.TransparencyLogs = issued(der), s.identity.logs()
		return o
	}})
	return made, certificate.NotAfter.Add(-minLeft), err
}

// unusable is the error about an answer of the certificate authority, without the token.
func unusable(err error, token string) error {
	var request *url.Error // says what the transport says already
	if errors.As(err, &request) {
		err = request.Err
	}
	if registry.CodeOf(err) != registry.CodeInternal {
		return err
	}
	return registry.Lastingf(registry.CodeUnavailable, "certificate authority: %.300s", strings.ReplaceAll(err.Error(), token, "TOKEN"))
}

// issued is a certificate that is there already.
type issued []byte

// GetCertificate returns it.
func (i issued) GetCertificate(context.Context, sign.Keypair, *sign.CertificateProviderOptions) ([]byte, error) {
	return i, nil
}
