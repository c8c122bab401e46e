package follow_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/follow"
	"mlpromote.dev/mlpromote/signer/signertest"
)

// world is a registry that publishes, and a machine that follows it by the first publisher's key.
type world struct {
	t    *testing.T
	keys map[string]signer.Signer
	follow.Follower
	at time.Time
}

var started = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, keys: make(map[string]signer.Signer), at: started.AddDate(0, 0, 1)}
	for _, name := range []string{"first", "second", "promoter", "stranger"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if w.keys[name], err = signer.New(key); err != nil {
			t.Fatal(err)
		}
	}
	w.Follower = follow.Follower{
		Registry: "local", State: filepath.Join(t.TempDir(), "deep", "trust"), Now: func() time.Time { return w.at },
		Publishers: []follow.Publisher{{Name: "first.pub", PEM: w.keys["first"].PublicKeyPEM()}},
	}
	return w
}

func (w *world) entry(name string, role evidence.Role, state evidence.KeyState) trust.BundledTrust {
	e := trust.TrustEntry{Key: name + ".pub", Roles: []evidence.Role{role}, Resources: []string{"oci://local/"}, State: state}
	if state == evidence.KeyRetired {
		e.RetiredAt = started
	}
	return trust.BundledTrust{Entry: e, PEM: string(w.keys[name].PublicKeyPEM())}
}

// bundle is version n, which is issued n hours after the start, for ten days. Previous is a guess unless a test sets it.
func (w *world) bundle(n int64) trust.TrustBundle {
	b := trust.TrustBundle{
		Registry: "local", Version: n, IssuedOn: started.Add(time.Duration(n) * time.Hour), Environments: digest.FromString("environments"),
		Trust:        []trust.BundledTrust{w.entry("promoter", evidence.RolePromoter, ""), w.entry("first", evidence.RolePublisher, "")},
		Restrictions: []trust.BundledRestrictions{{Environment: "prod"}},
		Checkpoint:   history("local", "first event", 10*n),
	}
	b.ExpiresOn = b.IssuedOn.AddDate(0, 0, 10)
	if n > 1 {
		b.Previous = digest.FromString("another")
	}
	return b
}

// history is the checkpoint of a history, which nobody signed: the publisher vouches for it.
func history(name, first string, size int64) trust.KeptCheckpoint {
	root := digest.FromString(fmt.Sprint("root of ", size))
	return trust.KeptCheckpoint{Size: size, Note: fmt.Sprintf("mlpromote.dev/history/%s/%s\n%d\n%s\n\n— x y\n",
		name, digest.FromString(first).Encoded(), size, base64Of(root))}
}

func (w *world) sign(key string, b trust.TrustBundle) []byte {
	w.t.Helper()
	statement, err := trust.NewTrustBundle(b)
	if err != nil {
		w.t.Fatal(err)
	}
	bundle, err := w.keys[key].Sign(context.WithoutCancel(w.t.Context()), statement)
	if err != nil {
		w.t.Fatal(err)
	}
	return bundle
}

// accepts lets the machine accept a bundle, which must succeed.
func (w *world) accepts(bundle []byte) *follow.Accepted {
	w.t.Helper()
	a, err := w.Update(w.t.Context(), bundle)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) refuses(bundle []byte, says string) {
	w.t.Helper()
	a, err := w.Update(w.t.Context(), bundle)
	if !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), says) {
		w.t.Errorf("accepted %+v, error %v (%s); want CodeTrust that says %q", a, err, registry.CodeOf(err), says)
	}
}

// remembers checks which version the machine has in mind, and in how many files.
func (w *world) remembers(version int64, files int) {
	w.t.Helper()
	a, err := w.Remembered(w.t.Context())
	if err != nil || a.Version != version {
		w.t.Errorf("remembered is %+v, error %v; want version %d", a, err, version)
	}
	entries, err := os.ReadDir(w.State)
	if err != nil || len(entries) != files {
		w.t.Errorf("%v in the folder, error %v; want %d files", entries, err, files)
	}
}

