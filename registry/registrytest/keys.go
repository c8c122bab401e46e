package registrytest

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Keys signs and verifies evidence with keys in memory: an honest, small filling of
// [registry.SignEvidence] and [registry.VerifyEvidence]. Make them with [NewKeys].
type Keys struct {
	trust []registry.TrustEntry
	keys  map[string]ed25519.PrivateKey // by name
}

// Stranger is the name of a key that every Keys has and no trust entry should name.
const Stranger = "stranger"

// RoleKeys is a trust list with one key for each role, named like the role, for all
// resources of the registry "local".
func RoleKeys() []registry.TrustEntry {
	var entries []registry.TrustEntry
	for _, role := range registry.Roles() {
		entries = append(entries, registry.TrustEntry{Key: string(role), Roles: []registry.Role{role}, Resources: []string{"oci://local/"}})
	}
	return entries
}

// NewKeys makes a key for every name in the trust list, and one for a [Stranger].
func NewKeys(trust []registry.TrustEntry) (*Keys, error) {
	k := &Keys{trust: trust, keys: make(map[string]ed25519.PrivateKey)}
	for _, e := range append(slices.Clone(trust), registry.TrustEntry{Key: Stranger}) {
		_, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		k.keys[e.Key] = private
	}
	return k, nil
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

// preAuth is what a DSSE signature is over. Source: the DSSE protocol, version 1.0.
func preAuth(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// Sign signs with the key that is named like the role. It is a [registry.SignEvidence].
func (k *Keys) Sign(ctx context.Context, role registry.Role, statement []byte) ([]byte, error) {
	return k.SignAs(ctx, string(role), statement)
}

// SignAs signs with a named key. Errors: CodeUnavailable when there is none.
func (k *Keys) SignAs(ctx context.Context, name string, statement []byte) ([]byte, error) {
	private, ok := k.keys[name]
	if !ok {
		return nil, registry.Errorf(registry.CodeUnavailable, "sign: there is no key %s", name)
	}
	var b signedBundle
	b.MediaType, b.Material.PublicKey.Hint = bundleMediaType, name
	b.Envelope.Payload, b.Envelope.PayloadType = statement, inTotoType
	b.Envelope.Signatures = []dsseSignature{{ed25519.Sign(private, preAuth(inTotoType, statement))}}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return data, ctx.Err()
}

// Verify gives a claim for what a trusted key signed. It is a [registry.VerifyEvidence].
func (k *Keys) Verify(ctx context.Context, bundle []byte, resource string) (registry.Claim, error) {
	if err := ctx.Err(); err != nil {
		return registry.Claim{}, err
	}
	var b signedBundle
	if err := json.Unmarshal(bundle, &b); err != nil || b.MediaType != bundleMediaType || len(b.Envelope.Signatures) != 1 || b.Envelope.PayloadType != inTotoType {
		return registry.Claim{}, registry.Errorf(registry.CodeTrust, "the bundle is none")
	}
	var c registry.Claim
	for _, e := range k.trust {
		public := k.keys[e.Key].Public().(ed25519.PublicKey)
		covers := func(prefix string) bool { return strings.HasPrefix(resource, prefix) }
		if !slices.ContainsFunc(e.Resources, covers) || !ed25519.Verify(public, preAuth(inTotoType, b.Envelope.Payload), b.Envelope.Signatures[0].Sig) {
			continue
		}
		c.Signer = hex.EncodeToString(public)
		c.Roles = append(c.Roles, e.Roles...)
	}
	if c.Signer == "" {
		return registry.Claim{}, registry.Errorf(registry.CodeTrust, "no key that is trusted for %s signed the bundle", resource)
	}
	if err := json.Unmarshal(b.Envelope.Payload, &c.Statement); err != nil {
		return registry.Claim{}, registry.Errorf(registry.CodeTrust, "the payload of the bundle is no statement")
	}
	return c, nil
}
