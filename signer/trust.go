package signer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Trust knows which keys have which roles for which resources. The zero Trust trusts no key. It
// is safe for concurrent use.
type Trust struct {
	entries    []trust.TrustEntry // of keys
	identities []trust.TrustEntry
	roots      []trust.Root
	load       func(path string) ([]byte, error)

	mu   sync.Mutex
	keys map[string]publicKey // by path
	// believed are the authorities of the roots, once they were read.
	believed *authorities
}

// NewTrust returns a Trust for the entries of a trust list. It reads no key yet. load returns
// the PEM of an entry's key; it is called when a bundle is first verified, and again only while
// the key is missing (its error has [fs.ErrNotExist] in its chain), so that a key created later
// takes effect. An entry with a missing key gives no trust, and neither does an entry for an
// identity without roots: see [Trust.WithRoots]. Errors: CodeInvalid for an entry that cannot be
// valid.
func NewTrust(entries []trust.TrustEntry, load func(path string) ([]byte, error)) (*Trust, error) {
	for i, e := range entries {
		if err := checkEntry(e); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "trust: entry %d (key %q): %w", i+1, e.Key, err)
		}
	}
	if load == nil && len(entries) > 0 {
		return nil, registry.Errorf(registry.CodeInternal, "trust: the function that loads keys is missing")
	}
	t := &Trust{load: load}
	for _, e := range entries {
		if e.Identity != nil {
			t.identities = append(t.identities, e)
		} else {
			t.entries = append(t.entries, e)
		}
	}
	return t, nil
}

// WithRoots sets the files with the authorities that vouch for identities and timestamps, and returns
// t. They are read by load of [NewTrust], when a bundle is first verified. It must be called before
// t is used.
func (t *Trust) WithRoots(roots []trust.Root) *Trust {
	t.roots = roots
	return t
}

// authorities returns what the roots trust, and reads them if they were not read before.
func (t *Trust) authorities() (authorities, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.believed == nil {
		read, err := loadAuthorities(t.roots, t.load)
		if err != nil {
			return authorities{}, err
		}
		t.believed = &read
	}
	return *t.believed, nil
}

func checkEntry(e trust.TrustEntry) error {
	switch {
	case e.Key == "" && e.Identity == nil:
		return errors.New("key is missing, want the path of a public key in PEM")
	case len(e.Roles) == 0:
		return errors.New("roles is empty, want some of builder, verifier, approver, promoter, attester, publisher")
	case len(e.Resources) == 0:
		return errors.New("resources is empty, want prefixes such as oci://local/")
	}
	if err := checkState(e); err != nil {
		return err
	}
	for _, role := range e.Roles {
		if !slices.Contains(evidence.KeyRoles(), role) {
			return registry.Errorf(registry.CodeInvalid, "role %q, want one of %v", role, evidence.KeyRoles())
		}
	}
	for _, prefix := range e.Resources {
		if !strings.HasPrefix(prefix, "oci://") {
			return registry.Errorf(registry.CodeInvalid, "resource %q, want a prefix such as oci://local/", prefix)
		}
	}
	return nil
}

// checkState checks the state of an entry's key and its time.
func checkState(e trust.TrustEntry) error {
	switch {
	case e.State != "" && !slices.Contains(evidence.KeyStates(), e.State):
		return fmt.Errorf("state %q, want one of %v", e.State, evidence.KeyStates())
	case (e.State == evidence.KeyRetired) == e.RetiredAt.IsZero():
		return errors.New("a retired key, and no other, has the time at which it was retired")
	}
	return nil
}

// Verify verifies a bundle and returns a claim about the resource, such as
// oci://local/prod/vision/digits. It is a [storage.VerifyEvidence]. The claim has the signed
// statement, the identifier of the key, all roles of entries with this key for the resource,
// and the key's worst state in any entry. Errors: CodeTrust for an invalid
// bundle or statement, and if no key with a role for the resource signed it; CodeInvalid if a
// key's file does not contain a key; CodeUnavailable if it cannot be read, or if the file of a
// retired or revoked key is missing.
func (t *Trust) Verify(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
	parsed, err := parseBundle(bundle)
	if err != nil {
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "%w", err)
	}
	believed, err := t.authorities()
	if err != nil {
		return evidence.Claim{}, err
	}
	if parsed.certified() {
		return t.verifyIdentity(parsed, believed, resource)
	}
	keys, err := t.trusted(ctx, resource)
	if err != nil {
		return evidence.Claim{}, err
	}
	for _, k := range keys {
		if err := ctx.Err(); err != nil {
			return evidence.Claim{}, registry.Errorf(registry.CodeUnavailable, "verify bundle: %w", err)
		}
		if len(k.against) > 0 && k.signed(parsed) {
			return claim(parsed, k, believed.stamped(parsed))
		}
	}
	return evidence.Claim{}, refuse(parsed, resource, keys)
}