// A machine takes the newest bundle, judges by its keys, and has it in mind afterwards, also without a network.
func TestFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.Remembered(t.Context()); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("before any contact: error %v, want CodeNotFound", err)
	}
	w.accepts(w.sign("first", w.bundle(3)))
	w.remembers(3, 1)
	newest := w.sign("first", w.bundle(7))
	a := w.accepts(newest)
	w.accepts(newest)
	w.remembers(7, 1)
	statement, err := evidence.NewStatement(evidence.PredicateVSA, struct{}{},
		evidence.StatementSubject{Digest: evidence.NewDigestSet(digest.FromString("x"))})
	if err != nil {
		t.Fatal(err)
	}
	given, err := w.keys["promoter"].Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := a.Trust.Verify(t.Context(), given, "oci://local/prod/x"); err != nil || !c.SignedAs(evidence.RolePromoter) {
		t.Errorf("evidence of the promoter: %+v, error %v", c, err)
	}
	// A year later it is still in mind, and nothing new is accepted by it.
	w.at = started.AddDate(1, 0, 0)
	w.remembers(7, 1)
	w.refuses(newest, "it expired on")
}

// Each of these is what somebody does who is between the registry and the machine, or has another key.
func TestFollowRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key   string
		n     int64
		spoil func(w *world, b *trust.TrustBundle, before registry.Digest)
		says  string
	}{
		"an older version":      {n: 4, says: "has accepted version 5 already"},
		"a fork of the version": {n: 5, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) { b.ExpiresOn = b.ExpiresOn.Add(1) }, says: "another bundle of that version"},
		"a fork before it":      {n: 6, says: "the registry signed two"},
		"the promoter's key":    {key: "promoter", n: 7, says: "no publisher that this machine knows"},
		"a stranger's key":      {key: "stranger", n: 7, says: "no publisher that this machine knows"},
		"another registry": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) {
			b.Registry = "other"
			b.Checkpoint = history("other", "first event", 70)
		}, says: "of the registry other, want local"},
		"without its signer": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) { b.Trust = b.Trust[:1] }, says: "does not list the key"},
		"its signer is revoked": {n: 7, spoil: func(w *world, b *trust.TrustBundle, _ registry.Digest) {
			b.Trust[1] = w.entry("first", evidence.RolePublisher, evidence.KeyRevoked)
		}, says: "does not list the key"},
		"another history": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) {
			b.Checkpoint = history("local", "other event", 70)
		}, says: "of another history"},
		"a shorter history": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) {
			b.Checkpoint = history("local", "first event", 7)
		}, says: "the end of the history is gone"},
		"another end of the history": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) {
			b.Checkpoint = history("local", "first event", 50)
			b.Checkpoint.Note = strings.Replace(b.Checkpoint.Note, base64Of(digest.FromString("root of 50")), base64Of(digest.FromString("x")), 1)
		}, says: "of another history"},
		"another size of the note": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) { b.Checkpoint.Size++ }, says: "its checkpoint of 71 events"},
		"no lists": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) {
			b.Restrictions = []trust.BundledRestrictions{{Environment: "prod"}}
		}, says: "restriction list 0 of prod"},
		"of the future": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) {
			b.IssuedOn, b.ExpiresOn = b.IssuedOn.AddDate(0, 1, 0), b.ExpiresOn.AddDate(0, 1, 0)
		}, says: "issued on"},
		"a junk key": {n: 7, spoil: func(_ *world, b *trust.TrustBundle, _ registry.Digest) { b.Trust[0].PEM = "junk" }, says: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			list := []byte("list")
			listed := func(b trust.TrustBundle) trust.TrustBundle {
				b.Restrictions = []trust.BundledRestrictions{{Environment: "prod", Counter: 1, Digest: digest.FromBytes(list), Bundle: list}}
				return b
			}
			before := w.accepts(w.sign("first", listed(w.bundle(5))))
			next, key := listed(w.bundle(c.n)), c.key
			if c.spoil != nil {
				c.spoil(w, &next, before.Digest)
			}
			if key == "" {
				key = "first"
			}
			if a, err := w.Update(t.Context(), w.sign(key, next)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("accepted %+v, error %v; want one that says %q", a, err, c.says)
			}
			w.remembers(5, 1)
		})
	}
}

