package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/trust"
)

const publisher = "publisher-key"

// trustBundle is version n of what a registry publishes, a week after version 0, for 30 days.
func trustBundle(n int64) trust.TrustBundle {
	entry := func(name string, role evidence.Role) trust.BundledTrust {
		return trust.BundledTrust{Entry: trust.TrustEntry{Key: name, Roles: []evidence.Role{role}, Resources: []string{"oci://local/"}},
			PEM: "PEM of " + name}
	}
	issued := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 7*int(n))
	b := trust.TrustBundle{
		Registry: "local", Version: n, IssuedOn: issued, ExpiresOn: issued.AddDate(0, 0, 30),
		Environments: digest.FromString("environments"),
		Trust:        []trust.BundledTrust{entry("builder.pub", evidence.RoleBuilder), entry("publisher.pub", evidence.RolePublisher)},
		Restrictions: []trust.BundledRestrictions{{Environment: "staging"}, bundledList("prod", n)},
		Checkpoint:   trust.KeptCheckpoint{Size: 10 * n, Note: "note"},
	}
	if n > 1 {
		b.Previous = trustDigest(n - 1)
	}
	return b
}

func trustDigest(n int64) registry.Digest { return digest.FromString("bundle " + string(rune('0'+n))) }

func bundledList(environment string, counter int64) trust.BundledRestrictions {
	bundle := []byte(environment + " list " + string(rune('0'+counter)))
	return trust.BundledRestrictions{Environment: environment, Counter: counter, Digest: digest.FromBytes(bundle), Bundle: bundle}
}

func accepted(n int64) trust.AcceptedTrust {
	return trust.AcceptedTrust{TrustBundle: trustBundle(n), Digest: trustDigest(n)}
}

// published is the claim of the publisher with a bundle.
func published(b trust.TrustBundle) evidence.Claim {
	return claim(trust.PredicateTrustBundle, b.Environments, publisher, evidence.RolePublisher, b)
}

func wantCode(t *testing.T, err error, code registry.Code, says string) {
	t.Helper()
	if code == "" && err != nil || code != "" && (!registry.HasCode(err, code) || !strings.Contains(err.Error(), says)) {
		t.Errorf("error %v (%s), want %q that says %q", err, registry.CodeOf(err), code, says)
	}
}

// A statement of a bundle is read back as it was, and has the registry as its subject.
func TestTrustBundleRead(t *testing.T) {
	t.Parallel()
	want := trustBundle(2)
	want.Roots = []trust.BundledRoot{{Root: trust.Root{Timestamps: "tsa.pem"}, Content: "CERTIFICATE"}}
	text, err := trust.NewTrustBundle(want)
	if err != nil {
		t.Fatal(err)
	}
	c := published(want)
	if err := json.Unmarshal(text, &c.Statement); err != nil {
		t.Fatal(err)
	}
	got, err := trust.BundleOf(c, "local")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
	if c.Statement.Subject[0].Name != "oci://local/" || !c.Statement.About(want.Environments) {
		t.Errorf("it is about %v, want oci://local/ by its environments", c.Statement.Subject)
	}
}

