package trust

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// TrustEntry gives roles to a key or an identity, for resources with one of the prefixes. It
// has either a Key or an Identity.
type TrustEntry struct {
	Key       string          `json:"key"` // path of the PEM file of a public key
	Identity  *Identity       `json:"identity,omitempty"`
	Roles     []evidence.Role `json:"roles"`
	Resources []string        `json:"resources"` // prefixes of resource URIs: "oci://local/"
	// State says which signatures of the key still count. Empty means [evidence.KeyTrusted], as in files
	// without key states. A retired or revoked key keeps its entry and roles, so that its
	// statements against a release still count.
	State evidence.KeyState `json:"state,omitempty"`
	// RetiredAt is when the key was retired: set if State is KeyRetired, and zero otherwise.
	RetiredAt time.Time `json:"retiredAt,omitzero"`
	// RevokedAt is when the key was revoked: set if State is KeyRevoked, and zero otherwise. No
	// rule reads it, because the key may have been stolen long before.
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// Window is when what the key or identity signs counts; the zero Window: always. What it signs
	// against a release always counts.
	Window evidence.Window `json:"window,omitzero"`
	// NodeTypes are the node types from which reports of a verifier count; empty: all.
	NodeTypes []string `json:"nodeTypes,omitempty"`
}

// Root is a file with authorities that are trusted: either for identities and times, or for times
// alone.
type Root struct {
	// Sigstore is the path of a trusted_root.json: certificate authorities, logs, and authorities for
	// timestamps.
	Sigstore string `json:"sigstore,omitempty"`
	// Timestamps is the path of the certificate chain (PEM) of an authority for timestamps (RFC 3161).
	Timestamps string `json:"timestamps,omitempty"`
}

// Path is the path of the file.
func (r Root) Path() string { return cmp.Or(r.Sigstore, r.Timestamps) }

// Identity is a signer identified by an OIDC issuer. The signer's token must match all fields
// that are set, character by character.
type Identity struct {
	Issuer  string            `json:"issuer"`
	Subject string            `json:"subject,omitempty"`
	Claims  map[string]string `json:"claims,omitempty"`
}

// EffectiveState returns the state of the key. The default is [evidence.KeyTrusted].
func (e TrustEntry) EffectiveState() evidence.KeyState { return cmp.Or(e.State, evidence.KeyTrusted) }

// Grants returns the roles that take effect. It leaves out the role that this program cannot
// check: that of a verifier bound to node types. See [TrustEntry.GrantsAgainst].
func (e TrustEntry) Grants() []evidence.Role {
	if len(e.NodeTypes) == 0 {
		return e.Roles
	}
	return slices.DeleteFunc(slices.Clone(e.Roles), func(r evidence.Role) bool { return r == evidence.RoleVerifier })
}

// GrantsAgainst returns the roles that take effect for statements against a release: all of them. Which
// machine a report is from matters for a pass alone. A failure that was left out because of a
// restriction that is not checked would let the release through.
func (e TrustEntry) GrantsAgainst() []evidence.Role { return e.Roles }

// Covers reports whether one of the prefixes covers a resource, at a boundary of path
// components: oci://local/pro covers oci://local/pro/x but not oci://local/prod/x.
func (e TrustEntry) Covers(resource string) bool {
	return slices.ContainsFunc(e.Resources, func(prefix string) bool { return covers(prefix, resource) })
}

// Reaches reports whether the entry covers a resource or something below it.
func (e TrustEntry) Reaches(resource string) bool {
	return slices.ContainsFunc(e.Resources, func(prefix string) bool {
		return covers(prefix, resource) || covers(resource, strings.TrimSuffix(prefix, "/"))
	})
}

func covers(prefix, resource string) bool {
	if prefix == resource {
		return prefix != ""
	}
	return prefix != "" && strings.HasPrefix(resource, strings.TrimSuffix(prefix, "/")+"/")
}

// String names the entry by its key or identity.
func (e TrustEntry) String() string {
	if e.Identity == nil {
		return e.Key
	}
	name := "identity " + e.Identity.Issuer
	if e.Identity.Subject != "" {
		name += " " + e.Identity.Subject
	}
	for _, claim := range registry.SortedKeys(e.Identity.Claims) {
		name += " " + claim + "=" + e.Identity.Claims[claim]
	}
	return name
}