// At the first contact a bundle is judged by the pinned key and by what it says itself.
func TestFirstContactRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(w *world, b *trust.TrustBundle)
		says  string
	}{
		"another registry": {func(_ *world, b *trust.TrustBundle) { b.Registry = "other" }, "of the registry other, want local"},
		"its signer's time is over": {func(_ *world, b *trust.TrustBundle) {
			b.Trust[1].Entry.Window.Until = b.ExpiresOn.Add(-time.Second)
		}, "which signed it, counts"},
		"without its signer": {func(_ *world, b *trust.TrustBundle) { b.Trust = b.Trust[:1] }, "does not list the key"},
		"two files of one name": {func(_ *world, b *trust.TrustBundle) {
			b.Roots = []trust.BundledRoot{{Root: trust.Root{Timestamps: "promoter.pub"}, Content: "another"}}
		}, `"promoter.pub" is two files`},
		"a root that is none": {func(_ *world, b *trust.TrustBundle) {
			b.Roots = []trust.BundledRoot{{Root: trust.Root{Timestamps: "tsa.pem"}, Content: "junk"}}
		}, "tsa.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.bundle(1)
			c.spoil(w, &b)
			if a, err := w.Update(t.Context(), w.sign("first", b)); a != nil || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("accepted %+v, error %v; want one that says %q", a, err, c.says)
			}
			if _, err := w.Remembered(t.Context()); !registry.HasCode(err, registry.CodeNotFound) {
				t.Errorf("afterwards: error %v, want CodeNotFound", err)
			}
		})
	}
}

// A bundle brings the roots by which identities and times are judged.
func TestFollowRoots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.bundle(1)
	chain := string(signertest.New(t).StampChain(t))
	b.Roots = []trust.BundledRoot{
		{Root: trust.Root{Timestamps: "tsa.pem"}, Content: chain}, {Root: trust.Root{Timestamps: "tsa.pem"}, Content: chain},
	}
	if a := w.accepts(w.sign("first", b)); a.Trust == nil {
		t.Error("accepted without trust")
	}
	w.remembers(1, 1)
}

// What ends the call, or the folder, is no verdict on a bundle, and nothing is remembered of it.
func TestFollowUnavailable(t *testing.T) {
	t.Parallel()
	t.Run("the call ended", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		bundle := w.sign("first", w.bundle(1))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if a, err := w.Update(ended, bundle); a != nil || !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("accepted %+v, error %v; want CodeUnavailable", a, err)
		}
		w.accepts(bundle)
	})
	t.Run("the folder cannot be made", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.State = filepath.Join(t.TempDir(), "state")
		if err := os.Symlink("nowhere", w.State); err != nil {
			t.Fatal(err)
		}
		if a, err := w.Update(t.Context(), w.sign("first", w.bundle(1))); a != nil || !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("accepted %+v, error %v; want CodeUnavailable", a, err)
		}
	})
	t.Run("no file can be made in the folder", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.State = "/proc/self/task" // of the kernel, or not there
		if a, err := w.Update(t.Context(), w.sign("first", w.bundle(1))); a != nil || !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("accepted %+v, error %v; want CodeUnavailable", a, err)
		}
	})
	t.Run("a file is in place of the folder", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.State = filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(w.State, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := w.Remembered(t.Context()); a != nil || !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("remembered %+v, error %v; want CodeUnavailable", a, err)
		}
	})
	t.Run("files vanish each time", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.accepts(w.sign("first", w.bundle(1)))
		if err := os.Symlink("nowhere", filepath.Join(w.State, "0000000000000000003.json")); err != nil {
			t.Fatal(err)
		}
		if a, err := w.Remembered(t.Context()); a != nil || !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "try again") {
			t.Errorf("remembered %+v, error %v; want CodeUnavailable that says to try again", a, err)
		}
	})
}

// A bundle of exactly as many bytes as allowed is remembered. A larger file is none.
func TestLargestRememberedBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bundle := w.sign("first", w.bundle(1))
	padded := append(bundle, strings.Repeat(" ", trust.MaxTrustBundle-len(bundle))...)
	w.accepts(padded)
	w.remembers(1, 1)
	if err := os.WriteFile(filepath.Join(w.State, "0000000000000000001.json"), append(padded, ' '), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := w.Remembered(t.Context()); !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), "has more than") {
		t.Errorf("one more byte: remembered %+v, error %v; want CodeTrust that says the size", a, err)
	}
}

// Parts of two versions under one signature, and bytes that were changed, are no bundle.
func TestFollowRefusesSplices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := string(w.sign("first", w.bundle(1))), string(w.sign("first", w.bundle(2)))
	payload := func(text string) string { return between(t, text, `"payload":"`) }
	w.refuses([]byte(strings.Replace(one, payload(one), payload(two), 1)), "")
	w.refuses([]byte(strings.Replace(two, between(t, two, `"sig":"`), between(t, one, `"sig":"`), 1)), "")
	w.refuses([]byte("{}"), "")
	w.refuses(nil, "")
	w.refuses([]byte(strings.Repeat(" ", trust.MaxTrustBundle+1)), "")
	if _, err := w.Remembered(t.Context()); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("after refusals: error %v, want CodeNotFound", err)
	}
}

