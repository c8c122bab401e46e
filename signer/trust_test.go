package signer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

func TestWrongKey(t *testing.T) {
	t.Parallel()
	ours, theirs := newSigner(t, newKey(t)), newSigner(t, newKey(t))
	bundle, err := theirs.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	claim, err := trustOnly(t, ours).Verify(t.Context(), bundle, resource)
	wantUntrusted(t, claim, err, theirs.KeyID(), ours.KeyID(), "a.pub", resource)
}

// A bundle that names a trusted key gains nothing by it.
func TestHintIsNotTrusted(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	ours := newSigner(t, key)
	honest, err := ours.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	hint := strings.SplitN(strings.SplitN(string(honest), `"hint":"`, 2)[1], `"`, 2)[0]
	forged := forge(t, newKey(t), inToto, newStatement(t))
	forged["verificationMaterial"] = map[string]any{"publicKey": map[string]any{"hint": hint}}
	claim, err := trustOnly(t, ours).Verify(t.Context(), forged.bytes(t), resource)
	wantUntrusted(t, claim, err)

	for _, hint := range []string{"", "\x1b[31mred", strings.Repeat("long", 1000)} {
		d := forge(t, key, inToto, newStatement(t))
		d["verificationMaterial"] = map[string]any{"publicKey": map[string]any{"hint": hint}}
		if _, err := trustOnly(t, ours).Verify(t.Context(), d.bytes(t), resource); err != nil {
			t.Errorf("hint %.20q: %v", hint, err)
		}
		claim, err := trustOnly(t, newSigner(t, newKey(t))).Verify(t.Context(), d.bytes(t), resource)
		wantUntrusted(t, claim, err)
		if len(err.Error()) > 600 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("error is not fit to print: %q", err)
		}
	}
}

func TestResourcePrefixes(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		prefix, resource string
		covered          bool
	}{
		{"oci://local/", "oci://local/prod/x", true},
		{"oci://local", "oci://local/prod/x", true},
		{"oci://local/prod/", "oci://local/prod/x", true},
		{"oci://local/prod/x", "oci://local/prod/x", true},
		{"oci://local/prod", "oci://local/prod/x/y", true},
		{"oci://local/pro", "oci://local/prod/x", false},
		{"oci://local/prod/", "oci://local/prod", false},
		{"oci://local/prod/x", "oci://local/prod/xy", false},
		{"oci://local/prod/x", "oci://local/prod", false},
		{"oci://local/", "oci://localhost/prod/x", false},
		{"oci://local", "oci://localhost/prod/x", false},
		{"oci://local/staging/", "oci://local/prod/x", false},
		{"oci://local/", "", false},
	} {
		trust := newTrust(t, files{"a.pub": s.PublicKeyPEM()},
			trust.TrustEntry{Key: "a.pub", Roles: []evidence.Role{evidence.RoleBuilder}, Resources: []string{c.prefix}})
		claim, err := trust.Verify(t.Context(), bundle, c.resource)
		if c.covered {
			if err != nil {
				t.Errorf("%s should cover %s: %v", c.prefix, c.resource, err)
			}
			continue
		}
		wantUntrusted(t, claim, err, s.KeyID(), c.prefix, c.resource)
	}
}

func TestRolesAreTheUnion(t *testing.T) {
	t.Parallel()
	s, other := newSigner(t, newKey(t)), newSigner(t, newKey(t))
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(key, prefix string, roles ...evidence.Role) trust.TrustEntry {
		return trust.TrustEntry{Key: key, Roles: roles, Resources: []string{"oci://elsewhere/", prefix}}
	}
	keys := files{"a.pub": s.PublicKeyPEM(), "copy.pub": s.PublicKeyPEM(), "other.pub": other.PublicKeyPEM()}
	trust := newTrust(t, keys,
		entry("other.pub", "oci://local/", evidence.RoleApprover),
		entry("a.pub", "oci://local/", evidence.RolePromoter, evidence.RolePromoter),
		entry("missing.pub", "oci://local/", evidence.RoleApprover),
		entry("a.pub", "oci://local/staging/", evidence.RoleVerifier),
		entry("copy.pub", "oci://local/prod", evidence.RoleBuilder, evidence.RolePromoter))
	for place, want := range map[string][]evidence.Role{
		resource:                {evidence.RoleBuilder, evidence.RolePromoter},
		"oci://local/staging/m": {evidence.RoleVerifier, evidence.RolePromoter},
		"oci://local/dev/m":     {evidence.RolePromoter},
	} {
		claim, err := trust.Verify(t.Context(), bundle, place)
		if err != nil || !slices.Equal(claim.Roles, want) {
			t.Errorf("%s: roles %v, error %v; want %v", place, claim.Roles, err, want)
		}
	}
}