// A bundle of the wrong form is neither signed nor read.
func TestTrustBundleForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*trust.TrustBundle)
		says  string
	}{
		"no version":          {func(b *trust.TrustBundle) { b.Version = 0 }, "version: want 1"},
		"too large a version": {func(b *trust.TrustBundle) { b.Version = 1 << 53 }, "version: want 1"},
		"nothing before":      {func(b *trust.TrustBundle) { b.Previous = "" }, "the bundle before"},
		"a bundle before 1":   {func(b *trust.TrustBundle) { b.Version = 1 }, "the bundle before"},
		"no digest before":    {func(b *trust.TrustBundle) { b.Previous = "sha256:1" }, "of the bundle before"},
		"no environments":     {func(b *trust.TrustBundle) { b.Environments = "" }, "of the environments"},
		"no time":             {func(b *trust.TrustBundle) { b.IssuedOn = time.Time{} }, "want a later time"},
		"no end":              {func(b *trust.TrustBundle) { b.ExpiresOn = b.IssuedOn }, "want a later time"},
		"too long":            {func(b *trust.TrustBundle) { b.ExpiresOn = b.IssuedOn.Add(trust.MaxTrustLife + 1) }, "want at most"},
		"another name":        {func(b *trust.TrustBundle) { b.Registry = "LOCAL" }, "registry"},
		"no trust":            {func(b *trust.TrustBundle) { b.Trust = nil }, "0 trust entries"},
		"too much trust":      {func(b *trust.TrustBundle) { b.Trust = slices.Repeat(b.Trust, 501) }, "1002 trust entries"},
		"a key without PEM":   {func(b *trust.TrustBundle) { b.Trust[0].PEM = "" }, "with its PEM"},
		"no key":              {func(b *trust.TrustBundle) { b.Trust[0] = trust.BundledTrust{} }, "or an identity"},
		"no roles":            {func(b *trust.TrustBundle) { b.Trust[0].Entry.Roles = nil }, "want roles"},
		"no resources":        {func(b *trust.TrustBundle) { b.Trust[0].Entry.Resources = nil }, "want roles and resources"},
		"two keys of a name":  {func(b *trust.TrustBundle) { b.Trust[1].Entry.Key = "builder.pub" }, "is two keys"},
		"a publisher who builds": {func(b *trust.TrustBundle) {
			b.Trust[1].Entry.Roles = append(b.Trust[1].Entry.Roles, evidence.RoleBuilder)
		}, "without another role"},
		"in two entries": {func(b *trust.TrustBundle) { b.Trust[1].PEM = b.Trust[0].PEM }, "without another role"},
		"in two layouts": {func(b *trust.TrustBundle) {
			block := "-----BEGIN PUBLIC KEY-----\n%sQUFB\n-----END PUBLIC KEY-----\n"
			b.Trust[0].PEM, b.Trust[1].PEM = fmt.Sprintf(block, ""), fmt.Sprintf(block, "\n")
		}, "without another role"},
		"root without content":  {func(b *trust.TrustBundle) { b.Roots = []trust.BundledRoot{{Root: trust.Root{Sigstore: "x"}}} }, "root 1"},
		"another list":          {func(b *trust.TrustBundle) { b.Restrictions[1].Bundle = []byte("other") }, "the digest of that"},
		"a list without number": {func(b *trust.TrustBundle) { b.Restrictions[1].Counter = 0 }, "the digest of that"},
		"an environment twice":  {func(b *trust.TrustBundle) { b.Restrictions[0].Environment = "prod" }, "in it twice"},
		"a hostile environment": {func(b *trust.TrustBundle) { b.Restrictions[0].Environment = "a\nb" }, "lower-case name"},
		"events without note":   {func(b *trust.TrustBundle) { b.Checkpoint.Note = "" }, "checkpoint"},
		"fewer than no events":  {func(b *trust.TrustBundle) { b.Checkpoint.Size = -1 }, "checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := trustBundle(2)
			c.spoil(&b)
			_, err := trust.NewTrustBundle(b)
			wantCode(t, err, registry.CodeInvalid, c.says)
			_, err = trust.BundleOf(published(b), "local")
			wantCode(t, err, registry.CodeTrust, c.says)
		})
	}
}

