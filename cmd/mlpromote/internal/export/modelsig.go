package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
)

// PredicateModelSignature is the predicate type of OpenSSF Model Signing. Source:
// https://github.com/ossf/model-signing-spec, spec/v1.0.md.
const PredicateModelSignature = "https://model_signing/signature/v1.0"

// modelSignature is its predicate. The specification allows no other fields.
type modelSignature struct {
	Serialization serialization   `json:"serialization"`
	Resources     []modelResource `json:"resources"`
}

// serialization says how the files became resources.
type serialization struct {
	Method        string   `json:"method"`
	HashType      string   `json:"hash_type"`
	AllowSymlinks bool     `json:"allow_symlinks"`
	IgnorePaths   []string `json:"ignore_paths"`
}

// modelResource is a file.
type modelResource struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Digest    string `json:"digest"`
}

// modelStatement is the statement about the files of an engine: its subject has the SHA-256 of the digests of all files, in the
// order of their names. What pull itself keeps in the folder is not among them. Errors: CodeInvalid without files.
func modelStatement(name string, files []artifact.File) ([]byte, error) {
	if len(files) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "model signature: the engine has no files")
	}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b artifact.File) int { return strings.Compare(a.Path, b.Path) })
	predicate := modelSignature{Serialization: serialization{Method: "files", HashType: "sha256", IgnorePaths: []string{pull.Dir}}}
	all := sha256.New()
	for _, f := range files {
		raw, err := hex.DecodeString(f.Digest.Encoded())
		if err != nil || f.Digest.Algorithm() != digest.SHA256 {
			return nil, registry.Errorf(registry.CodeInvalid, "model signature: %s has the digest %.80q, want one by sha256", f.Path, f.Digest)
		}
		_, _ = all.Write(raw) // never fails
		predicate.Resources = append(predicate.Resources, modelResource{Name: f.Path, Algorithm: "sha256", Digest: f.Digest.Encoded()})
	}
	subject := evidence.StatementSubject{Name: name, Digest: evidence.DigestSet{"sha256": hex.EncodeToString(all.Sum(nil))}}
	return evidence.NewStatement(PredicateModelSignature, predicate, subject)
}

// ModelSignature signs the files of a pulled folder that was checked. Errors: those of the signer.
func ModelSignature(ctx context.Context, dir string, proof pull.Proof, with signer.Signer) ([]byte, error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", dir, err)
	}
	statement, err := modelStatement(filepath.Base(whole), proof.Files)
	if err != nil {
		return nil, err
	}
	bundle, err := with.Sign(ctx, statement)
	if err != nil {
		return nil, err
	}
	return hinted(bundle, with.PublicKeyPEM())
}

// hinted replaces the hint of a bundle, which is not signed, by that of the reference implementation: the SHA-256 of the PEM text of the
// key, in hex. It refuses other hints. Source: model_signing/_signing/sign_ec_key.py of model-signing 1.1.1.
func hinted(bundle, pem []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	var material map[string]json.RawMessage
	err := json.Unmarshal(bundle, &fields)
	if err == nil {
		err = json.Unmarshal(fields["verificationMaterial"], &material)
	}
	if err != nil || material["publicKey"] == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "model signature: the bundle names no public key (error %v): sign with a key", err)
	}
	sum := sha256.Sum256(pem)
	if material["publicKey"], err = json.Marshal(map[string]string{"hint": hex.EncodeToString(sum[:])}); err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "model signature: %w", err)
	}
	if fields["verificationMaterial"], err = json.Marshal(material); err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "model signature: %w", err)
	}
	return registry.CanonicalJSON(fields)
}