func TestKeyThatComesLater(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	keys := files{}
	trust := newTrust(t, keys, trust.TrustEntry{Key: "local.pub", Roles: evidence.Roles(), Resources: []string{"oci://local/"}})
	claim, err := trust.Verify(t.Context(), bundle, resource)
	wantUntrusted(t, claim, err, "local.pub", "no such file")
	keys["local.pub"] = s.PublicKeyPEM()
	if _, err := trust.Verify(t.Context(), bundle, resource); err != nil {
		t.Error(err)
	}
	delete(keys, "local.pub")
	if _, err := trust.Verify(t.Context(), bundle, resource); err != nil {
		t.Errorf("a key that was read is read again: %v", err)
	}
}

// What is wrong with the list is not blamed on the bundle.
func TestBrokenTrustList(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	entry := trust.TrustEntry{Key: "a.pub", Roles: evidence.Roles(), Resources: []string{"oci://local/"}}
	if _, err := newTrust(t, files{"a.pub": []byte("junk")}, entry).Verify(t.Context(), bundle, resource); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("junk in a.pub: %v, want CodeInvalid", err)
	}
	denied, err := signer.NewTrust([]trust.TrustEntry{entry}, func(string) ([]byte, error) { return nil, errors.New("denied") })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := denied.Verify(t.Context(), bundle, resource); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("unreadable a.pub: %v, want CodeUnavailable", err)
	}
}

func TestNewTrustRefuses(t *testing.T) {
	t.Parallel()
	prefixes, roles := []string{"oci://local/"}, evidence.Roles()
	for name, e := range map[string]trust.TrustEntry{
		"no key":              {Roles: roles, Resources: prefixes},
		"no roles":            {Key: "k", Resources: prefixes},
		"no resources":        {Key: "k", Roles: roles},
		"empty prefix":        {Key: "k", Roles: roles, Resources: []string{""}},
		"no scheme":           {Key: "k", Roles: roles, Resources: []string{"local/prod"}},
		"unknown state":       {Key: "k", Roles: roles, Resources: prefixes, State: "suspended"},
		"retired at no time":  {Key: "k", Roles: roles, Resources: prefixes, State: evidence.KeyRetired},
		"trusted with a time": {Key: "k", Roles: roles, Resources: prefixes, RetiredAt: time.Unix(1, 0)},
		"unknown role":        {Key: "k", Roles: []evidence.Role{"owner"}, Resources: prefixes},
	} {
		if _, err := signer.NewTrust([]trust.TrustEntry{e}, files{}.load); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
	if _, err := signer.NewTrust([]trust.TrustEntry{{Key: "k", Roles: roles, Resources: prefixes}}, nil); err == nil {
		t.Error("a trust list without a way to read keys was taken")
	}
}

func TestZeroTrustRefuses(t *testing.T) {
	t.Parallel()
	bundle, err := newSigner(t, newKey(t)).Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	claim, err := new(signer.Trust).Verify(t.Context(), bundle, resource)
	wantUntrusted(t, claim, err, "no key is trusted")
}

// A claim says in which state the key is that signed it. Of several entries with one key
// the worst counts.
func TestKeyStates(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	early, late := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	entry := func(key string, state evidence.KeyState, at time.Time, resources ...string) trust.TrustEntry {
		return trust.TrustEntry{Key: key, Roles: evidence.Roles(), Resources: append(resources, "oci://else/"), State: state, RetiredAt: at}
	}
	const here = "oci://local/"
	keys := files{"a.pub": s.PublicKeyPEM(), "copy.pub": s.PublicKeyPEM()}
	for _, c := range []struct {
		name    string
		entries []trust.TrustEntry
		want    evidence.KeyState
		at      time.Time
	}{
		{"no state", []trust.TrustEntry{entry("a.pub", "", time.Time{}, here)}, evidence.KeyTrusted, time.Time{}},
		{"trusted", []trust.TrustEntry{entry("a.pub", evidence.KeyTrusted, time.Time{}, here)}, evidence.KeyTrusted, time.Time{}},
		{"retired", []trust.TrustEntry{entry("a.pub", evidence.KeyRetired, early, here)}, evidence.KeyRetired, early},
		{"revoked", []trust.TrustEntry{entry("a.pub", evidence.KeyRevoked, time.Time{}, here)}, evidence.KeyRevoked, time.Time{}},
		{"retired, and trusted by another path", []trust.TrustEntry{entry("a.pub", evidence.KeyRetired, early, here), entry("copy.pub", "", time.Time{}, here)}, evidence.KeyRetired, early},
		{"trusted, and revoked by another path",
			[]trust.TrustEntry{entry("a.pub", "", time.Time{}, here), entry("copy.pub", evidence.KeyRevoked, time.Time{}, here)},
			evidence.KeyRevoked, time.Time{}},
		{"retired twice", []trust.TrustEntry{entry("a.pub", evidence.KeyRetired, late, here), entry("a.pub", evidence.KeyRetired, early, here)}, evidence.KeyRetired, early},
		{"retired, then revoked",
			[]trust.TrustEntry{entry("a.pub", evidence.KeyRetired, late, here), entry("a.pub", evidence.KeyRevoked, time.Time{}, here)},
			evidence.KeyRevoked, time.Time{}},
		{"revoked for other resources, by another path",
			[]trust.TrustEntry{entry("a.pub", "", time.Time{}, here), entry("copy.pub", evidence.KeyRevoked, time.Time{})},
			evidence.KeyRevoked, time.Time{}},
	} {
		claim, err := newTrust(t, keys, c.entries...).Verify(t.Context(), bundle, resource)
		if err != nil || claim.Key != c.want || !claim.RetiredAt.Equal(c.at) || len(claim.Roles) != len(evidence.Roles()) {
			t.Errorf("%s: key %q retired %v with roles %v, error %v; want %q retired %v with all roles",
				c.name, claim.Key, claim.RetiredAt, claim.Roles, err, c.want, c.at)
		}
	}
	for _, state := range []evidence.KeyState{evidence.KeyRetired, evidence.KeyRevoked} {
		gone := entry("gone.pub", state, time.Time{}, here)
		if state == evidence.KeyRetired {
			gone.RetiredAt = early
		}
		_, err := newTrust(t, keys, entry("a.pub", "", time.Time{}, here), gone).Verify(t.Context(), bundle, resource)
		if !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "gone.pub is "+string(state)) {
			t.Errorf("a %s key without its file: error %v, want CodeUnavailable that names it", state, err)
		}
	}
}

