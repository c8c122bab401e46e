package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/follow"
)

// TestStolen lets a thief with one key or one token try everything, on a registry with separate keys and
// approvals. What works is the table in docs/threat-model-keys.md, and nothing else.
func TestStolen(t *testing.T) {
	t.Parallel()
	works := make([][]bool, len(attempts())+len(harmless()))
	for i := range works {
		works[i] = make([]bool, len(thieves()))
	}
	for k, thief := range thieves() {
		for i, a := range attempts() {
			works[i][k] = a.try(t, newStolen(t, thief))
		}
		shared := newStolen(t, thief)
		for i, a := range harmless() {
			works[len(attempts())+i][k] = a.try(t, shared)
		}
	}
	page, err := os.ReadFile(programtest.Root("docs", "threat-model-keys.md"))
	if err != nil {
		t.Fatal(err)
	}
	if table := stolenTable(works); !strings.Contains(string(page), table) {
		t.Errorf("docs/threat-model-keys.md does not have the table of what works:\n%s", table)
	}
}

// stolenTable is the table of docs/threat-model-keys.md.
func stolenTable(works [][]bool) string {
	var b strings.Builder
	b.WriteString("| one alone can |")
	for _, thief := range thieves() {
		fmt.Fprintf(&b, " %s |", thief.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(thieves())) + "\n")
	for i, a := range slices.Concat(attempts(), harmless()) {
		fmt.Fprintf(&b, "| %s |", a.name)
		for _, worked := range works[i] {
			if worked {
				b.WriteString(" yes |")
			} else {
				b.WriteString(" – |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// thief has one thing.
type thief struct {
	name   string
	key    registry.Role // none: it has a token
	person string        // name of the token with which it can sign in; none: the name of no listed person
	grants []registry.Grant
	pushes bool // prod is on a registry by others, to which it may push; it has nothing else
}

// thieves are the columns. Whoever has a key may also push and attach, and waits for
// others to promote: so the column tells what the key is good for.
func thieves() []thief {
	attach := []registry.Grant{{Permissions: []registry.Permission{
		registry.PermissionPush, registry.PermissionVerify, registry.PermissionApprove}, Environment: "**", Model: "**"}}
	in := func(environment string, permissions ...registry.Permission) registry.Grant {
		return registry.Grant{Permissions: permissions, Environment: environment, Model: "vision/*"}
	}
	read, everything := registry.PermissionRead, []registry.Grant{{Permissions: []registry.Permission{registry.PermissionAdminister},
		Environment: "**", Model: "**"}}
	return []thief{
		{"builder key", registry.RoleBuilder, "", attach, false},
		{"verifier key", registry.RoleVerifier, "", attach, false},
		{"approver key", registry.RoleApprover, "", attach, false},
		{"promoter key", registry.RolePromoter, "", attach, false},
		{"attester key", registry.RoleAttester, "", attach, false},
		{"publisher key", registry.RolePublisher, "", attach, false},
		{"CI token", "", "", []registry.Grant{in("staging", read, registry.PermissionPush, registry.PermissionVerify), in("prod", read)}, false},
		{"node token", "", "", []registry.Grant{in("prod", read)}, false},
		{"operator token", "", "", []registry.Grant{in("staging", read), in("prod", read, registry.PermissionPromote)}, false},
		{"token of a listed person", "", "ana", []registry.Grant{in("staging", read), in("prod", read, registry.PermissionAttest)}, false},
		{"administrator token", "", "ana", everything, false}, // it can make a token of any name
		{"push access to prod's registry", "", "", nil, true},
	}
}

// frozenIn is when a freeze of prod begins, after what the attempts take.
const frozenIn = 1000 * time.Hour

// otherApprover names a second key of an approver, which no thief has.
const otherApprover registry.Role = "approver-2"

// attempt is a row: what a thief wants, and whether it got that.
type attempt struct {
	name string
	try  func(t *testing.T, w *stolen) bool
}

func attempts() []attempt {
	promoted := func(edit func(t *testing.T, w *stolen, r registry.Release)) func(*testing.T, *stolen) bool {
		return func(t *testing.T, w *stolen) bool {
			t.Helper()
			r := w.release(t, "2.0.0")
			edit(t, w, r)
			w.sayAll(t, r)
			// Others promote whatever the policy allows.
			_, _ = w.promote(t, w.Interface, r)
			return w.head(t) == r.Digest
		}
	}
	// broken is a promotion that skips a report and an approval. Two approvers must agree, and who agrees twice is one.
	broken := func(agreed bool) func(*testing.T, *stolen) bool {
		return func(t *testing.T, w *stolen) bool {
			t.Helper()
			r := w.release(t, "2.0.0")
			w.build(t, r)
			if agreed {
				w.say(t, nil, "staging", r, w.agreed(t, otherApprover, r))
			}
			w.say(t, &w.thief, "staging", r, w.agreed(t, registry.RoleApprover, r), w.agreed(t, registry.RoleApprover, r))
			w.sayAll(t, r)
			_, _ = w.Promote(t.Context(), registry.PromoteRequest{Model: r.Model, Ref: string(r.Digest), BreakGlass: true})
			return w.head(t) == r.Digest
		}
	}
	return []attempt{
		{"get an engine into prod without a build, a report or an approval", promoted(func(*testing.T, *stolen, registry.Release) {})},
		{"... that lacks only the builder's signature and provenance", promoted(func(t *testing.T, w *stolen, r registry.Release) {
			w.verify(t, r, registry.VerdictPass)
			w.approve(t, r)
		})},
		{"... that lacks only a passing report", promoted(func(t *testing.T, w *stolen, r registry.Release) {
			w.build(t, r)
			w.approve(t, r)
		})},
		{"... that lacks only an approval", promoted(func(t *testing.T, w *stolen, r registry.Release) {
			w.build(t, r)
			w.verify(t, r, registry.VerdictPass)
		})},
		{"... of which the newest report says fail", promoted(func(t *testing.T, w *stolen, r registry.Release) {
			w.allow(t, r)
			w.verify(t, r, registry.VerdictFail)
		})},
		{"... that is in quarantine", promoted(func(t *testing.T, w *stolen, r registry.Release) {
			w.allow(t, r)
			w.quarantine(t, "staging", r)
		})},
		{"... that was made from what is restricted", promoted(func(t *testing.T, w *stolen, r registry.Release) {
			w.allow(t, r)
			if err := w.restrict(t, registry.RoleApprover, w.Interface, registrytest.SourceOf(r), nil); err != nil {
				t.Fatal(err)
			}
		})},
		{"... that lacks a report and an approval, by break-glass", broken(false)},
		{"... to which another approver agreed", broken(true)},
		{"... with another key of the same person", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return broken(true)(t, newStolen(t, w.thief, inOneHand(w.thief.key, otherApprover)))
		}},
		{"promote what the policy allows", func(t *testing.T, w *stolen) bool {
			t.Helper()
			r := w.release(t, "2.0.0")
			w.allow(t, r)
			_, err := w.promote(t, w.guarded, r)
			return err == nil && w.head(t) == r.Digest
		}},
		{"... while prod is frozen", func(t *testing.T, w *stolen) bool {
			t.Helper()
			r := w.release(t, "2.0.0")
			w.allow(t, r)
			w.clock.Pass(frozenIn + time.Hour)
			_, err := w.promote(t, w.guarded, r)
			return err == nil && w.head(t) == r.Digest
		}},
		{"take prod back to an earlier release", func(t *testing.T, w *stolen) bool {
			t.Helper()
			r := w.release(t, "2.0.0")
			w.allow(t, r)
			if _, err := w.promote(t, w.Interface, r); err != nil {
				t.Fatal(err)
			}
			_, err := w.guarded.Rollback(w.ctx(t), registry.RollbackRequest{Environment: "prod", Model: r.Model, Reason: "try"})
			return err == nil && w.head(t) == w.first.Digest
		}},
		{"take engines of prod from nodes", func(t *testing.T, w *stolen) bool {
			t.Helper()
			w.sayAgainst(t, w.first)
			answer, err := w.Resolve(t.Context(), registry.ResolveQuery{Environment: "prod", Model: w.first.Model, Node: registrytest.Node("v4")})
			return err != nil || answer.Engine == nil
		}},
		{"... and say that ana did it", func(t *testing.T, w *stolen) bool {
			t.Helper()
			w.sayAgainst(t, w.first)
			claims, _, err := w.Claims(t.Context(), "prod", w.first)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(claims, func(c registry.Claim) bool { p := c.Attested(); return p != nil && p.Token == "ana" })
		}},
		{"make nodes get an engine of prod that was put in quarantine", func(t *testing.T, w *stolen) bool {
			t.Helper()
			w.quarantine(t, "prod", w.first)
			w.sayAll(t, w.first)
			return w.given(t, w.first)
		}},
		{"take prod back to a release that was put in quarantine", func(t *testing.T, w *stolen) bool {
			t.Helper()
			r := w.release(t, "2.0.0")
			w.allow(t, r)
			if _, err := w.promote(t, w.Interface, r); err != nil {
				t.Fatal(err)
			}
			w.quarantine(t, "prod", w.first)
			w.sayAll(t, w.first)
			// Others go back to whatever the policy allows.
			_, _ = w.Rollback(t.Context(), registry.RollbackRequest{Environment: "prod", Model: r.Model, Reason: "it is slow"})
			return w.head(t) == w.first.Digest
		}},
		{"stop promotions to prod by a hold", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.guarded.SetHold(w.ctx(t), "prod", registrytest.Model, "try") == nil
		}},
		{"make a node that checks only summaries take a release of staging for one of prod", func(t *testing.T, w *stolen) bool {
			t.Helper()
			r := w.release(t, "2.0.0")
			w.build(t, r)
			return registry.CheckStanding("oci://local/prod/"+r.Model, r, w.forged(t, r), registry.NoRestrictions()).Allowed()
		}},
		{"publish other keys as those that the registry trusts", func(t *testing.T, w *stolen) bool {
			t.Helper()
			_, err := w.PublishTrust(t.Context(), w.otherTrust(t)) // whoever hands it in
			return err == nil
		}},
		{"hand other keys to a node that follows, from between it and the registry", func(t *testing.T, w *stolen) bool {
			t.Helper()
			node := follow.Follower{Registry: "local", State: t.TempDir(), Now: w.clock.Now,
				Publishers: []follow.Publisher{{Name: "publisher.pub", PEM: w.keys[registry.RolePublisher].PublicKeyPEM()}}}
			honest, err := w.PublishTrust(t.Context(), w.signTrust(t, registry.RolePublisher, w.nextTrust(t, w.readKey)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := node.Update(t.Context(), honest.Bundle); err != nil {
				t.Fatal(err)
			}
			_, err = node.Update(t.Context(), w.otherTrust(t))
			return err == nil
		}},
	}
}

// harmless are the rows whose attempts change nothing.
func harmless() []attempt {
	return []attempt{
		{"sign a checkpoint of a history that never was", func(t *testing.T, w *stolen) bool {
			t.Helper()
			signed, err := w.key(t, w.thief.key).SignNote(t.Context(), "local", "local\na history\n")
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.trust.VerifyNote(t.Context(), signed, registry.RolePromoter, "local", "oci://local/")
			return err == nil
		}},
		{"write into the repositories of staging", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "staging/"+registrytest.Model, registry.PermissionPush) == nil
		}},
		{"write into the repositories of prod", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.thief.pushes || w.repositories().Authorize(w.ctx(t), "prod/"+registrytest.Model, registry.PermissionPush) == nil
		}},
		{"read engines of staging", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "staging/"+registrytest.Model, registry.PermissionRead) == nil
		}},
		{"read engines of prod", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "prod/"+registrytest.Model, registry.PermissionRead) == nil
		}},
		{"... of a model that it was not given", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "prod/text/mood", registry.PermissionRead) == nil
		}},
		{"report that a node has an engine of prod", func(t *testing.T, w *stolen) bool {
			t.Helper()
			_, err := w.nodes.ReportNode(w.ctx(t), w.report("a-node-that-is-not"))
			return err == nil
		}},
		{"... and make the report of another node disappear", func(t *testing.T, w *stolen) bool {
			t.Helper()
			may := []registry.Grant{{Permissions: []registry.Permission{registry.PermissionRead}, Environment: "prod", Model: registrytest.Model}}
			thief, _ := registry.PrincipalOf(w.ctx(t))
			fleet := registry.WithPrincipal(t.Context(), registry.Principal{Name: "token:fleet", Grants: may})
			same := registry.WithPrincipal(t.Context(), registry.Principal{Name: thief.Name, Grants: may}) // a node with the token that was stolen
			mine := w.report("edge-7")
			mine.Machine = strings.Repeat("5", 64)
			var said []registry.NodeReport
			say := func(ctx context.Context, r registry.NodeReport) {
				stored, err := w.nodes.ReportNode(ctx, r)
				if err != nil {
					t.Fatal(err)
				}
				said = append(said, stored)
			}
			say(fleet, w.report("edge-7"))
			say(same, mine)
			forged := w.report("edge-7")
			forged.Engine = w.first.Engines[len(w.first.Engines)-1].Digest
			for _, machine := range []string{"", strings.Repeat("6", 64), said[1].Machine + said[1].Machine} {
				forged.Machine = machine
				_, _ = w.nodes.ReportNode(w.ctx(t), forged)
			}
			all, err := registry.AllNodeReports(fleet, w.nodes, "prod", registrytest.Model)
			if err != nil {
				t.Fatal(err)
			}
			return !slices.Contains(all, said[0]) || !slices.Contains(all, said[1])
		}},
		{"read cases and reference model", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "staging/"+registrytest.Model+"/sources", registry.PermissionRead) == nil
		}},
		{"delete evidence, or make tokens", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return access.AllowRoute(w.ctx(t), registry.PermissionAdminister, "", "") == nil
		}},
	}
}