// A claim is a bundle only if a key signed it that publishes for the registry and does nothing else.
func TestTrustBundleSigner(t *testing.T) {
	t.Parallel()
	b := trustBundle(2)
	for name, c := range map[string]struct {
		spoil func(*evidence.Claim)
		says  string
	}{
		"the promoter":         {func(c *evidence.Claim) { c.Roles = []evidence.Role{evidence.RolePromoter} }, "not trusted as publisher"},
		"nothing at all":       {func(c *evidence.Claim) { c.Roles = nil }, "not trusted as publisher"},
		"one key for two":      {func(c *evidence.Claim) { c.Roles = append(c.Roles, evidence.RolePromoter) }, "a key of its own"},
		"retired":              {func(c *evidence.Claim) { c.Key, c.RetiredAt = evidence.KeyRetired, b.ExpiresOn }, "is retired"},
		"revoked":              {func(c *evidence.Claim) { c.Key = evidence.KeyRevoked }, "is revoked"},
		"of no state":          {func(c *evidence.Claim) { c.Key = "" }, "publishes nothing new"},
		"before its window":    {func(c *evidence.Claim) { c.Window.From = b.IssuedOn.Add(1) }, "counts from"},
		"outliving its window": {func(c *evidence.Claim) { c.Window.Until = b.ExpiresOn.Add(-1) }, "counts until"},
		"another predicate":    {func(c *evidence.Claim) { c.Statement.PredicateType = evidence.PredicateRestrictions }, "predicate type"},
		"another subject":      {func(c *evidence.Claim) { c.Statement.Subject = nil }, "it is of the registry"},
		"keys in other cases": {func(c *evidence.Claim) {
			c.Statement.Predicate = []byte(strings.Replace(string(c.Statement.Predicate), `"version"`, `"Version"`, 1))
		}, "trust bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signed := published(b)
			c.spoil(&signed)
			_, err := trust.BundleOf(signed, "local")
			wantCode(t, err, registry.CodeTrust, c.says)
		})
	}
	_, err := trust.BundleOf(published(b), "other")
	wantCode(t, err, registry.CodeTrust, "of the registry local, want other")
	within := published(b)
	within.Window = evidence.Window{From: b.IssuedOn, Until: b.ExpiresOn}
	_, err = trust.BundleOf(within, "local")
	wantCode(t, err, "", "")
}

// A machine goes forward only: no older version, no second bundle of a version, nothing taken back.
func TestTrustBundleFollows(t *testing.T) {
	t.Parallel()
	at := func(n int64, change func(*trust.AcceptedTrust)) trust.AcceptedTrust {
		b := accepted(n)
		if change != nil {
			change(&b)
		}
		return b
	}
	for name, c := range map[string]struct {
		before, next trust.AcceptedTrust
		says         string // empty: accepted
	}{
		"the first contact":     {trust.AcceptedTrust{}, at(5, nil), ""},
		"the same again":        {at(3, nil), at(3, nil), ""},
		"the next":              {at(3, nil), at(4, nil), ""},
		"some were missed":      {at(3, nil), at(7, nil), ""},
		"an older one":          {at(3, nil), at(2, nil), "accepted version 3 already"},
		"a fork of the version": {at(3, nil), at(3, func(b *trust.AcceptedTrust) { b.Digest = trustDigest(9) }), "another bundle of that version"},
		"a fork before it":      {at(3, nil), at(4, func(b *trust.AcceptedTrust) { b.Previous = trustDigest(9) }), "the registry signed two"},
		"another registry":      {at(3, nil), at(4, func(b *trust.AcceptedTrust) { b.Registry = "other" }), "follows local"},
		"issued before":         {at(3, nil), at(5, func(b *trust.AcceptedTrust) { b.IssuedOn = at(3, nil).IssuedOn.Add(-1) }), "before version 3"},
		"a shorter history":     {at(3, nil), at(5, func(b *trust.AcceptedTrust) { b.Checkpoint.Size = 29 }), "the end of the history is gone"},
		"no history":            {at(3, nil), at(5, func(b *trust.AcceptedTrust) { b.Checkpoint = trust.KeptCheckpoint{} }), "the end of the history is gone"},
		"an older list":         {at(3, nil), at(5, func(b *trust.AcceptedTrust) { b.Restrictions[1] = bundledList("prod", 2) }), "restriction list 2 of prod"},
		"no list":               {at(3, nil), at(5, func(b *trust.AcceptedTrust) { b.Restrictions[1] = trust.BundledRestrictions{Environment: "prod"} }), "restriction list 0 of prod"},
		"another list": {at(3, nil), at(5, func(b *trust.AcceptedTrust) {
			b.Restrictions[1] = bundledList("prod", 3)
			b.Restrictions[1].Digest = trustDigest(1)
		}), "restriction list 3 of prod"},
		"an environment is gone": {at(3, nil), at(5, func(b *trust.AcceptedTrust) { b.Restrictions = b.Restrictions[:1] }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.next.CheckFollows(c.before)
			if c.says == "" {
				wantCode(t, err, "", "")
				return
			}
			wantCode(t, err, registry.CodeTrust, c.says)
		})
	}
	wantCode(t, at(4, nil).CheckNext(at(3, nil)), "", "")
	wantCode(t, at(1, nil).CheckNext(trust.AcceptedTrust{}), "", "")
	wantCode(t, at(5, nil).CheckNext(at(3, nil)), registry.CodeConflict, "the newest is 3")
	wantCode(t, at(4, func(b *trust.AcceptedTrust) { b.Previous = trustDigest(9) }).CheckNext(at(3, nil)), registry.CodeConflict, "the newest is 3")
}