// A verifier whose entry is bound to node types is heard where a report speaks against an engine, and
// nowhere else: nothing checks yet from which machine a pass is.
func TestVerifierBoundToNodeTypes(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	bound := trust.TrustEntry{Key: "a.pub", Roles: []evidence.Role{evidence.RoleVerifier},
		Resources: []string{"oci://local/"}, NodeTypes: []string{"g6.xlarge"}}
	approving := bound
	approving.Roles = []evidence.Role{evidence.RoleVerifier, evidence.RoleApprover}
	elsewhere := bound
	elsewhere.Resources = []string{"oci://local/staging/"}
	verifier, both := bound.Roles, []evidence.Role{evidence.RoleVerifier, evidence.RoleApprover}
	for name, c := range map[string]struct {
		entry     trust.TrustEntry
		predicate any
		kind      string
		want      []evidence.Role // none: the bundle is refused
	}{
		"a pass":                         {bound, map[string]string{"verdict": "pass"}, evidence.PredicateParity, nil},
		"a failure":                      {bound, map[string]string{"verdict": "fail"}, evidence.PredicateParity, verifier},
		"a failure of performance":       {bound, map[string]string{"verdict": "fail"}, evidence.PredicatePerformance, verifier},
		"figures without a limit":        {bound, map[string]string{"verdict": "recorded"}, evidence.PredicatePerformance, nil},
		"not enough to decide":           {bound, map[string]string{"verdict": "not-enough"}, evidence.PredicateParity, verifier},
		"no verdict":                     {bound, map[string]string{}, evidence.PredicateParity, verifier},
		"what cannot be read":            {bound, []int{1}, evidence.PredicateParity, verifier},
		"a pass by an approver":          {approving, map[string]string{"verdict": "pass"}, evidence.PredicateParity, both[1:]},
		"a failure by an approver":       {approving, map[string]string{"verdict": "fail"}, evidence.PredicateParity, both},
		"a failure, for other resources": {elsewhere, map[string]string{"verdict": "fail"}, evidence.PredicateParity, nil},
		"a signature":                    {bound, struct{}{}, evidence.PredicateSign, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			statement, err := evidence.NewStatement(c.kind, c.predicate, evidence.StatementSubject{Digest: evidence.NewDigestSet(engine)})
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := s.Sign(t.Context(), statement)
			if err != nil {
				t.Fatal(err)
			}
			claim, err := newTrust(t, files{"a.pub": s.PublicKeyPEM()}, c.entry).Verify(t.Context(), bundle, resource)
			if len(c.want) == 0 {
				wantUntrusted(t, claim, err, "a.pub")
				return
			}
			if err != nil || !slices.Equal(claim.Roles, c.want) {
				t.Errorf("roles %v, error %v; want %v", claim.Roles, err, c.want)
			}
		})
	}
}
