package export

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
)

// The statement lists files in the order of code points, and its subject is the hash of their raw digests.
func TestModelStatement(t *testing.T) {
	t.Parallel()
	ab, dir := digest.FromString("a.b"), digest.FromString("a/b")
	data, err := modelStatement("digits", []artifact.File{{Path: "a/b", Digest: dir}, {Path: "a.b", Digest: ab}})
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Subject   []evidence.StatementSubject
		Predicate modelSignature
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	first, _ := hex.DecodeString(ab.Encoded())
	second, _ := hex.DecodeString(dir.Encoded())
	root := sha256.Sum256(append(first, second...))
	if len(s.Subject) != 1 || s.Subject[0].Name != "digits" || s.Subject[0].Digest["sha256"] != hex.EncodeToString(root[:]) {
		t.Errorf("subject %v, want digits with the hash of both digests, %x", s.Subject, root)
	}
	if r := s.Predicate.Resources; len(r) != 2 || r[0].Name != "a.b" || r[1].Name != "a/b" || r[1].Digest != dir.Encoded() {
		t.Errorf("resources %v, want a.b before a/b", r)
	}
	for name, files := range map[string][]artifact.File{
		"no files": nil, "another hash": {{Path: "a", Digest: digest.SHA512.FromString("a")}}, "no digest": {{Path: "a", Digest: "sha256:zz"}},
	} {
		if _, err := modelStatement("digits", files); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// The hint is that of the reference implementation; what is signed stays as it was.
func TestModelSignatureHint(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with, err := signer.New(key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := ModelSignature(t.Context(), t.TempDir(), pull.Proof{Files: []artifact.File{{Path: "model.onnx", Digest: digest.FromString("x")}}}, with)
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		VerificationMaterial struct{ PublicKey struct{ Hint string } }
		DSSEEnvelope         json.RawMessage `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(made, &b); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(with.PublicKeyPEM())
	if want := hex.EncodeToString(sum[:]); b.VerificationMaterial.PublicKey.Hint != want {
		t.Errorf("hint %q, want %q, the hash of the PEM text", b.VerificationMaterial.PublicKey.Hint, want)
	}
	again, err := hinted(made, []byte("another key"))
	if err != nil || !bytes.Contains(again, b.DSSEEnvelope) {
		t.Errorf("another hint changed what is signed (error %v)", err)
	}
	if _, err := hinted([]byte(`{"verificationMaterial":{"certificate":{}}}`), nil); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a certificate: error %v, want CodeInvalid", err)
	}
}
