package signer_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
)

func TestSignedStatementVerifies(t *testing.T) {
	t.Parallel()
	s, statement := newSigner(t, newKey(t)), newStatement(t)
	bundle, err := s.Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	claim, err := trustOnly(t, s).Verify(t.Context(), bundle, resource)
	if err != nil {
		t.Fatal(err)
	}
	if claim.Signer != s.KeyID() {
		t.Errorf("signer %s, want %s", claim.Signer, s.KeyID())
	}
	if !claim.Statement.About(engine) || claim.Statement.PredicateType != evidence.PredicateParity {
		t.Errorf("statement %+v", claim.Statement)
	}
	if string(claim.Statement.Predicate) != `{"verdict":"pass"}` {
		t.Errorf("predicate %s", claim.Statement.Predicate)
	}
	if claim.Bundle != "" || claim.Subject != "" {
		t.Errorf("bundle %q and subject %q are not for the signer to say", claim.Bundle, claim.Subject)
	}
}

// The shape is what cosign v3 stores; readers of other languages rely on it.
func TestBundleShape(t *testing.T) {
	t.Parallel()
	s, statement := newSigner(t, newKey(t)), newStatement(t)
	data, err := s.Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	var bundle struct {
		MediaType            string
		VerificationMaterial struct{ PublicKey struct{ Hint []byte } }
		DSSEEnvelope         struct {
			Payload     []byte
			PayloadType string
			Signatures  []map[string][]byte
		}
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&bundle); err != nil {
		t.Fatal(err)
	}
	if bundle.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" {
		t.Errorf("media type %q", bundle.MediaType)
	}
	if got := hex.EncodeToString(bundle.VerificationMaterial.PublicKey.Hint); got != s.KeyID() {
		t.Errorf("hint %s, want %s", got, s.KeyID())
	}
	if e := bundle.DSSEEnvelope; !bytes.Equal(e.Payload, statement) ||
		e.PayloadType != "application/vnd.in-toto+json" || len(e.Signatures) != 1 || len(e.Signatures[0]) != 1 {
		t.Errorf("envelope %+v", e)
	}
	if canonical, err := registry.CanonicalJSON(json.RawMessage(data)); err != nil || !bytes.Equal(canonical, data) {
		t.Errorf("bundle is not canonical JSON: %s", data)
	}
}

func TestKeyID(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	s := newSigner(t, key)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	if want := hex.EncodeToString(sum[:]); s.KeyID() != want {
		t.Errorf("key id %s, want %s", s.KeyID(), want)
	}
	id, err := signer.KeyID(s.PublicKeyPEM())
	if err != nil || id != s.KeyID() {
		t.Errorf("KeyID of the PEM is %q, %v; want %s", id, err, s.KeyID())
	}
}

func TestNewRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"P-384": p384, "Ed25519": ed, "RSA": small, "nil": nil} {
		if s, err := signer.New(key); !registry.HasCode(err, registry.CodeInvalid) || s != nil {
			t.Errorf("%s: signer %v, error %v, want CodeInvalid", name, s, err)
		}
	}
}

// keyless says that it has a key of the right kind, and has none.
type keyless struct{ crypto.Signer }

func (keyless) Public() crypto.PublicKey { return (*ecdsa.PublicKey)(nil) }

func TestNewRefusesNoKey(t *testing.T) {
	t.Parallel()
	if s, err := signer.New(keyless{}); s != nil || err == nil {
		t.Errorf("got %v, error %v; want an error", s, err)
	}
}

func TestKeyIDRefuses(t *testing.T) {
	t.Parallel()
	pemKey := newSigner(t, newKey(t)).PublicKeyPEM()
	for name, data := range map[string][]byte{
		"nothing":    nil,
		"no PEM":     []byte("hello"),
		"other type": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}),
		"no key":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}),
		"two keys":   append(bytes.Clone(pemKey), pemKey...),
		"too large":  append(bytes.Clone(pemKey), strings.Repeat(" ", 1<<20)...),
	} {
		if id, err := signer.KeyID(data); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: id %q, error %v, want CodeInvalid", name, id, err)
		}
	}
}

func TestSignRefusesWhatVerifyWould(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	for name, statement := range badStatements() {
		if bundle, err := s.Sign(t.Context(), []byte(statement)); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: bundle %s, error %v, want CodeInvalid", name, bundle, err)
		}
	}
	huge := strings.Replace(string(newStatement(t)), "pass", strings.Repeat("p", signer.MaxBundle), 1)
	if _, err := s.Sign(t.Context(), []byte(huge)); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("huge statement: error %v, want CodeInvalid", err)
	}
}

func TestSignStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newSigner(t, newKey(t))
	if _, err := s.Sign(ctx, newStatement(t)); err == nil {
		t.Error("signed with a cancelled context")
	}
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trustOnly(t, s).Verify(ctx, bundle, resource); err == nil || registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("verify with a cancelled context: error %v, want one that is no verdict on trust", err)
	}
}
