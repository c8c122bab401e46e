package signer

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"mlpromote.dev/mlpromote/registry"
)

// MaxBundle is the maximum size of a bundle in bytes.
const MaxBundle = 4 << 20

// envelope is a parsed bundle. Its signature is not verified yet.
type envelope struct {
	bundle *bundle.Bundle
	signed [sha256.Size]byte // hash of the signed bytes
}

// certified reports whether a certificate names the signer.
func (e envelope) certified() bool {
	return e.bundle.GetVerificationMaterial().GetCertificate() != nil
}

// parseBundle reads a sigstore bundle v0.3 that holds an in-toto statement in a DSSE
// envelope with one signature, by a key or by the key of a certificate. Source: the Bundle message of sigstore
// protobuf-specs v0.5 and cosign's BUNDLE_SPEC.
func parseBundle(data []byte) (envelope, error) {
	if len(data) > MaxBundle {
		return envelope{}, fmt.Errorf("bundle: %d bytes, want at most %d", len(data), MaxBundle)
	}
	if err := registry.CheckJSON(data); err != nil {
		return envelope{}, fmt.Errorf("bundle: %s", plain(err))
	}
	parsed := new(bundle.Bundle)
	if err := parsed.UnmarshalJSON(data); err != nil {
		return envelope{}, fmt.Errorf("bundle: %s", plain(err))
	}
	if err := checkBundle(parsed); err != nil {
		return envelope{}, fmt.Errorf("bundle: %w", err)
	}
	return envelope{parsed, authenticated(parsed.GetDsseEnvelope().GetPayload())}, nil
}

func checkBundle(b *bundle.Bundle) error {
	if version, err := b.Version(); err != nil || version != "v0.3" {
		return fmt.Errorf("media type %.80q, want application/vnd.dev.sigstore.bundle.v0.3+json", b.GetMediaType())
	}
	material := b.GetVerificationMaterial()
	if material.GetPublicKey() == nil && material.GetCertificate() == nil {
		return errors.New("it has neither the hint of a key nor one certificate, as bundles v0.3 have")
	}
	dsse := b.GetDsseEnvelope()
	switch {
	case dsse == nil:
		return errors.New("it has a message signature, want a DSSE envelope with an in-toto statement")
	case dsse.GetPayloadType() != payloadType:
		return fmt.Errorf("payload type %.80q, want %q", dsse.GetPayloadType(), payloadType)
	case len(dsse.GetSignatures()) != 1:
		return fmt.Errorf("%d signatures, want exactly one, as sigstore bundles have", len(dsse.GetSignatures()))
	case dsse.GetSignatures()[0].GetKeyid() != "":
		// sigstore-go, and so cosign, accepts only an SSH fingerprint as keyid, and otherwise
		// reports a wrong signature. Known signers write no keyid, so this error explains the
		// reason.
		return errors.New("its signature has a keyid, want none: stock cosign would refuse the bundle")
	}
	return nil
}

// authenticated is the hash of what a signature over a payload is made of, the pre-authentication
// encoding of DSSE 1.0. Source: https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md.
func authenticated(payload []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	h.Write(payload)
	h.Sum(sum[:0])
	return sum
}

// statement returns the signed bytes.
func (e envelope) statement() []byte { return e.bundle.GetDsseEnvelope().GetPayload() }

// claimedKey returns the key that the bundle names as its signer. It is only for messages,
// because the hint is not signed.
func (e envelope) claimedKey() string {
	hint := e.bundle.GetVerificationMaterial().GetPublicKey().GetHint()
	if sum, err := base64.StdEncoding.DecodeString(hint); err == nil && len(sum) == 32 {
		return hex.EncodeToString(sum)
	}
	return fmt.Sprintf("%.80q", hint)
}

// signedBy reports whether key made the signature. It ignores the key hint of the bundle. It
// checks the signature first, which is cheap, because untrusted callers can attach large
// bundles and the library's verification decodes their payload again.
func (e envelope) signedBy(key publicKey) error {
	if !key.verifies(e.signed[:], e.bundle.GetDsseEnvelope().GetSignatures()[0].GetSig()) {
		return errors.New("the signature is not by this key")
	}
	verifier, err := signature.LoadECDSAVerifier(key.key, crypto.SHA256)
	if err != nil {
		return err
	}
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	content, err := e.bundle.SignatureContent()
	if err != nil {
		return err
	}
	signer, err := e.bundle.VerificationContent()
	if err != nil {
		return err
	}
	if signer.PublicKey() == nil {
		return errors.New("a certificate names the signer, want a key")
	}
	// Verifier.Verify would decode the statement once more, for a summary that nothing here reads.
	return verify.VerifySignature(content, signer, material)
}

// plain formats an error about untrusted bytes for one line: the parser varies its spaces
// deliberately and quotes keys of any length.
func plain(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	text = strings.TrimPrefix(text, "proto: ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	return text
}
