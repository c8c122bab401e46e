package signer

import (
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// RoleKey is a public key of a trust list that has a role for a resource, in whatever state it is.
type RoleKey struct {
	ID        string            // hex SHA-256 of the SubjectPublicKeyInfo, as claims name their signer
	PEM       []byte            // the SubjectPublicKeyInfo
	Names     []string          // the entries with the key
	State     evidence.KeyState // the worst that any entry gives it
	RetiredAt time.Time         // if State is KeyRetired
	Window    evidence.Window   // when what it signs counts
}

// RoleKeys lists the keys that have the role for the resource, in the order of the list. A key with
// a missing file is left out, as its signatures count for nothing. Identities are not keys. Errors: those of
// [Trust.Verify] for files of keys.
func (t *Trust) RoleKeys(ctx context.Context, resource string, role evidence.Role) ([]RoleKey, error) {
	keys, err := t.trusted(ctx, resource)
	if err != nil {
		return nil, err
	}
	var out []RoleKey
	for _, k := range keys {
		if k.missing || !slices.Contains(k.roles, role) {
			continue
		}
		out = append(out, RoleKey{
			ID: k.id, PEM: k.encodePEM(), Names: slices.Clone(k.paths), State: k.state, RetiredAt: k.retiredAt, Window: k.window,
		})
	}
	return out, nil
}

// KeyIDs are the identifiers of the keys of the list, by the names of their entries. A key with a missing file has
// none, and neither has an identity. Errors: those of [Trust.Verify] for files of keys.
func (t *Trust) KeyIDs(ctx context.Context) (map[string]string, error) {
	keys, err := t.trusted(ctx, "")
	if err != nil {
		return nil, err
	}
	ids := make(map[string]string)
	for _, k := range keys {
		for _, name := range k.paths {
			if !k.missing {
				ids[name] = k.id
			}
		}
	}
	return ids, nil
}