// An expired bundle and one of the future accept nothing new.
func TestTrustBundleCurrent(t *testing.T) {
	t.Parallel()
	b := trustBundle(2)
	for _, c := range []struct {
		now  time.Time
		says string
	}{
		{b.IssuedOn, ""}, {b.ExpiresOn.Add(-1), ""}, {b.ExpiresOn, "it expired on 2026-02-14"},
		{b.ExpiresOn.AddDate(10, 0, 0), "it expired on"}, {b.IssuedOn.Add(-time.Minute), ""}, {b.IssuedOn.AddDate(0, 0, -1), "issued on"},
	} {
		err := b.CheckCurrent(c.now)
		if c.says == "" {
			wantCode(t, err, "", "")
			continue
		}
		wantCode(t, err, registry.CodeTrust, c.says)
	}
	wantCode(t, trust.TrustBundle{}.CheckCurrent(b.IssuedOn), registry.CodeTrust, "it expired on")
}

// A bundle counts by a pinned key or one of the bundle before, and always by what it says itself.
func TestTrustBundlePublisher(t *testing.T) {
	t.Parallel()
	key := func(state evidence.KeyState, roles ...evidence.Role) *evidence.Claim {
		return &evidence.Claim{Signer: publisher, Key: state, Roles: roles}
	}
	good := key(evidence.KeyTrusted, evidence.RolePublisher)
	for name, c := range map[string]struct {
		own, before, pinned *evidence.Claim
		says                string
	}{
		"pinned, first contact":        {good, nil, good, ""},
		"of the bundle before":         {good, good, nil, ""},
		"both":                         {good, good, good, ""},
		"new in the files":             {good, nil, good, ""},
		"nowhere":                      {nil, nil, nil, "no publisher that this machine knows"},
		"only by itself":               {good, nil, nil, "no publisher that this machine knows"},
		"a promoter by the one before": {good, key(evidence.KeyTrusted, evidence.RolePromoter), nil, "no publisher that this machine knows"},
		"two roles before":             {good, key(evidence.KeyTrusted, evidence.RolePublisher, evidence.RolePromoter), nil, "no publisher that this machine knows"},
		"revoked, though pinned":       {good, key(evidence.KeyRevoked, evidence.RolePublisher), good, "is revoked since an earlier bundle"},
		"retired, though pinned":       {good, key(evidence.KeyRetired, evidence.RolePublisher), good, "is retired since an earlier bundle"},
		"revoked by itself":            {key(evidence.KeyRevoked, evidence.RolePublisher), good, good, "does not list the key"},
		"retired by itself":            {key(evidence.KeyRetired, evidence.RolePublisher), good, good, "does not list the key"},
		"not named by itself":          {nil, good, good, "does not list the key"},
		"two roles by itself":          {key(evidence.KeyTrusted, evidence.RolePublisher, evidence.RoleBuilder), good, good, "does not list the key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := trust.CheckPublisher(c.own, c.before, c.pinned)
			if c.says == "" {
				wantCode(t, err, "", "")
				return
			}
			wantCode(t, err, registry.CodeTrust, c.says)
		})
	}
}