func claim(e envelope, k trustedKey, stamped time.Time) (evidence.Claim, error) {
	statement, err := decodeStatement(e.statement())
	if err != nil {
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "bundle signed by key %s: %w", k.id, err)
	}
	c := evidence.Claim{Statement: statement, Signer: k.id, Keys: k.paths, Roles: k.roles, Key: k.state,
		RetiredAt: k.retiredAt, Window: k.window, Stamped: stamped}
	if len(k.against) > len(k.roles) && c.Against() {
		c.Roles = k.against
	}
	if len(c.Roles) == 0 {
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust,
			"bundle: signed by %s, which is trusted for failing reports alone: the reports of its entry are bound to node types, which this version does not check",
			strings.Join(k.paths, " = "))
	}
	return c, nil
}

// trustedKey is a key of the trust list in relation to one resource.
type trustedKey struct {
	publicKey
	paths     []string
	roles     []evidence.Role // for the resource
	against   []evidence.Role // for the resource, of statements against a release; has all of roles; empty: the key is not trusted for it
	resources []string        // all prefixes that the key is trusted for
	missing   bool            // the file is missing; only paths, roles and resources are set
	state     evidence.KeyState
	retiredAt time.Time // if state is KeyRetired
	window    evidence.Window
}

// trusted collects the keys of the list, each once, with their roles for the resource in the
// order of [evidence.Roles].
func (t *Trust) trusted(ctx context.Context, resource string) ([]trustedKey, error) {
	var keys []trustedKey
	ids := make(map[string]string) // by path
	for _, e := range t.entries {
		public, err := t.key(ctx, e.Key)
		missing := errors.Is(err, fs.ErrNotExist)
		if err != nil && !missing {
			return nil, err
		}
		if missing && e.EffectiveState() != evidence.KeyTrusted {
			// Without the key, its statements against releases would no longer count.
			return nil, registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
				"trust: the key %s is %s, and its file is missing: %w", e.Key, e.State, err),
				"put the public key back: its statements against releases still count")
		}
		same := func(k trustedKey) bool { return !missing && k.id == public.id || slices.Contains(k.paths, e.Key) }
		i := slices.IndexFunc(keys, same)
		if i < 0 {
			keys = append(keys, trustedKey{publicKey: public, missing: missing})
			i = len(keys) - 1
		}
		keys[i].add(e, resource)
		ids[e.Key] = public.id
	}
	return keys, trust.CheckPublishersAlone(t.entries, func(e trust.TrustEntry) string { return ids[e.Key] })
}

// signed reports whether the key made the envelope's signature.
func (k trustedKey) signed(e envelope) bool {
	return !k.missing && e.signedBy(k.publicKey) == nil
}

// add adds the roles, resources and state of an entry with the key.
func (k *trustedKey) add(e trust.TrustEntry, resource string) {
	if name := e.String(); !slices.Contains(k.paths, name) {
		k.paths = append(k.paths, name)
	}
	k.resources = append(k.resources, e.Resources...)
	k.window = k.window.Intersect(e.Window)
	k.worsen(e) // for all resources: a stolen key is stolen everywhere
	if !e.Covers(resource) {
		return
	}
	k.roles, k.against = union(k.roles, e.Grants()), union(k.against, e.GrantsAgainst())
}

// union lists the roles that one of both lists has, in the order of [evidence.KeyRoles].
func union(some, more []evidence.Role) []evidence.Role {
	var roles []evidence.Role
	for _, role := range evidence.KeyRoles() {
		if slices.Contains(some, role) || slices.Contains(more, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// worsen sets the state of the key to that of an entry, unless its state is worse already.
func (k *trustedKey) worsen(e trust.TrustEntry) {
	state := e.EffectiveState()
	worse := slices.Index(evidence.KeyStates(), state) - slices.Index(evidence.KeyStates(), k.state)
	if worse > 0 {
		k.state, k.retiredAt = state, e.RetiredAt
	}
	if worse == 0 && e.RetiredAt.Before(k.retiredAt) {
		k.retiredAt = e.RetiredAt
	}
}

// key returns the key of a path, and reads it if it was not read before.
func (t *Trust) key(ctx context.Context, path string) (publicKey, error) {
	if err := ctx.Err(); err != nil {
		return publicKey{}, registry.Lastingf(registry.CodeUnavailable, "trust: key %s: %w", path, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if key, ok := t.keys[path]; ok {
		return key, nil
	}
	data, err := t.load(path)
	if err != nil {
		return publicKey{}, registry.Lastingf(registry.CodeUnavailable, "trust: read key %s: %w", path, err)
	}
	key, err := parsePublicKey(data)
	if err != nil {
		return publicKey{}, registry.Errorf(registry.CodeInvalid, "trust: key %s: %w", path, err)
	}
	if t.keys == nil {
		t.keys = make(map[string]publicKey)
	}
	t.keys[path] = key
	return key, nil
}