// stolen is a registry where release 1.0.0 is in prod, and a thief.
type stolen struct {
	registrytest.Registry
	guarded registry.Interface // as the thief sees it
	nodes   registry.NodeReporter
	thief   thief
	keys    map[registry.Role]signer.Signer
	trust   *signer.Trust
	chain   registry.Environments
	clock   *registrytest.Clock
	first   registry.Release
	store   *oci.Store
	foreign *foreign // of prod, if the thief may push there
}

// inOneHand lists a person who holds two keys, beside a group that has the key of the approver.
func inOneHand(first, second registry.Role) func(*registry.ApprovalRule) {
	return func(rule *registry.ApprovalRule) {
		rule.Attested.People = append(rule.Attested.People, registry.ListedPerson{Token: "bob", Keys: []string{string(first), string(second)}})
		rule.Groups = []registry.ApproverGroup{{Name: "night", Count: 1, Keys: []string{string(registry.RoleApprover)}}}
	}
}

func newStolen(t *testing.T, who thief, edits ...func(*registry.ApprovalRule)) *stolen {
	t.Helper()
	w := &stolen{thief: who, keys: make(map[registry.Role]signer.Signer), chain: registrytest.Chain(), clock: registrytest.NewClock()}
	w.chain.List[1].Require = append(registry.DefaultRequire(), registry.RequireRecordedCases, registry.RequireSeparateRoles)
	w.chain.List[1].Approvals = registry.ApprovalRule{Count: 1,
		Attested: &registry.AttestedRule{Max: 1, People: []registry.ListedPerson{{Token: "ana"}}}}
	for _, edit := range edits {
		edit(&w.chain.List[1].Approvals)
	}
	w.chain.List[1].BreakGlass = []string{registry.RequireParity, registry.RequireRecordedCases, "approvals"}
	w.chain.List[1].Freeze = []registry.Freeze{{Name: "fair", From: w.clock.Now().Add(frozenIn), Until: w.clock.Now().Add(2 * frozenIn)}}
	w.chain.Configuration = digest.FromString("environments and keys")
	w.chain.Trust = append(w.chain.Trust, registry.TrustEntry{Key: "publisher",
		Roles: []registry.Role{registry.RolePublisher}, Resources: []string{"oci://local/"}})
	w.chain.Trust = append(w.chain.Trust, registry.TrustEntry{Key: string(otherApprover),
		Roles: []registry.Role{registry.RoleApprover}, Resources: []string{"oci://local/"}})
	for _, role := range append(registry.KeyRoles(), otherApprover) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if w.keys[role], err = signer.New(key); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.trust, err = signer.NewTrust(w.chain.Trust, w.readKey); err != nil {
		t.Fatal(err)
	}
	db, blobs := mem.New(), mem.NewBlobs()
	content := w.content(db, blobs)
	w.store = content
	svc, err := service.New(w.pushing(service.Config{
		Environments: w.chain, Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Now: w.clock.Now, Verify: w.trust.Verify,
		RestrictionBundles: mem.NewTable[registry.RestrictionBundle](), TrustBundles: mem.NewTable[registry.TrustBundleDocument](), ReadKey: w.readKey,
		KeptCheckpoint: func(context.Context, int64) (registry.KeptCheckpoint, error) {
			return registry.KeptCheckpoint{}, registry.Errorf(registry.CodeNotFound, "none is kept")
		},
		Sign: func(ctx context.Context, role registry.Role, statement []byte) ([]byte, error) {
			return w.keys[role].Sign(ctx, statement)
		},
	}, content))
	if err != nil {
		t.Fatal(err)
	}
	w.Interface, w.Parts, w.guarded = svc, content, access.Guard(svc)
	w.nodes = access.GuardNodes(service.NodeReports{Table: mem.NewTable[registry.NodeReport](), Inspector: svc, Clock: db, Life: time.Hour})
	w.first = w.release(t, "1.0.0")
	w.allow(t, w.first)
	if _, err := w.promote(t, svc, w.first); err != nil {
		t.Fatal(err)
	}
	return w
}

