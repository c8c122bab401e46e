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

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
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
	key    evidence.Role // none: it has a token
	person string        // name of the token with which it can sign in; none: the name of no listed person
	grants []storage.Grant
	pushes bool // prod is on a registry by others, to which it may push; it has nothing else
}

// thieves are the columns. Whoever has a key may also push and attach, and waits for
// others to promote: so the column tells what the key is good for.
func thieves() []thief {
	attach := []storage.Grant{{Permissions: []storage.Permission{
		storage.PermissionPush, storage.PermissionVerify, storage.PermissionApprove}, Environment: "**", Model: "**"}}
	in := func(environment string, permissions ...storage.Permission) storage.Grant {
		return storage.Grant{Permissions: permissions, Environment: environment, Model: "vision/*"}
	}
	read, everything := storage.PermissionRead, []storage.Grant{{Permissions: []storage.Permission{storage.PermissionAdminister},
		Environment: "**", Model: "**"}}
	return []thief{
		{"builder key", evidence.RoleBuilder, "", attach, false},
		{"verifier key", evidence.RoleVerifier, "", attach, false},
		{"approver key", evidence.RoleApprover, "", attach, false},
		{"promoter key", evidence.RolePromoter, "", attach, false},
		{"attester key", evidence.RoleAttester, "", attach, false},
		{"publisher key", evidence.RolePublisher, "", attach, false},
		{"CI token", "", "", []storage.Grant{in("staging", read, storage.PermissionPush, storage.PermissionVerify), in("prod", read)}, false},
		{"node token", "", "", []storage.Grant{in("prod", read)}, false},
		{"operator token", "", "", []storage.Grant{in("staging", read), in("prod", read, storage.PermissionPromote)}, false},
		{"token of a listed person", "", "ana", []storage.Grant{in("staging", read), in("prod", read, storage.PermissionAttest)}, false},
		{"administrator token", "", "ana", everything, false}, // it can make a token of any name
		{"push access to prod's registry", "", "", nil, true},
	}
}

// frozenIn is when a freeze of prod begins, after what the attempts take.
const frozenIn = 1000 * time.Hour

// otherApprover names a second key of an approver, which no thief has.
const otherApprover evidence.Role = "approver-2"

// attempt is a row: what a thief wants, and whether it got that.
type attempt struct {
	name string
	try  func(t *testing.T, w *stolen) bool
}

