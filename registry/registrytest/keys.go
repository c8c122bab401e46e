package registrytest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Keys signs and verifies evidence with keys in memory: an honest, small filling of
// [storage.SignEvidence] and [storage.VerifyEvidence]. The keys are symmetric, which
// is all that tests need and costs next to nothing. Make them with [NewKeys].
type Keys struct {
	trust []trust.TrustEntry
	keys  map[string][]byte // by name
}

// Stranger is the name of a key that every Keys has and no trust entry should name.
const Stranger = "stranger"

// RoleKeys is a trust list with one key for each role, named like the role, for all
// resources of the registry "local".
func RoleKeys() []trust.TrustEntry {
	var entries []trust.TrustEntry
	for _, role := range evidence.Roles() {
		entries = append(entries, trust.TrustEntry{Key: string(role), Roles: []evidence.Role{role}, Resources: []string{"oci://local/"}})
	}
	return entries
}

// NewKeys makes a key for every name in the trust list, and one for a [Stranger].
func NewKeys(trustEntries []trust.TrustEntry) *Keys {
	k := &Keys{trust: trustEntries, keys: make(map[string][]byte)}
	for _, e := range append(slices.Clone(trustEntries), trust.TrustEntry{Key: Stranger}) {
		k.keys[e.Key] = []byte(rand.Text())
	}
	return k
}

// authenticate is the signature of a payload. What it is over is that of DSSE, version 1.0.
func authenticate(key, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "DSSEv1 %d %s %d %s", len(inTotoType), inTotoType, len(payload), payload)
	return mac.Sum(nil)
}

// keyID identifies a key without giving it away.
func keyID(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// signedBundle is a sigstore bundle v0.3, as far as this package needs one.
type signedBundle struct {
	MediaType string `json:"mediaType"`
	Material  struct {
		PublicKey struct {
			Hint string `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	Envelope struct {
		Payload     []byte          `json:"payload"`
		PayloadType string          `json:"payloadType"`
		Signatures  []dsseSignature `json:"signatures"`
	} `json:"dsseEnvelope"`
}

type dsseSignature struct {
	Sig []byte `json:"sig"`
}

const (
	bundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	inTotoType      = "application/vnd.in-toto+json"
)

// Sign signs with the key that is named like the role. It is a [storage.SignEvidence].
func (k *Keys) Sign(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
	return k.SignAs(ctx, string(role), statement)
}

// SignAs signs with a named key. Errors: CodeUnavailable when there is none.
func (k *Keys) SignAs(ctx context.Context, name string, statement []byte) ([]byte, error) {
	key, ok := k.keys[name]
	if !ok {
		return nil, registry.Errorf(registry.CodeUnavailable, "sign: there is no key %s", name)
	}
	var b signedBundle
	b.MediaType, b.Material.PublicKey.Hint = bundleMediaType, name
	b.Envelope.Payload, b.Envelope.PayloadType = statement, inTotoType
	b.Envelope.Signatures = []dsseSignature{{authenticate(key, statement)}}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return data, ctx.Err()
}

// Retrust replaces the trust list. Do not call it at the same time as other methods.
func (k *Keys) Retrust(trust []trust.TrustEntry) { k.trust = trust }

// KeyID is the identifier of a named key, as claims name their signer.
func (k *Keys) KeyID(name string) string { return keyID(k.keys[name]) }

// Verify returns a claim for a statement that a trusted key signed. It is a [storage.VerifyEvidence].
func (k *Keys) Verify(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
	if err := ctx.Err(); err != nil {
		return evidence.Claim{}, err
	}
	var b signedBundle
	if err := json.Unmarshal(bundle, &b); err != nil || b.MediaType != bundleMediaType ||
		len(b.Envelope.Signatures) != 1 || b.Envelope.PayloadType != inTotoType {
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "the bundle is none")
	}
	var c evidence.Claim
	for _, e := range k.trust {
		key := k.keys[e.Key]
		covers := func(prefix string) bool { return strings.HasPrefix(resource, prefix) }
		if !slices.ContainsFunc(e.Resources, covers) || !hmac.Equal(authenticate(key, b.Envelope.Payload), b.Envelope.Signatures[0].Sig) {
			continue
		}
		c.Signer = keyID(key)
		c.Keys = append(c.Keys, e.Key)
		c.Roles = append(c.Roles, e.Roles...)
		c.Key, c.RetiredAt = e.EffectiveState(), e.RetiredAt
		c.Window = c.Window.Intersect(e.Window)
	}
	if c.Signer == "" {
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "no key that is trusted for %s signed the bundle", resource)
	}
	if err := registry.DecodeSigned(b.Envelope.Payload, &c.Statement); err != nil {
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "the payload of the bundle is no statement")
	}
	return c, nil
}
