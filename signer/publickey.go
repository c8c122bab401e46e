package signer

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// KeyID returns the identifier of a public key in PEM, which is also the [Signer.KeyID] of its
// private key. Errors: CodeInvalid if it is not an ECDSA P-256 public key.
func KeyID(publicKeyPEM []byte) (string, error) {
	key, err := parsePublicKey(publicKeyPEM)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "public key: %w", err)
	}
	return key.id, nil
}

// publicKey is an ECDSA P-256 public key with its identity.
type publicKey struct {
	key *ecdsa.PublicKey
	der []byte // SubjectPublicKeyInfo
	id  string // hex SHA-256 of der
}

const (
	publicKeyType = "PUBLIC KEY"
	maxPublicKey  = 16 << 10 // bytes of a PEM file
)

func newPublicKey(public crypto.PublicKey) (publicKey, error) {
	key, ok := public.(*ecdsa.PublicKey)
	if !ok || key == nil {
		return publicKey{}, fmt.Errorf("want ECDSA P-256, found %T", public)
	}
	if key.Curve != elliptic.P256() {
		return publicKey{}, fmt.Errorf("want ECDSA P-256, found another curve")
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return publicKey{}, err
	}
	sum := sha256.Sum256(der)
	return publicKey{key: key, der: der, id: hex.EncodeToString(sum[:])}, nil
}

func parsePublicKey(data []byte) (publicKey, error) {
	if len(data) > maxPublicKey {
		return publicKey{}, fmt.Errorf("%d bytes, want a PEM file of at most %d", len(data), maxPublicKey)
	}
	block, rest := pem.Decode(data)
	if block == nil {
		return publicKey{}, fmt.Errorf("no PEM block, want %q", publicKeyType)
	}
	if block.Type != publicKeyType {
		return publicKey{}, fmt.Errorf("PEM block %.40q, want %q", block.Type, publicKeyType)
	}
	// A second key in the file would look trusted to a reader, but would not be used.
	if len(bytes.TrimSpace(rest)) > 0 {
		return publicKey{}, fmt.Errorf("there is more after the first PEM block, want one key in a file")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return publicKey{}, err
	}
	return newPublicKey(public)
}

func (k publicKey) encodePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: publicKeyType, Bytes: k.der})
}

// verifies reports whether an ASN.1 signature of a digest is by the private key.
func (k publicKey) verifies(digest, signature []byte) bool {
	return ecdsa.VerifyASN1(k.key, digest, signature)
}

// hint returns the key hint that cosign writes into a bundle.
func (k publicKey) hint() string {
	sum := sha256.Sum256(k.der)
	return base64.StdEncoding.EncodeToString(sum[:])
}