// A registry that hands out an older list than the bundle has is refused, and a newer one is not.
func TestTrustBundleBoundsRestrictions(t *testing.T) {
	t.Parallel()
	b := trustBundle(3)
	signed := func(environment string, counter int64) restriction.SignedRestrictions {
		l := bundledList(environment, counter)
		return restriction.SignedRestrictions{Environment: environment, Digest: l.Digest, List: evidence.RestrictionList{Counter: counter}, Bundle: l.Bundle}
	}
	wantCode(t, b.CheckRestrictions(signed("prod", 3)), "", "")
	wantCode(t, b.CheckRestrictions(signed("prod", 4)), "", "")
	wantCode(t, b.CheckRestrictions(signed("staging", 1)), "", "")
	wantCode(t, b.CheckRestrictions(restriction.SignedRestrictions{Environment: "staging"}), "", "")
	wantCode(t, b.CheckRestrictions(signed("prod", 2)), registry.CodeTrust, "hands out an older one")
	wantCode(t, b.CheckRestrictions(restriction.SignedRestrictions{Environment: "prod"}), registry.CodeTrust, "hands out an older one")
	other := signed("prod", 3)
	other.Digest = trustDigest(1)
	wantCode(t, b.CheckRestrictions(other), registry.CodeTrust, "hands out an older one")
}

// A draft has every key that environments.yaml names, and says which parts differ from another.
func TestTrustBundleDraft(t *testing.T) {
	t.Parallel()
	entry := func(key string, state evidence.KeyState) trust.TrustEntry {
		return trust.TrustEntry{Key: key, Roles: []evidence.Role{evidence.RoleBuilder}, Resources: []string{"oci://local/"}, State: state}
	}
	es := policy.Environments{Registry: "local", Configuration: digest.FromString("c"), Roots: []trust.Root{{Sigstore: "root.json"}},
		Trust: []trust.TrustEntry{entry("a.pub", ""), entry("missing.pub", ""), {Identity: &trust.Identity{Issuer: "https://ci.example"}}}}
	load := func(path string) ([]byte, error) {
		if path == "missing.pub" {
			return nil, fs.ErrNotExist
		}
		return []byte("content of " + path), nil
	}
	draft, err := policy.DraftTrustBundle(es, load)
	if err != nil || len(draft.Trust) != 2 || draft.Trust[0].PEM != "content of a.pub" ||
		draft.Trust[1].PEM != "" || len(draft.Roots) != 1 || draft.Roots[0].Content != "content of root.json" {
		t.Errorf("draft %+v, error %v", draft, err)
	}
	if names, err := draft.Differs(draft); err != nil || len(names) != 0 {
		t.Errorf("a draft differs from itself in %v, error %v", names, err)
	}
	other := draft.WithRestrictions([]restriction.SignedRestrictions{{Environment: "prod",
		List: evidence.RestrictionList{Counter: 1}, Bundle: []byte("x")}})
	other.Environments, other.Roots, other.Trust = digest.FromString("d"), nil, draft.Trust[:1]
	if names, err := draft.Differs(other); err != nil || !slices.Equal(names, []string{"environments", "trust", "roots", "restrictions"}) {
		t.Errorf("they differ in %v, error %v", names, err)
	}
	es.Trust = append(es.Trust, entry("missing.pub", evidence.KeyRevoked))
	_, err = policy.DraftTrustBundle(es, load)
	wantCode(t, err, registry.CodeUnavailable, "missing.pub")
	es.Trust, es.Configuration = nil, ""
	_, err = policy.DraftTrustBundle(es, load)
	wantCode(t, err, registry.CodeInvalid, "were not read")
	es.Configuration = digest.FromString("c")
	_, err = policy.DraftTrustBundle(es, func(string) ([]byte, error) { return nil, errors.New("disk") })
	wantCode(t, err, registry.CodeUnavailable, "disk")
}

// No bytes of a stranger make reading panic, or give a bundle that its own rules refuse.
func FuzzTrustBundle(f *testing.F) {
	for n := range int64(3) {
		body, err := json.Marshal(trustBundle(n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, predicate []byte) {
		c := published(trustBundle(1))
		c.Statement.Predicate = predicate
		if b, err := trust.BundleOf(c, "local"); err == nil {
			if err := b.Validate(); err != nil || b.Registry != "local" {
				t.Errorf("a bundle was read that is refused: %v", err)
			}
			_ = trust.AcceptedTrust{TrustBundle: b}.CheckFollows(accepted(1))
		}
	})
}
