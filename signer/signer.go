package signer

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"mlpromote.dev/mlpromote/registry"
)

// Signer signs statements with one key. Implementations are safe for concurrent use.
type Signer interface {
	// Sign wraps the JSON of an in-toto Statement, byte for byte, in a sigstore bundle v0.3
	// with one DSSE signature. ctx limits the call if the key is remote. Errors: CodeInvalid
	// for bytes that [Trust.Verify] would not accept as a statement.
	Sign(ctx context.Context, statement []byte) (bundle []byte, err error)
	// SignNote signs a text under a name, which is the first line of the text, and returns a C2SP
	// signed-note. Errors: CodeInvalid for another text.
	SignNote(ctx context.Context, name, text string) (note []byte, err error)
	// KeyID identifies the key: the SHA-256 of its DER SubjectPublicKeyInfo, in hex.
	KeyID() string
	// PublicKeyPEM is the public key as a PEM block "PUBLIC KEY" (SubjectPublicKeyInfo, RFC
	// 5280 section 4.1), which cosign verify --key reads.
	PublicKeyPEM() []byte
}

// New returns a Signer for a private key that may be in memory or behind any [crypto.Signer].
// Errors: CodeInvalid if it is not an ECDSA P-256 key.
func New(key crypto.Signer) (Signer, error) {
	if key == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "signing key: it is missing")
	}
	return NewRemote(key.Public(), func(_ context.Context, data []byte) ([]byte, error) {
		digest := sha256.Sum256(data)
		return key.Sign(rand.Reader, digest[:], crypto.SHA256)
	})
}

// NewRemote returns a Signer for a key that only another program can use, such as a KMS. sign
// returns the ECDSA signature (ASN.1, RFC 3279 section 2.2.3) of the SHA-256 of data. What does not
// verify with the public key is not returned. Errors: CodeInvalid if it is not an ECDSA P-256 key.
func NewRemote(public crypto.PublicKey, sign func(ctx context.Context, data []byte) ([]byte, error)) (Signer, error) {
	key, err := newPublicKey(public)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "signing key: %w", err)
	}
	return &keySigner{public: key, sign: sign}, nil
}

// keySigner signs with a function.
type keySigner struct {
	public publicKey
	sign   func(ctx context.Context, data []byte) ([]byte, error)
	seal   *Seal // nil: bundles have a signature alone
}

func (s *keySigner) KeyID() string { return s.public.id }

func (s *keySigner) PublicKeyPEM() []byte { return s.public.encodePEM() }

func (s *keySigner) Sign(ctx context.Context, statement []byte) ([]byte, error) {
	if _, err := decodeStatement(statement); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "sign: %w", err)
	}
	content := &sign.DSSEData{Data: statement, PayloadType: payloadType}
	made, err := sign.Bundle(content, keypair{s}, s.seal.options(ctx))
	if err != nil {
		return nil, failed(s.public.id, s.seal.failed(err))
	}
	loose, err := protojson.Marshal(made)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "encode bundle: %w", err)
	}
	// protojson varies its white space deliberately; stored documents must be deterministic.
	data, err := registry.CanonicalJSON(json.RawMessage(loose))
	if err == nil && len(data) > MaxBundle {
		err = registry.Errorf(registry.CodeInvalid,
			"sign: the bundle would have %d bytes, want at most %d: make the statement smaller", len(data), MaxBundle)
	}
	if err == nil {
		err = s.seal.check(data)
	}
	if err != nil {
		return nil, failed(s.public.id, err)
	}
	return data, nil
}

// keypair adapts a keySigner to sigstore-go.
type keypair struct{ signer *keySigner }

var _ sign.Keypair = keypair{}

func (keypair) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

func (keypair) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

func (k keypair) GetHint() []byte { return []byte(k.signer.public.hint()) }

func (k keypair) GetKeyAlgorithm() string { return "ECDSA" }

func (k keypair) GetPublicKey() crypto.PublicKey { return k.signer.public.key }

func (k keypair) GetPublicKeyPem() (string, error) { return string(k.signer.public.encodePEM()), nil }

// SignData returns the signature over data and the digest that was signed.
func (k keypair) SignData(ctx context.Context, data []byte) ([]byte, []byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	digest := sha256.Sum256(data)
	signature, err := k.signer.sign(ctx, data)
	if err == nil && !k.signer.public.verifies(digest[:], signature) {
		err = registry.Errorf(registry.CodeUnavailable, "its signature does not verify with the public key")
	}
	return signature, digest[:], err
}

// failed names the key that did not sign. The code is that of err if it has one.
func failed(id string, err error) error {
	code := registry.CodeOf(err)
	return registry.Errorf(code, "sign with key %s: %w", id, err)
}
