package signer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// statements are those of a build of six engines: a signature of the release and of each engine, and
// for each engine provenance of about 24 KiB, as the encoder's have.
func statements(b *testing.B) [][]byte {
	b.Helper()
	var out [][]byte
	add := func(predicateType string, predicate any) {
		subject := evidence.StatementSubject{Name: "text/encoder", Digest: evidence.NewDigestSet(digest.FromString("an engine"))}
		s, err := evidence.NewStatement(predicateType, predicate, subject)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, s)
	}
	files := make([]map[string]any, 200)
	for i := range files {
		files[i] = map[string]any{"uri": "file.so", "digest": map[string]string{"sha256": strings.Repeat("0", 64)}}
	}
	add(evidence.PredicateSign, struct{}{})
	for range 6 {
		add(evidence.PredicateSign, struct{}{})
		add(evidence.PredicateProvenance, map[string]any{"buildDefinition": map[string]any{"resolvedDependencies": files}})
	}
	return out
}

// BenchmarkSignRelease signs all statements of a build of six engines with a key that is open.
func BenchmarkSignRelease(b *testing.B) {
	s, all := newSigner(b, newKey(b)), statements(b)
	for b.Loop() {
		for _, statement := range all {
			if _, err := s.Sign(b.Context(), statement); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkBareSign makes as many signatures over the same bytes as a build of six engines, and nothing else.
func BenchmarkBareSign(b *testing.B) {
	key, all := bareKey(b), statements(b)
	for b.Loop() {
		for _, statement := range all {
			digest := sha256.Sum256(statement)
			if _, err := ecdsa.SignASN1(rand.Reader, key, digest[:]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkBareVerify verifies a bare signature over a statement with provenance.
func BenchmarkBareVerify(b *testing.B) {
	key, all := bareKey(b), statements(b)
	statement := all[len(all)-1]
	digest := sha256.Sum256(statement)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		digest = sha256.Sum256(statement)
		if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
			b.Fatal("the signature is not verified")
		}
	}
}

func bareKey(b *testing.B) *ecdsa.PrivateKey {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	return key
}

// BenchmarkVerify verifies a bundle with provenance, as resolve does when it has not seen it.
func BenchmarkVerify(b *testing.B) {
	s, all := newSigner(b, newKey(b)), statements(b)
	bundle, err := s.Sign(b.Context(), all[len(all)-1])
	if err != nil {
		b.Fatal(err)
	}
	path := b.TempDir() + "/k.pub"
	if err := os.WriteFile(path, s.PublicKeyPEM(), 0o600); err != nil {
		b.Fatal(err)
	}
	trust, err := signer.NewTrust([]trust.TrustEntry{{Key: path, Roles: evidence.Roles(), Resources: []string{"oci://local/"}}}, os.ReadFile)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(bundle)))
	for b.Loop() {
		if _, err := trust.Verify(b.Context(), bundle, "oci://local/prod/text/encoder"); err != nil {
			b.Fatal(err)
		}
	}
}