func attempts() []attempt {
	promoted := func(edit func(t *testing.T, w *stolen, r artifact.Release)) func(*testing.T, *stolen) bool {
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
			w.say(t, &w.thief, "staging", r, w.agreed(t, evidence.RoleApprover, r), w.agreed(t, evidence.RoleApprover, r))
			w.sayAll(t, r)
			_, _ = w.Promote(t.Context(), api.PromoteRequest{Model: r.Model, Ref: string(r.Digest), BreakGlass: true})
			return w.head(t) == r.Digest
		}
	}
	return []attempt{
		{"get an engine into prod without a build, a report or an approval", promoted(func(*testing.T, *stolen, artifact.Release) {})},
		{"... that lacks only the builder's signature and provenance", promoted(func(t *testing.T, w *stolen, r artifact.Release) {
			w.verify(t, r, evidence.VerdictPass)
			w.approve(t, r)
		})},
		{"... that lacks only a passing report", promoted(func(t *testing.T, w *stolen, r artifact.Release) {
			w.build(t, r)
			w.approve(t, r)
		})},
		{"... that lacks only an approval", promoted(func(t *testing.T, w *stolen, r artifact.Release) {
			w.build(t, r)
			w.verify(t, r, evidence.VerdictPass)
		})},
		{"... of which the newest report says fail", promoted(func(t *testing.T, w *stolen, r artifact.Release) {
			w.allow(t, r)
			w.verify(t, r, evidence.VerdictFail)
		})},
		{"... that is in quarantine", promoted(func(t *testing.T, w *stolen, r artifact.Release) {
			w.allow(t, r)
			w.quarantine(t, "staging", r)
		})},
		{"... that was made from what is restricted", promoted(func(t *testing.T, w *stolen, r artifact.Release) {
			w.allow(t, r)
			if err := w.restrict(t, evidence.RoleApprover, w.Interface, registrytest.SourceOf(r), nil); err != nil {
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
			_, err := w.guarded.Rollback(w.ctx(t), api.RollbackRequest{Environment: "prod", Model: r.Model, Reason: "try"})
			return err == nil && w.head(t) == w.first.Digest
		}},
		{"take engines of prod from nodes", func(t *testing.T, w *stolen) bool {
			t.Helper()
			w.sayAgainst(t, w.first)
			answer, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: w.first.Model, Node: registrytest.Node("v4")})
			return err != nil || answer.Engine == nil
		}},
		{"... and say that ana did it", func(t *testing.T, w *stolen) bool {
			t.Helper()
			w.sayAgainst(t, w.first)
			claims, _, err := w.Claims(t.Context(), "prod", w.first)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(claims, func(c evidence.Claim) bool { p := c.Attested(); return p != nil && p.Token == "ana" })
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
			_, _ = w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: r.Model, Reason: "it is slow"})
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
			return policy.CheckStanding("oci://local/prod/"+r.Model, r, w.forged(t, r), restriction.NoRestrictions()).Allowed()
		}},
		{"publish other keys as those that the registry trusts", func(t *testing.T, w *stolen) bool {
			t.Helper()
			_, err := w.PublishTrust(t.Context(), w.otherTrust(t)) // whoever hands it in
			return err == nil
		}},
		{"hand other keys to a node that follows, from between it and the registry", func(t *testing.T, w *stolen) bool {
			t.Helper()
			node := follow.Follower{Registry: "local", State: t.TempDir(), Now: w.clock.Now,
				Publishers: []follow.Publisher{{Name: "publisher.pub", PEM: w.keys[evidence.RolePublisher].PublicKeyPEM()}}}
			honest, err := w.PublishTrust(t.Context(), w.signTrust(t, evidence.RolePublisher, w.nextTrust(t, w.readKey)))
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
			_, err = w.trust.VerifyNote(t.Context(), signed, evidence.RolePromoter, "local", "oci://local/")
			return err == nil
		}},
		{"write into the repositories of staging", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "staging/"+registrytest.Model, storage.PermissionPush) == nil
		}},
		{"write into the repositories of prod", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.thief.pushes || w.repositories().Authorize(w.ctx(t), "prod/"+registrytest.Model, storage.PermissionPush) == nil
		}},
		{"read engines of staging", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "staging/"+registrytest.Model, storage.PermissionRead) == nil
		}},
		{"read engines of prod", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "prod/"+registrytest.Model, storage.PermissionRead) == nil
		}},
		{"... of a model that it was not given", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "prod/text/mood", storage.PermissionRead) == nil
		}},
		{"report that a node has an engine of prod", func(t *testing.T, w *stolen) bool {
			t.Helper()
			_, err := w.nodes.ReportNode(w.ctx(t), w.report("a-node-that-is-not"))
			return err == nil
		}},
		{"... and make the report of another node disappear", func(t *testing.T, w *stolen) bool {
			t.Helper()
			may := []storage.Grant{{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "prod", Model: registrytest.Model}}
			thief, _ := storage.PrincipalOf(w.ctx(t))
			fleet := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:fleet", Grants: may})
			same := storage.WithPrincipal(t.Context(), storage.Principal{Name: thief.Name, Grants: may}) // a node with the token that was stolen
			mine := w.report("edge-7")
			mine.Machine = strings.Repeat("5", 64)
			var said []storage.NodeReport
			say := func(ctx context.Context, r storage.NodeReport) {
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
			all, err := storage.AllNodeReports(fleet, w.nodes, "prod", registrytest.Model)
			if err != nil {
				t.Fatal(err)
			}
			return !slices.Contains(all, said[0]) || !slices.Contains(all, said[1])
		}},
		{"read cases and reference model", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return w.repositories().Authorize(w.ctx(t), "staging/"+registrytest.Model+"/sources", storage.PermissionRead) == nil
		}},
		{"delete evidence, or make tokens", func(t *testing.T, w *stolen) bool {
			t.Helper()
			return access.AllowRoute(w.ctx(t), storage.PermissionAdminister, "", "") == nil
		}},
	}
}

// stolen is a registry where release 1.0.0 is in prod, and a thief.
type stolen struct {
	registrytest.Registry
	guarded api.Interface // as the thief sees it
	nodes   storage.NodeReporter
	thief   thief
	keys    map[evidence.Role]signer.Signer
	trust   *signer.Trust
	chain   policy.Environments
	clock   *registrytest.Clock
	first   artifact.Release
	store   *oci.Store
	foreign *foreign // of prod, if the thief may push there
}

// inOneHand lists a person who holds two keys, beside a group that has the key of the approver.
func inOneHand(first, second evidence.Role) func(*policy.ApprovalRule) {
	return func(rule *policy.ApprovalRule) {
		rule.Attested.People = append(rule.Attested.People, policy.ListedPerson{Token: "bob", Keys: []string{string(first), string(second)}})
		rule.Groups = []policy.ApproverGroup{{Name: "night", Count: 1, Keys: []string{string(evidence.RoleApprover)}}}
	}
}