// readKey reads a public key as environments.yaml names it.
func (w *stolen) readKey(path string) ([]byte, error) {
	return w.keys[registry.Role(path)].PublicKeyPEM(), nil
}

// report is what a node says that has an engine of the release in prod.
func (w *stolen) report(node string) registry.NodeReport {
	return registry.NodeReport{Node: node, Environment: "prod", Model: w.first.Model, Release: w.first.Digest, Engine: w.first.Engines[0].Digest}
}

// nextTrust is the trust bundle that may follow now, with keys as load reads them.
func (w *stolen) nextTrust(t *testing.T, load func(string) ([]byte, error)) registry.TrustBundle {
	t.Helper()
	next, err := registry.DraftTrustBundle(w.chain, load)
	if err != nil {
		t.Fatal(err)
	}
	var lists []registry.SignedRestrictions
	for _, e := range w.chain.List {
		signed, err := w.Restrictions(t.Context(), e.Name)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, signed)
	}
	next = next.WithRestrictions(lists)
	before, err := w.TrustBundle(t.Context())
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		t.Fatal(err)
	}
	next.Version, next.Previous, next.IssuedOn = before.Trust.Version+1, before.Digest, w.clock.Now()
	next.ExpiresOn = next.IssuedOn.Add(24 * time.Hour)
	return next
}