// The old key names the new one, which then ends the old; the old one no longer counts, though it is pinned.
func TestFollowRotation(t *testing.T) {
	t.Parallel()
	for _, end := range []evidence.KeyState{evidence.KeyRetired, evidence.KeyRevoked} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			second := w.entry("second", evidence.RolePublisher, "")
			w.accepts(w.sign("first", w.bundle(1)))
			unknown := w.bundle(3)
			unknown.Trust = []trust.BundledTrust{second}
			w.refuses(w.sign("second", unknown), "no publisher that this machine knows")
			both := w.bundle(4)
			both.Trust = append(both.Trust, second)
			w.accepts(w.sign("first", both))
			w.remembers(4, 1)
			for n := int64(6); n < 11; n += 2 {
				ended := w.bundle(n)
				ended.Trust = []trust.BundledTrust{second, w.entry("first", evidence.RolePublisher, end)}
				w.accepts(w.sign("second", ended))
				w.remembers(n, 2) // the one by which the new key is known stays
			}
			again := w.bundle(12)
			again.Trust = append(again.Trust, second)
			w.refuses(w.sign("first", again), "since an earlier bundle")
			w.Publishers = []follow.Publisher{{Name: "second.pub", PEM: w.keys["second"].PublicKeyPEM()}}
			w.remembers(10, 2)
			last := w.bundle(14)
			last.Trust = []trust.BundledTrust{second}
			w.accepts(w.sign("second", last))
			w.remembers(14, 1)
		})
	}
}

// A folder that was changed is not taken for another one; one that is gone is a first contact again.
func TestFollowState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.sign("first", w.bundle(2))
	w.accepts(old)
	w.accepts(w.sign("first", w.bundle(5)))
	path := filepath.Join(w.State, "0000000000000000005.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	foreign := w.bundle(5)
	foreign.Trust = []trust.BundledTrust{w.entry("stranger", evidence.RolePublisher, "")}
	for name, content := range map[string][]byte{
		"an older one": old, "a stranger's": w.sign("stranger", foreign), "empty": nil, "a flipped byte": []byte(strings.Replace(string(good), "A", "B", 1)),
		"too long": []byte(strings.Repeat(" ", trust.MaxTrustBundle+1)),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := w.Remembered(t.Context()); !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), "does not count") {
			t.Errorf("%s: %+v, error %v; want CodeTrust", name, a, err)
		}
		if _, err := w.Update(t.Context(), w.sign("first", w.bundle(9))); !registry.HasCode(err, registry.CodeTrust) {
			t.Errorf("%s: a newer one on top: error %v, want CodeTrust", name, err)
		}
	}
	if err := os.RemoveAll(w.State); err != nil {
		t.Fatal(err)
	}
	w.accepts(old) // the first contact again: also an older one counts, which is why the folder must be kept
	w.remembers(2, 1)
	if err := os.WriteFile(filepath.Join(w.State, ".0000000000000000009.json.tmp-1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.remembers(2, 2) // what a crash left behind is not a bundle
}

// Of many processes at once the newest version wins, whichever order they come in.
func TestFollowAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const versions = 12
	var done sync.WaitGroup
	for n := int64(1); n <= versions; n++ {
		bundle := w.sign("first", w.bundle(2*n)) // none directly follows another, whose digest it would have to name
		done.Go(func() {
			if _, err := w.Update(t.Context(), bundle); err != nil && (n == versions || !registry.HasCode(err, registry.CodeTrust)) {
				t.Errorf("version %d: %v", n, err)
			}
		})
	}
	done.Wait()
	if a, err := w.Remembered(t.Context()); err != nil || a.Version != 2*versions {
		t.Errorf("remembered is %+v, error %v; want version %d", a, err, 2*versions)
	}
}

// Two forks of one version at once: one is remembered, and the other refused.
func TestFollowForksAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	errs := make([]error, 2)
	var done sync.WaitGroup
	for i := range errs {
		b := w.bundle(1)
		b.ExpiresOn = b.ExpiresOn.Add(time.Duration(i) * time.Hour)
		bundle := w.sign("first", b)
		done.Go(func() { _, errs[i] = w.Update(t.Context(), bundle) })
	}
	done.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("errors %v, want one", errs)
	}
	w.remembers(1, 1)
}
