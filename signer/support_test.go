package signer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

const resource = "oci://local/prod/vision/digits"

var engine = digest.FromString("an engine")

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSigner(t testing.TB, key *ecdsa.PrivateKey) signer.Signer {
	t.Helper()
	s, err := signer.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newStatement(t testing.TB) []byte {
	t.Helper()
	statement, err := evidence.NewStatement(evidence.PredicateParity, map[string]string{"verdict": "pass"},
		evidence.StatementSubject{Name: "linux-amd64-v3/int8", Digest: evidence.NewDigestSet(engine)})
	if err != nil {
		t.Fatal(err)
	}
	return statement
}

// files is a folder of public keys in memory.
type files map[string][]byte

func (f files) load(path string) ([]byte, error) {
	data, ok := f[path]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	return data, nil
}

func newTrust(t testing.TB, keys files, entries ...trust.TrustEntry) *signer.Trust {
	t.Helper()
	trust, err := signer.NewTrust(entries, keys.load)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// trustOnly trusts one key for everything in the registry.
func trustOnly(t testing.TB, s signer.Signer) *signer.Trust {
	t.Helper()
	return newTrust(t, files{"a.pub": s.PublicKeyPEM()}, trust.TrustEntry{Key: "a.pub", Roles: evidence.Roles(), Resources: []string{"oci://local/"}})
}

// document is a sigstore bundle, written out by hand so that the tests do not use the
// encoder that they test.
type document map[string]any

// forge signs any payload of any type.
func forge(t testing.TB, key *ecdsa.PrivateKey, kind string, payload []byte) document {
	t.Helper()
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
	sum := sha256.Sum256([]byte(pae))
	sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return document{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "any"}},
		"dsseEnvelope": map[string]any{
			"payload": payload, "payloadType": kind,
			"signatures": []any{map[string]any{"sig": sig}},
		},
	}
}

func (d document) bytes(t testing.TB) []byte {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wantUntrusted checks that a bundle was refused as untrusted, in words.
func wantUntrusted(t testing.TB, claim evidence.Claim, err error, words ...string) {
	t.Helper()
	if !registry.HasCode(err, registry.CodeTrust) {
		t.Fatalf("error %v, want one with code %s; claim %+v", err, registry.CodeTrust, claim)
	}
	if claim.Signer != "" || claim.Roles != nil || claim.Statement.Type != "" {
		t.Errorf("an error came with a claim: %+v", claim)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}
