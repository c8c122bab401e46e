package signer_test

import (
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer"
)

// statements are those of a build of six engines: a signature of the release and of each engine, and
// for each engine provenance of about 24 KiB, as the encoder's have.
func statements(b *testing.B) [][]byte {
	b.Helper()
	var out [][]byte
	add := func(predicateType string, predicate any) {
		subject := registry.StatementSubject{Name: "text/encoder", Digest: registry.NewDigestSet(digest.FromString("an engine"))}
		s, err := registry.NewStatement(predicateType, predicate, subject)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, s)
	}
	files := make([]map[string]any, 200)
	for i := range files {
		files[i] = map[string]any{"uri": "file.so", "digest": map[string]string{"sha256": strings.Repeat("0", 64)}}
	}
	add(registry.PredicateSign, struct{}{})
	for range 6 {
		add(registry.PredicateSign, struct{}{})
		add(registry.PredicateProvenance, map[string]any{"buildDefinition": map[string]any{"resolvedDependencies": files}})
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
	trust, err := signer.NewTrust([]registry.TrustEntry{{Key: path, Roles: registry.Roles(), Resources: []string{"oci://local/"}}}, os.ReadFile)
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