// signTrust signs a trust bundle with the key of a role; without a role, with a key that is nowhere trusted.
func (w *stolen) signTrust(t *testing.T, role registry.Role, b registry.TrustBundle) []byte {
	t.Helper()
	statement, err := registry.NewTrustBundle(b)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := w.key(t, role).Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// otherTrust is a trust bundle by the thief, which follows the newest and has another key as the promoter's.
func (w *stolen) otherTrust(t *testing.T) []byte {
	t.Helper()
	other := w.key(t, "")
	return w.signTrust(t, w.thief.key, w.nextTrust(t, func(path string) ([]byte, error) {
		if path == string(registry.RolePromoter) {
			return other.PublicKeyPEM(), nil
		}
		return w.readKey(path)
	}))
}

// key is that of a role; without a role, one that is nowhere trusted.
func (w *stolen) key(t *testing.T, role registry.Role) signer.Signer {
	t.Helper()
	if role != "" {
		return w.keys[role]
	}
	fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.New(fresh)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// ctx is that of the thief's requests.
func (w *stolen) ctx(t *testing.T) context.Context {
	t.Helper()
	name := cmp.Or(w.thief.person, "thief")
	return registry.WithPrincipal(t.Context(), registry.Principal{Name: "token:" + name, Grants: w.thief.grants,
		Person: registry.Person{Principal: "token:" + name, Token: name}})
}

func (w *stolen) repositories() access.Repositories {
	return access.Repositories{Environments: w.chain}
}

// release is published in staging, as everyone who may push there can.
func (w *stolen) release(t *testing.T, version string) registry.Release {
	t.Helper()
	w.clock.Pass(time.Minute)
	return w.Build(t, registrytest.Build{Version: version, Salt: version})
}

func (w *stolen) promote(t *testing.T, through registry.Interface, r registry.Release) (registry.Promotion, error) {
	t.Helper()
	ctx := t.Context()
	if through == w.guarded {
		ctx = w.ctx(t)
	}
	return through.Promote(ctx, registry.PromoteRequest{Model: r.Model, Ref: string(r.Digest)})
}

func (w *stolen) head(t *testing.T) registry.Digest {
	t.Helper()
	heads, err := w.Heads(t.Context(), "prod", registrytest.Model)
	if err != nil || len(heads) != 1 {
		t.Fatalf("heads of prod: %v, error %v", heads, err)
	}
	return heads[0].Release
}