func newStolen(t *testing.T, who thief, edits ...func(*policy.ApprovalRule)) *stolen {
	t.Helper()
	w := &stolen{thief: who, keys: make(map[evidence.Role]signer.Signer), chain: registrytest.Chain(), clock: registrytest.NewClock()}
	w.chain.List[1].Require = append(policy.DefaultRequire(), policy.RequireRecordedCases, policy.RequireSeparateRoles)
	w.chain.List[1].Approvals = policy.ApprovalRule{Count: 1,
		Attested: &policy.AttestedRule{Max: 1, People: []policy.ListedPerson{{Token: "ana"}}}}
	for _, edit := range edits {
		edit(&w.chain.List[1].Approvals)
	}
	w.chain.List[1].BreakGlass = []string{policy.RequireParity, policy.RequireRecordedCases, "approvals"}
	w.chain.List[1].Freeze = []policy.Freeze{{Name: "fair", From: w.clock.Now().Add(frozenIn), Until: w.clock.Now().Add(2 * frozenIn)}}
	w.chain.Configuration = digest.FromString("environments and keys")
	w.chain.Trust = append(w.chain.Trust, trust.TrustEntry{Key: "publisher",
		Roles: []evidence.Role{evidence.RolePublisher}, Resources: []string{"oci://local/"}})
	w.chain.Trust = append(w.chain.Trust, trust.TrustEntry{Key: string(otherApprover),
		Roles: []evidence.Role{evidence.RoleApprover}, Resources: []string{"oci://local/"}})
	for _, role := range append(evidence.KeyRoles(), otherApprover) {
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
	svc, err := service.New(w.pushing(backend.Backend{
		Environments: w.chain, Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Now: w.clock.Now, Verify: w.trust.Verify, Inspect: parts.Inspect(content),
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](), TrustBundles: mem.NewTable[storage.TrustBundleDocument](), ReadKey: w.readKey,
		KeptCheckpoint: func(context.Context, int64) (trust.KeptCheckpoint, error) {
			return trust.KeptCheckpoint{}, registry.Errorf(registry.CodeNotFound, "none is kept")
		},
		Sign: func(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
			return w.keys[role].Sign(ctx, statement)
		},
	}, content))
	if err != nil {
		t.Fatal(err)
	}
	w.Interface, w.Parts, w.guarded = svc, content, access.Guard(svc)
	w.nodes = access.GuardNodes(service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: svc, Clock: db, Life: time.Hour})
	w.first = w.release(t, "1.0.0")
	w.allow(t, w.first)
	if _, err := w.promote(t, svc, w.first); err != nil {
		t.Fatal(err)
	}
	return w
}

// readKey reads a public key as environments.yaml names it.
func (w *stolen) readKey(path string) ([]byte, error) {
	return w.keys[evidence.Role(path)].PublicKeyPEM(), nil
}

// report is what a node says that has an engine of the release in prod.
func (w *stolen) report(node string) storage.NodeReport {
	return storage.NodeReport{Node: node, Environment: "prod", Model: w.first.Model, Release: w.first.Digest, Engine: w.first.Engines[0].Digest}
}

// nextTrust is the trust bundle that may follow now, with keys as load reads them.
func (w *stolen) nextTrust(t *testing.T, load func(string) ([]byte, error)) trust.TrustBundle {
	t.Helper()
	next, err := policy.DraftTrustBundle(w.chain, load)
	if err != nil {
		t.Fatal(err)
	}
	var lists []restriction.SignedRestrictions
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
func (w *stolen) signTrust(t *testing.T, role evidence.Role, b trust.TrustBundle) []byte {
	t.Helper()
	statement, err := trust.NewTrustBundle(b)
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
		if path == string(evidence.RolePromoter) {
			return other.PublicKeyPEM(), nil
		}
		return w.readKey(path)
	}))
}

// key is that of a role; without a role, one that is nowhere trusted.
func (w *stolen) key(t *testing.T, role evidence.Role) signer.Signer {
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
	return storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:" + name, Grants: w.thief.grants,
		Person: evidence.Person{Principal: "token:" + name, Token: name}})
}

func (w *stolen) repositories() access.Repositories {
	return access.Repositories{Environments: w.chain}
}

// release is published in staging, as everyone who may push there can.
func (w *stolen) release(t *testing.T, version string) artifact.Release {
	t.Helper()
	w.clock.Pass(time.Minute)
	return w.Build(t, registrytest.Build{Version: version, Salt: version})
}

func (w *stolen) promote(t *testing.T, through api.Interface, r artifact.Release) (api.Promotion, error) {
	t.Helper()
	ctx := t.Context()
	if through == w.guarded {
		ctx = w.ctx(t)
	}
	return through.Promote(ctx, api.PromoteRequest{Model: r.Model, Ref: string(r.Digest)})
}

func (w *stolen) head(t *testing.T) registry.Digest {
	t.Helper()
	heads, err := w.Heads(t.Context(), "prod", registrytest.Model)
	if err != nil || len(heads) != 1 {
		t.Fatalf("heads of prod: %v, error %v", heads, err)
	}
	return heads[0].Release
}
